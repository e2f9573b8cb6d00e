"""Pictures of a schedule: Gantt by node with clocks, power against the cap, energy by part, the jobs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from pfprofile.report.energy_panel import energy_panel
from pfprofile.report.gantt import gantt
from pfprofile.report.parts import ROW_LIMIT, Columns, DataTable, Group, Section, in_one_unit, table
from pfprofile.report.power_panel import power_panel, power_table
from pfprofile.report.power_series import PowerSeries, peak, power_series
from pfprofile.report.schedule_file import Schedule, Segment, sources_in, split_gpu
from pfprofile.units import format_clock, format_duration, format_energy, format_power

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
        Group("Jobs over time", panels=(gantt(schedule, prefix), power_panel(schedule, series, prefix)),
              tables=(_segments(schedule), power_table(series))),
        Group("Energy", panels=(energy_panel(schedule, prefix),)),
        Group("Jobs", tables=(_jobs(schedule),), open_tables=n <= 60),
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


def _jobs(schedule: Schedule) -> DataTable:
    rows = []
    runs: dict[str, list[Segment]] = {}
    for segment in schedule.segments:
        if segment.kind == "run":
            runs.setdefault(segment.job, []).append(segment)
    for job in schedule.jobs:
        own = runs.get(job.name, [])
        rows.append({
            **job.model_dump(),
            "gpus": _steps([str(s.n_gpus) for s in own]),
            "clocks": _steps([format_clock(s.sm_clock_mhz) for s in own]),
        })  # fmt: skip
    times = ("submit_s", "start_s", "finish_s", "jct_s", "jct_lo_s", "jct_hi_s")
    return table("Jobs", rows, in_one_unit(_JOBS, rows, times))


def _steps(words: list[str]) -> str:
    """A job's life as ``4 → 8``, repeats left out."""
    changes = [w for i, w in enumerate(words) if i == 0 or w != words[i - 1]]
    return " → ".join(changes if len(changes) <= 6 else [*changes[:3], "…", *changes[-2:]])


def _segments(schedule: Schedule) -> DataTable:
    rows = [{**s.model_dump(), "gpus": where(s.gpus)} for s in schedule.segments[:ROW_LIMIT]]
    found = table("The numbers: segments", rows, in_one_unit(_SEGMENTS, rows, ("start_s", "end_s")))
    return replace(found, omitted=len(schedule.segments) - len(rows))


def where(gpus: Sequence[str]) -> str:
    """``node-0:0-7 node-1:2``: neighbouring GPUs of a node as a range, at most six ranges."""
    runs: list[tuple[str, int, int]] = []
    for node, index in sorted(map(split_gpu, gpus)):
        if runs and runs[-1][0] == node and runs[-1][2] == index - 1:
            runs[-1] = (node, runs[-1][1], index)
        else:
            runs.append((node, index, index))
    words = [f"{node}:{first}" if first == last else f"{node}:{first}-{last}" for node, first, last in runs]
    return " ".join(words if len(words) <= 6 else [*words[:6], "…"])
