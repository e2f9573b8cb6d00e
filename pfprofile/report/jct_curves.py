"""Average JCT against energy: one mark a setting of a policy's knob, a line through those that are worth choosing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import TYPE_CHECKING

from pfprofile.report.comparison_file import Run
from pfprofile.report.lines import spread_apart
from pfprofile.report.parts import Panel, shorten
from pfprofile.report.svg import WIDE, canvas, to_svg
from pfprofile.report.theme import category, color
from pfprofile.report.time_axis import TimeScale
from pfprofile.units import format_duration, format_energy

if TYPE_CHECKING:
    from matplotlib.axes import Axes

HEIGHT, RIGHT = 400, 190
SHAPES = ("o", "s", "^", "D", "v", "P", "X", "p", "h", "<", ">", "d")
OURS = "pfprofile"
_LABEL_GAP_PX = 15.0


@dataclass(frozen=True, slots=True)
class Spot:
    """One setting of a knob: mean, least and greatest over the seeds, energy in J and JCT in s."""

    energy_j: tuple[float, float, float]
    jct_s: tuple[float, float, float]


@dataclass(frozen=True, slots=True)
class Trail:
    """A policy under one clock rule: its spots by ascending energy."""

    label: str
    policy: str
    spots: tuple[Spot, ...]


def trails_of(runs: Sequence[Run]) -> list[Trail]:
    """Runs of one trace as lines; runs without energy or JCT are left out."""
    grouped: dict[tuple[str, str], dict[str, list[Run]]] = {}
    for run in runs:
        if run.energy_j is not None and run.avg_jct_s is not None:
            grouped.setdefault((run.label, run.policy), {}).setdefault(str(run.knob), []).append(run)
    out = []
    for (label, policy), by_knob in grouped.items():
        spots = [
            Spot(_range([r.energy_j or 0.0 for r in own]), _range([r.avg_jct_s or 0.0 for r in own]))
            for own in by_knob.values()
        ]
        out.append(Trail(label, policy, tuple(sorted(spots, key=lambda spot: spot.energy_j))))
    return sorted(out, key=lambda trail: (trail.policy != OURS, trail.label))


def _range(values: Sequence[float]) -> tuple[float, float, float]:
    return fmean(values), min(values), max(values)


def jct_panel(runs: Sequence[Run], trace: str, key: str) -> Panel:
    """The picture for one trace; words where no run says both energy and JCT."""
    title = f"Average JCT against energy, {trace}"
    trails = trails_of(runs)
    if not trails:
        return Panel(title, "Energy or JCT is unknown in every run of this trace.", wide=True)
    energies = [spot.energy_j[2] for trail in trails for spot in trail.spots]
    unit_e, per_e = next((u, f) for u, f in (("MWh", 3.6e9), ("kWh", 3.6e6), ("Wh", 3.6e3), ("J", 1.0))
                         if max(energies) >= f or f == 1.0)  # fmt: skip
    scale = TimeScale.of(max(spot.jct_s[2] for trail in trails for spot in trail.spots))
    figure, axes = canvas(WIDE, HEIGHT, left=64, right=RIGHT, top=14, bottom=44)
    ends = []
    policies = list(dict.fromkeys(trail.policy for trail in trails))
    for index, trail in enumerate(trails):
        role = category(policies.index(trail.policy))
        _draw(axes, trail, role, SHAPES[index % len(SHAPES)], per_e, scale.unit_s)
        last = front_of(trail)[0][-1]
        ends.append((last.energy_j[0] / per_e, last.jct_s[0] / scale.unit_s, trail.label, role,
                     trail.policy == OURS))  # fmt: skip
    axes.margins(0.05)
    above = _clip(axes, trails, scale.unit_s)
    axes.set_xlabel(f"energy ({unit_e})")
    axes.set_ylabel(f"average JCT ({scale.name})")
    _labels(axes, ends)
    description = _describe(trails)
    if above:
        description += f" {above} settings that others beat lie above the picture."
    return Panel(title, description, to_svg(figure, key, title, description), wide=True)


def front_of(trail: Trail) -> tuple[list[Spot], list[Spot]]:
    """The settings that no other one of the policy beats in both energy and JCT, by ascending energy; and the rest."""
    front: list[Spot] = []
    rest: list[Spot] = []
    for spot in trail.spots:
        better = not front or spot.jct_s[0] < front[-1].jct_s[0]
        (front if better else rest).append(spot)
    return front, rest


def _clip(axes: Axes, trails: Sequence[Trail], per_t: float) -> int:
    """Keep settings that nobody would choose from squeezing the lines; returns how many lie above the picture."""
    worth = max(spot.jct_s[2] for trail in trails for spot in front_of(trail)[0])
    top_s = worth * 1.3
    above = sum(spot.jct_s[0] > top_s for trail in trails for spot in front_of(trail)[1])
    if above:
        axes.set_ylim(top=top_s / per_t)
    return above


def _draw(axes: Axes, trail: Trail, role: str, shape: str, per_e: float, per_t: float) -> None:
    ours = trail.policy == OURS
    front, rest = front_of(trail)
    for spot in front:
        at_x, at_y = spot.energy_j[0] / per_e, spot.jct_s[0] / per_t
        if spot.jct_s[1] < spot.jct_s[2]:
            axes.plot([at_x, at_x], [v / per_t for v in spot.jct_s[1:]], color=color(role), linewidth=0.8, alpha=0.7)
            axes.plot([v / per_e for v in spot.energy_j[1:]], [at_y, at_y], color=color(role), linewidth=0.8, alpha=0.7)
    if rest:
        axes.plot([s.energy_j[0] / per_e for s in rest], [s.jct_s[0] / per_t for s in rest], shape, color=color(role),
                  markersize=4, alpha=0.35, gid="mark-dominated")  # fmt: skip
    x, y = [s.energy_j[0] / per_e for s in front], [s.jct_s[0] / per_t for s in front]
    axes.plot(x, y, color=color(role), linewidth=2.2 if ours else 1.2, marker=shape, markersize=7 if ours else 5.5,
              markeredgewidth=0.7, markeredgecolor=color("surface"), gid="mark-policy",
              zorder=3 if ours else 2)  # fmt: skip


def _labels(axes: Axes, ends: Sequence[tuple[float, float, str, str, bool]]) -> None:
    """Names in a column right of the picture, each tied to the last mark of its line."""
    height = axes.get_window_extent().height / axes.figure.dpi * 72
    to_axes = axes.transAxes.inverted()
    spots = sorted(
        (float(to_axes.transform(axes.transData.transform((x, y)))[1]) * height, x, y, text, role, bold)
        for x, y, text, role, bold in ends
    )
    placed = spread_apart([spot[0] for spot in spots], _LABEL_GAP_PX, 0.0, height)
    for at, (_, x, y, text, role, bold) in zip(placed, spots, strict=True):
        axes.annotate(
            shorten(text, 22), (x, y), xytext=(1.05, at / height), textcoords="axes fraction", color=color(role),
            fontsize=10.5, va="center", weight="bold" if bold else "normal", annotation_clip=False,
            arrowprops={"arrowstyle": "-", "color": color("muted"), "linewidth": 0.6, "alpha": 0.6, "shrinkB": 5,
                        "shrinkA": 2, "relpos": (0.0, 0.5)},
        )  # fmt: skip


def _describe(trails: Sequence[Trail]) -> str:
    parts = []
    for trail in trails:
        first, last = trail.spots[0], trail.spots[-1]
        words = f"{trail.label}: {format_duration(first.jct_s[0])} at {format_energy(first.energy_j[0])}"
        if len(trail.spots) > 1:
            words += f" to {format_duration(last.jct_s[0])} at {format_energy(last.energy_j[0])}"
        parts.append(words)
    return "; ".join(parts) + "."
