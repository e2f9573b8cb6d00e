"""The picture of cluster power over time, against the cap."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from pfprofile.report.parts import Columns, DataTable, Panel, in_one_unit, table
from pfprofile.report.power_series import Floats, PowerSeries, peak
from pfprofile.report.schedule_file import Schedule
from pfprofile.report.svg import LEFT, RIGHT, WIDE, canvas, to_svg
from pfprofile.report.theme import color
from pfprofile.report.time_axis import TimeScale, time_ticks
from pfprofile.units import format_duration, format_power

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: steps of power that are drawn; a longer series is shown as means over equal times
MOST_STEPS = 1000
_POWER: Columns = {
    "start_s": ("from", format_duration),
    "jobs_w": ("GPUs at work", format_power),
    "total_w": ("with idle GPUs and nodes", format_power),
}


def power_panel(schedule: Schedule, series: PowerSeries | None, prefix: str) -> Panel:
    """The picture; words where no segment knows its power."""
    title = "Cluster power over time"
    if series is None or series.unknown == len(schedule.segments):
        return Panel(title, "Power is unknown: no segment of this schedule says what its job draws.", wide=True)
    edges_s, jobs_w, total_w = _thin(series)
    scale = TimeScale.of(float(edges_s[-1]))
    cap = schedule.budget.power_cap_w if schedule.budget else None
    kilo = max(float(np.max(total_w)), cap or 0.0) >= 2000
    unit, factor = ("kW", 1e-3) if kilo else ("W", 1.0)
    figure, axes = canvas(WIDE, 230, left=LEFT, right=RIGHT, top=26)
    standing = series.standing_w is not None and float(np.max(series.standing_w)) > 0
    _draw(axes, edges_s / scale.unit_s, jobs_w * factor, total_w * factor if standing else None,
          None if cap is None else cap * factor)  # fmt: skip
    axes.set_ylabel(f"power ({unit})")
    time_ticks(axes, scale)
    names = [("line-0", "GPUs at work")]
    names += [("line-1", "with idle GPUs and nodes, shared over their time in use")] if standing else []
    names += [("warn", f"cap {format_power(cap)}")] if cap is not None else []
    _names_above(axes, names)
    description = _describe(series, cap)
    return Panel(title, description, to_svg(figure, f"{prefix}-power", title, description), wide=True)


def _draw(axes: Axes, x: Floats, jobs: Floats, total: Floats | None, cap: float | None) -> None:
    axes.stairs(jobs, x, fill=True, color=color("line-0"), alpha=0.28, linewidth=0)
    axes.stairs(jobs, x, color=color("line-0"), linewidth=1.3, gid="mark-power", baseline=None)
    if total is not None:
        axes.stairs(total, x, color=color("line-1"), linewidth=1.3, gid="mark-total", baseline=None)
    if cap is not None:
        axes.axhline(cap, color=color("warn"), linewidth=1.2, linestyle=(0, (5, 3)), gid="mark-cap")
    axes.set_xlim(min(0.0, float(x[0])), float(x[-1]))
    top = max(float(np.max(jobs if total is None else total)), cap or 0.0)
    axes.set_ylim(0, top * 1.08 if top > 0 else 1)


def _describe(series: PowerSeries, cap_w: float | None) -> str:
    when_s, most_w = peak(series)
    text = f"Highest {format_power(most_w)} at {format_duration(when_s)}"
    if cap_w is None:
        text += "; no cap was set."
    elif series.unknown:
        text += f"; the cap is {format_power(cap_w)}."
    else:
        text += f", {'above' if most_w > cap_w * (1 + 1e-9) else 'within'} the cap of {format_power(cap_w)}."
    if series.unknown:
        text += f" {series.unknown} segments do not say their power and are missing here."
    if len(series.jobs_w) > MOST_STEPS:
        text += f" Drawn as means over {MOST_STEPS} equal times, which hide short peaks."
    return text


def _names_above(axes: Axes, names: list[tuple[str, str]]) -> None:
    x = 0.0
    for role, words in names:
        axes.annotate(f"― {words}", (0, 1), xytext=(x, 8), xycoords="axes fraction", textcoords="offset points",
                      color=color(role), fontsize=10.5)  # fmt: skip
        x += 26 + 6.3 * len(words)


def _thin(series: PowerSeries) -> tuple[Floats, Floats, Floats]:
    """The steps, or means over `MOST_STEPS` equal times where there are more."""
    if len(series.jobs_w) <= MOST_STEPS:
        return series.edges_s, series.jobs_w, series.total_w
    edges = np.linspace(series.edges_s[0], series.edges_s[-1], MOST_STEPS + 1)

    def mean(values: Floats) -> Floats:
        energy = np.concatenate([[0.0], np.cumsum(values * np.diff(series.edges_s))])
        return np.asarray(np.diff(np.interp(edges, series.edges_s, energy)) / np.diff(edges))

    return edges, mean(series.jobs_w), mean(series.total_w)


def power_table(series: PowerSeries | None) -> DataTable:
    """The steps that are drawn."""
    rows = []
    if series is not None:
        edges_s, jobs_w, total_w = _thin(series)
        for i in range(len(jobs_w)):
            rows.append({"start_s": float(edges_s[i]), "jobs_w": float(jobs_w[i]), "total_w": float(total_w[i])})
    return table("The numbers: cluster power", rows, in_one_unit(_POWER, rows, ("start_s",)))
