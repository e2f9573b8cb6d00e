"""Pictures of a schedule: Gantt by node with clocks, power against the cap, energy by part, the jobs."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from pfprofile.report.gantt import LEFT, RIGHT, WIDTH, gantt
from pfprofile.report.parts import Columns, DataTable, Group, Panel, Section, table
from pfprofile.report.power_series import PowerSeries, peak, power_series
from pfprofile.report.schedule_file import Schedule, sources_in
from pfprofile.report.svg import canvas, to_svg
from pfprofile.report.theme import color
from pfprofile.report.time_axis import TimeScale, time_ticks
from pfprofile.units import format_clock, format_duration, format_energy, format_power

#: steps of power that are drawn; a longer series is shown as means over equal times
MOST_STEPS = 2000
_JOBS: Columns = {
    "name": ("job", str),
    "submit_s": ("submitted", format_duration),
    "start_s": ("started", format_duration),
    "finish_s": ("finished", format_duration),
    "jct_s": ("JCT", format_duration),
    "jct_lo_s": ("JCT, low", format_duration),
    "jct_hi_s": ("JCT, high", format_duration),
    "energy_j": ("GPU energy", format_energy),
    "gpus": ("GPUs", str),
    "clocks": ("SM clock", str),
}
_SEGMENTS: Columns = {
    "job": ("job", str),
    "kind": ("kind", str),
    "start_s": ("start", format_duration),
    "end_s": ("end", format_duration),
    "n_gpus": ("GPUs", str),
    "gpus": ("where", str),
    "sm_clock_mhz": ("SM clock", format_clock),
    "throughput_per_s": ("throughput /s", lambda v: f"{v:.4g}"),
    "job_power_w": ("power", format_power),
    "energy_j": ("energy", format_energy),
}


def section(schedule: Schedule, file_name: str, prefix: str) -> Section:
    """The schedule's part of a report."""
    series = power_series(schedule)
    n = len(schedule.jobs)
    groups = (
        Group("Jobs over time", panels=(gantt(schedule, prefix), _power(schedule, series, prefix)),
              tables=(_segments(schedule), _power_table(series))),
        Group("Energy", panels=(_energy(schedule, prefix),)),
        Group("Jobs", tables=(_jobs(schedule),), open_tables=True),
    )  # fmt: skip
    return Section(
        kind="schedule",
        heading=f"{n} job{'' if n == 1 else 's'}" + _budget_words(schedule),
        file_name=file_name,
        sources=sources_in(schedule.inputs),
        facts=tuple(_facts(schedule, series)),
        groups=groups,
    )


def _budget_words(schedule: Schedule) -> str:
    budget = schedule.budget
    parts = []
    if budget and budget.energy_j is not None:
        parts.append(f"a budget of {format_energy(budget.energy_j)}")
    if budget and budget.power_cap_w is not None:
        parts.append(f"a cap of {format_power(budget.power_cap_w)}")
    return f" under {' and '.join(parts)}" if parts else ""


def _facts(schedule: Schedule, series: PowerSeries | None) -> list[tuple[str, str]]:
    totals, budget, bound = schedule.totals, schedule.budget, schedule.bound
    facts = [(name, show(value)) for name, show, value in (
        ("Average JCT", format_duration, totals.avg_jct_s),
        ("Makespan", format_duration, totals.makespan_s),
        ("Energy", format_energy, totals.energy_j),
    ) if value is not None]  # fmt: skip
    if budget and budget.used_fraction is not None:
        facts.append(("Of the budget", f"{100 * budget.used_fraction:.1f} %"))
    if budget and budget.probability is not None:
        facts.append(("Budget holds with", f"{100 * budget.probability:.3g} %"))
    if series is not None and not series.unknown:
        facts.append(("Peak power", format_power(peak(series)[1])))
    if bound and bound.avg_jct_s is not None:
        kind = f" ({bound.kind})" if bound.kind else ""
        facts.append((f"No schedule below{kind}", format_duration(bound.avg_jct_s)))
    if bound and bound.gap is not None:
        facts.append(("Gap to that bound", f"{100 * bound.gap:.3g} %"))
    return facts


