"""Lines of measured points with direct labels: the drawing that profile and model pictures share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import TYPE_CHECKING

from pfprofile.report.theme import color

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_LABEL_GAP_PX = 14.0


@dataclass(frozen=True, slots=True)
class Mark:
    """One measured trial in a picture.

    Attributes:
        low, high: its spread, in the units of y.
        asked_x: where it was asked to be, if it did not get there (a clock that was not reached).
        shape: ok, throttled or wider (on more nodes than needed).
    """

    x: float
    y: float
    low: float | None = None
    high: float | None = None
    asked_x: float | None = None
    shape: str = "ok"


@dataclass(frozen=True, slots=True)
class Line:
    """Trials that differ only along x."""

    label: str
    role: str
    marks: tuple[Mark, ...] = field(default=())


#: shape -> (symbol, size, opacity)
_SHAPES = {"wider": ("s", 4.0, 0.55), "ok": ("o", 5.0, 1.0), "throttled": ("v", 6.5, 1.0)}


def draw_lines(axes: Axes, lines: Sequence[Line], *, connect: bool = True) -> None:
    """Every trial as a mark with its spread, the medians joined, each line labelled at its right end."""
    for line in lines:
        shade = color(line.role)
        if connect:
            by_x: dict[float, list[float]] = {}
            for mark in line.marks:
                if mark.shape != "wider":
                    by_x.setdefault(mark.x, []).append(mark.y)
            xs = sorted(by_x)
            axes.plot(xs, [median(by_x[x]) for x in xs], color=shade, alpha=0.75, linewidth=1.3)
        for mark in line.marks:
            if mark.asked_x is not None:
                axes.plot([mark.x, mark.asked_x], [mark.y, mark.y], color=shade, linewidth=0.9, marker="|",
                          markevery=[1], markersize=6, gid="mark-requested")  # fmt: skip
            if mark.low is not None and mark.high is not None:
                axes.plot([mark.x, mark.x], [mark.low, mark.high], color=shade, linewidth=0.9, gid="mark-spread")
        for shape, (symbol, size, alpha) in _SHAPES.items():
            chosen = [m for m in line.marks if m.shape == shape]
            if chosen:
                axes.plot([m.x for m in chosen], [m.y for m in chosen], symbol, color=shade, alpha=alpha,
                          markersize=size, markeredgewidth=0.7, markeredgecolor=color("surface"),
                          gid=f"mark-{shape}")  # fmt: skip


def label_ends(axes: Axes, ends: Sequence[tuple[float, str, str]]) -> None:
    """Write ``(y, text, role)`` labels right of the axes at their heights, moved apart where they would touch."""
    height_px = axes.get_window_extent().height / axes.figure.dpi * 72
    spots: list[tuple[float, str, str]] = []
    for y, text, role in ends:
        share = axes.transAxes.inverted().transform(axes.transData.transform((axes.get_xlim()[1], y)))[1]
        spots.append((float(min(max(share, 0.0), 1.0)) * height_px, text, role))
    spots.sort()
    heights = spread_apart([spot[0] for spot in spots], _LABEL_GAP_PX, 0.0, height_px)
    for height, (_, text, role) in zip(heights, spots, strict=True):
        axes.annotate(
            text, (1.0, height / height_px), xytext=(5, 0), textcoords="offset points", xycoords="axes fraction",
            color=color(role), fontsize=10.5, va="center", annotation_clip=False,
        )  # fmt: skip


def spread_apart(heights: Sequence[float], gap: float, low: float, high: float) -> list[float]:
    """Ascending heights moved as little as a greedy pass allows so that neighbours are ``gap`` apart within limits."""
    placed: list[float] = []
    for height in heights:
        placed.append(max(height, placed[-1] + gap if placed else low))
    if placed and placed[-1] > high:
        placed[-1] = high
        for i in range(len(placed) - 2, -1, -1):
            placed[i] = min(placed[i], placed[i + 1] - gap)
    return placed


def draw_failures(axes: Axes, failures: Sequence[tuple[float, str]]) -> None:
    """A cross on the floor of the picture for each trial that failed, with its status beside the first of a kind."""
    seen: set[str] = set()
    for x, status in failures:
        axes.plot([x], [0.03], "x", transform=axes.get_xaxis_transform(), color=color("warn"), markersize=6,
                  markeredgewidth=1.5, clip_on=False, gid="mark-failed")  # fmt: skip
        if status not in seen:
            axes.annotate(status, (x, 0.03), xycoords=axes.get_xaxis_transform(), xytext=(0, 7), ha="center",
                          textcoords="offset points", color=color("warn"), fontsize=10)  # fmt: skip
        seen.add(status)
