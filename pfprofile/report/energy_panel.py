"""The picture of energy by part, and of the budget that it uses."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from pfprofile.report.parts import Panel
from pfprofile.report.schedule_file import Schedule
from pfprofile.report.svg import LEFT, WIDE, canvas, to_svg
from pfprofile.report.theme import color
from pfprofile.units import format_energy

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def energy_panel(schedule: Schedule, prefix: str) -> Panel:
    """The picture; words where the totals are unknown."""
    title = "Energy by part"
    totals = schedule.totals
    parts = [("GPUs at work", "line-0", totals.gpu_energy_j), ("idle GPUs", "line-3", totals.idle_energy_j),
             ("nodes", "line-1", totals.node_energy_j)]  # fmt: skip
    known = [(name, role, value) for name, role, value in parts if value is not None]
    missing = [name for name, _, value in parts if value is None]
    whole = math.fsum(value for _, _, value in known)
    if whole <= 0:
        return Panel(title, "Energy is unknown: the schedule's totals do not say it.", wide=True)
    # Of an incomplete sum no shares can be told.
    shares = ["" if missing else f", {100 * value / whole:.1f} %" for _, _, value in known]
    rows = [(n, r, v, f"{format_energy(v)}{share}") for (n, r, v), share in zip(known, shares, strict=True)]
    budget = schedule.budget.energy_j if schedule.budget else None
    figure, axes = canvas(WIDE, 30 + 30 * (len(rows) + (budget is not None)), left=LEFT + 10, right=200, top=4,
                          bottom=6)  # fmt: skip
    for y, (name, role, value, words) in enumerate(rows):
        axes.barh(y, value, height=0.55, color=color(role), gid="mark-energy")
        _write(axes, y, name, value, words)
    if budget is not None and not missing:
        axes.barh(len(rows), budget, height=0.55, facecolor="none", edgecolor=color("muted"), gid="mark-budget")
        axes.barh(len(rows), whole, height=0.55, color=color("muted"), alpha=0.35)
        of_budget = f"{format_energy(whole)} of {format_energy(budget)}"
        _write(axes, len(rows), "of the budget", max(budget, whole), of_budget)
    axes.set_ylim(len(rows) + (-0.4 if budget is None else 0.6), -0.6)
    axes.set_xlim(left=0)
    axes.axis("off")
    description = "; ".join(f"{name} {words}" for name, _, _, words in rows) + "."
    if missing:
        description += f" Unknown: {', '.join(missing)}."
    return Panel(title, description, to_svg(figure, f"{prefix}-energy", title, description), wide=True)


def _write(axes: Axes, y: float, name: str, value: float, words: str) -> None:
    axes.annotate(name, (0, y), xytext=(-8, 0), textcoords="offset points", va="center", ha="right")
    axes.annotate(words, (value, y), xytext=(6, 0), textcoords="offset points", va="center", annotation_clip=False)