def _power(schedule: Schedule, series: PowerSeries | None, prefix: str) -> Panel:
    title = "Cluster power over time"
    if series is None or series.unknown == len(schedule.segments):
        return Panel(title, "Power is unknown: no segment of this schedule says what its job draws.", wide=True)
    edges_s, jobs_w, total_w = _thin(series)
    scale = TimeScale.of(float(edges_s[-1]))
    cap = schedule.budget.power_cap_w if schedule.budget else None
    kilo = max(float(np.max(total_w)), cap or 0.0) >= 2000
    unit, factor = ("kW", 1e-3) if kilo else ("W", 1.0)
    figure, axes = canvas(WIDTH, 230, left=LEFT, right=RIGHT, top=26)
    x = edges_s / scale.unit_s
    axes.stairs(jobs_w * factor, x, fill=True, color=color("line-0"), alpha=0.28, linewidth=0)
    axes.stairs(jobs_w * factor, x, color=color("line-0"), linewidth=1.3, gid="mark-power", baseline=None)
    names = [("line-0", "GPUs at work")]
    if series.standing_w is not None and float(np.max(series.standing_w)) > 0:
        axes.stairs(total_w * factor, x, color=color("line-1"), linewidth=1.3, gid="mark-total", baseline=None)
        names.append(("line-1", "with idle GPUs and nodes (their energy shared over the time nodes are in use)"))
    axes.set_xlim(min(0.0, float(x[0])), float(x[-1]))
    top = max(float(np.max(total_w)), cap or 0.0) * factor
    axes.set_ylim(0, top * 1.08 if top > 0 else 1)
    if cap is not None:
        axes.axhline(cap * factor, color=color("warn"), linewidth=1.2, linestyle=(0, (5, 3)), gid="mark-cap")
        names.append(("warn", f"cap {format_power(cap)}"))
    axes.set_ylabel(f"power ({unit})")
    time_ticks(axes, scale)
    _names_above(axes, names)
    when, most = peak(series)
    description = f"Highest {format_power(most)} at {format_duration(when)}"
    description += "; no cap was set." if cap is None else _against_cap(most, cap)
    if series.unknown:
        description += f" {series.unknown} segments do not say their power and are missing here."
    return Panel(title, description, to_svg(figure, f"{prefix}-power", title, description), wide=True)


def _against_cap(most_w: float, cap_w: float) -> str:
    return f", {'above' if most_w > cap_w * (1 + 1e-9) else 'within'} the cap of {format_power(cap_w)}."


def _names_above(axes: Any, names: list[tuple[str, str]]) -> None:
    x = 0.0
    for role, words in names:
        axes.annotate(f"― {words}", (0, 1), xytext=(x, 8), xycoords="axes fraction", textcoords="offset points",
                      color=color(role), fontsize=10.5)  # fmt: skip
        x += 26 + 6.3 * len(words)


def _thin(series: PowerSeries) -> tuple[Any, Any, Any]:
    """The steps, or means over `MOST_STEPS` equal times where there are more."""
    if len(series.jobs_w) <= MOST_STEPS:
        return series.edges_s, series.jobs_w, series.total_w
    edges = np.linspace(series.edges_s[0], series.edges_s[-1], MOST_STEPS + 1)

    def mean(values: Any) -> Any:
        energy = np.concatenate([[0.0], np.cumsum(values * np.diff(series.edges_s))])
        return np.diff(np.interp(edges, series.edges_s, energy)) / np.diff(edges)

    return edges, mean(series.jobs_w), mean(series.total_w)


