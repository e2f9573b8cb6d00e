"""JCT ratios at equal energy as dots, one row a pair of policies, one dot a setting of the baseline."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median
from typing import TYPE_CHECKING

from pfprofile.report.comparison_file import EqualEnergy
from pfprofile.report.parts import Panel, shorten
from pfprofile.report.svg import WIDE, canvas, to_svg
from pfprofile.report.theme import color

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MOST_ROWS = 40
#: ratios that differ by more than this factor are drawn on a logarithmic axis
WIDE_RANGE = 5.0


def equal_energy_panel(rows: Sequence[EqualEnergy], key: str) -> Panel:
    """The picture; unclamped ratios are full dots, clamped ones hollow."""
    title = "Ratio of average JCT at equal energy"
    grouped: dict[str, list[EqualEnergy]] = {}
    several = len({row.trace for row in rows}) > 1
    for row in rows:
        if row.jct_ratio is not None:
            where = f" · {row.trace}" if several and row.trace else ""
            # A baseline's settings (after the colon) are dots of one row.
            grouped.setdefault(f"{row.policy} against {row.baseline.partition(':')[0]}{where}", []).append(row)
    if not grouped:
        return Panel(title, "No ratio is known: the curves share no energy.", wide=True)
    order = sorted(grouped, key=lambda name: (_typical(grouped[name]), name))[-MOST_ROWS:]
    figure, axes = canvas(WIDE, 70 + 24 * len(order), left=250, right=150, top=10, bottom=44)
    axes.axvline(1.0, color=color("muted"), linewidth=1.0, gid="mark-equal")
    summary = []
    for y, name in enumerate(order):
        own = grouped[name]
        for clamped in (False, True):
            x = [row.jct_ratio for row in own if row.jct_ratio is not None and row.clamped == clamped]
            if x:
                gid = "mark-clamped" if clamped else "mark-ratio"
                axes.plot(x, [y] * len(x), "o", color=color("line-0"), markersize=6, alpha=0.85, gid=gid,
                          fillstyle="none" if clamped else "full")  # fmt: skip
        words = _words(own)
        axes.annotate(words, (1.0, y), xytext=(8, 0), xycoords=axes.get_yaxis_transform(), va="center",
                      textcoords="offset points", annotation_clip=False, fontsize=10.5)  # fmt: skip
        axes.annotate(shorten(name, 36), (0.0, y), xytext=(-8, 0), va="center",
                      ha="right", xycoords=axes.get_yaxis_transform(), textcoords="offset points",
                      annotation_clip=False)  # fmt: skip
        summary.append(f"{name}: {words}")
    axes.set_ylim(-0.7, len(order) - 0.3)
    axes.set_yticks([])
    axes.spines["left"].set_visible(False)
    axes.grid(True, axis="x")
    axes.margins(x=0.06)
    known = [row.jct_ratio for own in grouped.values() for row in own if row.jct_ratio]
    if known and max(known) > WIDE_RANGE * min(known):
        _log_scale(axes)
    axes.set_xlabel("JCT of the other ÷ JCT of this policy")
    description = "; ".join(reversed(summary)) + "."
    return Panel(title, description, to_svg(figure, key, title, description), wide=True)


def _log_scale(axes: Axes) -> None:
    from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

    axes.set_xscale("log")
    axes.xaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))


def _typical(rows: Sequence[EqualEnergy]) -> float:
    return median(row.jct_ratio for row in rows if row.jct_ratio is not None)


def _words(rows: Sequence[EqualEnergy]) -> str:
    """Least, median and greatest of the unclamped ratios."""
    free = sorted(row.jct_ratio for row in rows if row.jct_ratio is not None and not row.clamped)
    if not free:
        return "all clamped"
    middle = f"{median(free):.2f}×"
    return middle if len(free) == 1 else f"{middle} ({free[0]:.2f} to {free[-1]:.2f})"