def _energy(schedule: Schedule, prefix: str) -> Panel:
    title = "Energy by part"
    totals = schedule.totals
    parts = [("GPUs at work", "line-0", totals.gpu_energy_j), ("idle GPUs", "line-3", totals.idle_energy_j),
             ("nodes", "line-1", totals.node_energy_j)]  # fmt: skip
    known = [(name, role, value) for name, role, value in parts if value is not None]
    if not known or math.fsum(value for _, _, value in known) <= 0:
        return Panel(title, "Energy is unknown: the schedule's totals do not say it.", wide=True)
    whole = math.fsum(value for _, _, value in known)
    budget = schedule.budget.energy_j if schedule.budget else None
    figure, axes = canvas(WIDTH, 30 + 30 * (len(known) + (budget is not None)), left=LEFT + 10, right=200,
                          top=4, bottom=6)  # fmt: skip
    rows = [(n, r, v, f"{format_energy(v)}, {100 * v / whole:.1f} %") for n, r, v in known]
    for y, (name, role, value, words) in enumerate(rows):
        axes.barh(y, value, height=0.55, color=color(role), gid="mark-energy")
        axes.annotate(words, (value, y), xytext=(6, 0), textcoords="offset points", va="center", annotation_clip=False)
        axes.annotate(name, (0, y), xytext=(-8, 0), textcoords="offset points", va="center", ha="right")
    if budget is not None:
        y = len(rows)
        axes.barh(y, budget, height=0.55, facecolor="none", edgecolor=color("muted"), gid="mark-budget")
        axes.barh(y, whole, height=0.55, color=color("muted"), alpha=0.35)
        axes.annotate("of the budget", (0, y), xytext=(-8, 0), textcoords="offset points", va="center", ha="right")
        axes.annotate(f"{format_energy(whole)} of {format_energy(budget)}", (max(budget, whole), y), xytext=(6, 0),
                      textcoords="offset points", va="center", annotation_clip=False)  # fmt: skip
    axes.set_ylim(len(rows) - (0.4 if budget is None else -0.6), -0.6)
    axes.set_xlim(left=0)
    axes.axis("off")
    description = "; ".join(f"{name} {words}" for name, _, _, words in rows) + "."
    missing = [name for name, _, value in parts if value is None]
    if missing:
        description += f" Unknown: {', '.join(missing)}."
    return Panel(title, description, to_svg(figure, f"{prefix}-energy", title, description), wide=True)


def _jobs(schedule: Schedule) -> DataTable:
    rows = []
    for job in schedule.jobs:
        own = [s for s in schedule.segments if s.job == job.name and s.kind == "run"]
        rows.append({
            **job.model_dump(),
            "gpus": _steps([str(s.n_gpus) for s in own]),
            "clocks": _steps([format_clock(s.sm_clock_mhz) for s in own]),
        })  # fmt: skip
    return table("Jobs", rows, _JOBS)


def _steps(words: list[str]) -> str:
    """A job's life as ``4 → 8``, repeats left out."""
    changes = [w for i, w in enumerate(words) if i == 0 or w != words[i - 1]]
    return " → ".join(changes if len(changes) <= 6 else [*changes[:3], "…", *changes[-2:]])


def _segments(schedule: Schedule) -> DataTable:
    rows = [
        {**s.model_dump(), "gpus": " ".join(s.gpus[:8]) + (" …" if len(s.gpus) > 8 else "")} for s in schedule.segments
    ]
    return table("The numbers: segments", rows, _SEGMENTS)


def _power_table(series: PowerSeries | None) -> DataTable:
    rows = []
    if series is not None:
        edges_s, jobs_w, total_w = _thin(series)
        for i in range(len(jobs_w)):
            rows.append({"start_s": float(edges_s[i]), "jobs_w": float(jobs_w[i]), "total_w": float(total_w[i])})
    return table("The numbers: cluster power", rows, {
        "start_s": ("from", format_duration), "jobs_w": ("GPUs at work", format_power),
        "total_w": ("with idle GPUs and nodes", format_power),
    })  # fmt: skip
