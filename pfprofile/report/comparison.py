"""Pictures of a comparison: average JCT against energy of every policy, and the ratios at equal energy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pfprofile.report.comparison_file import Comparison, EqualEnergy, Run
from pfprofile.report.equal_energy import equal_energy_panel
from pfprofile.report.jct_curves import jct_panel
from pfprofile.report.parts import Columns, Group, Section, enumerate_words, in_one_unit, table
from pfprofile.report.schedule_file import sources_in
from pfprofile.units import format_duration, format_energy

#: traces with a picture of their own; the table holds all
MOST_TRACES = 8
_RUNS: Columns = {
    "trace": ("trace", str),
    "policy": ("policy", str),
    "clock_rule": ("clock rule", str),
    "knob": ("knob", str),
    "seed": ("seed", str),
    "jobs": ("jobs", str),
    "offered_load": ("offered load", lambda v: f"{v:.2f}"),
    "avg_jct_s": ("average JCT", format_duration),
    "median_jct_s": ("median", format_duration),
    "p99_jct_s": ("99 %", format_duration),
    "makespan_s": ("makespan", format_duration),
    "energy_j": ("energy", format_energy),
    "gpu_energy_j": ("GPUs", format_energy),
    "node_energy_j": ("nodes", format_energy),
    "utilisation": ("utilisation", lambda v: f"{100 * v:.0f} %"),
    "rescales": ("rescales", str),
    "migrations": ("migrations", str),
}
_EQUAL: Columns = {
    "trace": ("trace", str),
    "policy": ("policy", str),
    "baseline": ("against", str),
    "energy_j": ("at energy", format_energy),
    "jct_ratio": ("JCT ratio", lambda v: f"{v:.3f}"),
    "clamped": ("clamped", lambda v: "yes" if v else "no"),
}


def section(comparison: Comparison, body: Mapping[str, Any], file_name: str, prefix: str) -> Section:
    """The comparison's part of a report.

    Args:
        comparison: as checked.
        body: the whole file, searched for sources.
    """
    runs = comparison.runs
    traces = list(dict.fromkeys(run.trace for run in runs))
    groups = [_trace(runs, trace, f"{prefix}-t{i}") for i, trace in enumerate(traces[:MOST_TRACES])]
    groups.append(_equal(comparison.equal_energy, prefix))
    groups.append(_all_runs(runs))
    policies = sorted({run.policy for run in runs})
    left = f"The first {MOST_TRACES} of {len(traces)} traces have pictures; the last table holds all."
    return Section(
        kind="comparison",
        heading=f"{len(policies)} policies on {enumerate_words(traces[:3])}" + (" and more" if len(traces) > 3 else ""),
        file_name=file_name,
        sources=sources_in(body),
        facts=tuple(_facts(runs, policies)),
        notes=(left,) if len(traces) > MOST_TRACES else (),
        groups=tuple(groups),
    )


def _all_runs(runs: Sequence[Run]) -> Group:
    rows = [run.model_dump() for run in runs]
    columns = in_one_unit(_RUNS, rows, ("avg_jct_s", "median_jct_s", "p99_jct_s", "makespan_s"))
    return Group("All runs", tables=(table("All runs", rows, columns),))


def _facts(runs: Sequence[Run], policies: Sequence[str]) -> list[tuple[str, str]]:
    facts = [("Runs", str(len(runs))), ("Policies", ", ".join(policies) or "none")]
    seeds = {run.seed for run in runs if run.seed is not None}
    if seeds:
        facts.append(("Seeds", str(len(seeds))))
    for name, values, show in (
        ("Jobs", [run.jobs for run in runs if run.jobs is not None], "{:g}"),
        ("Offered load", [run.offered_load for run in runs if run.offered_load is not None], "{:.2f}"),
    ):
        if values:
            ends = [show.format(min(values)), show.format(max(values))]
            facts.append((name, " to ".join(dict.fromkeys(ends))))
    return facts


def _trace(runs: Sequence[Run], trace: str, key: str) -> Group:
    mine = [run for run in runs if run.trace == trace]
    seeds = len({run.seed for run in mine})
    spread = "; whiskers reach from the lowest to the highest seed" if seeds > 1 else ""
    intro = f"Lower left is better. Each mark is one setting of a policy's knob, the mean over seeds{spread}."
    intro += " The lines join the settings that no other one of the policy beats in both; the others are faint."
    return Group(f"Energy and JCT on {trace}", intro if seeds > 1 else intro.replace(", the mean over seeds", ""),
                 panels=(jct_panel(mine, trace, key),))  # fmt: skip


def _equal(rows: Sequence[EqualEnergy], prefix: str) -> Group:
    title = "JCT at equal energy"
    if not rows:
        return Group(title, "The comparison holds no ratios at equal energy.")
    clamped = sum(row.clamped for row in rows)
    intro = "The other policy's average JCT over this policy's, at the same energy: above 1 this policy is faster."
    if clamped:
        intro += f" {clamped} of {len(rows)} are clamped: a curve ends before that energy, so its end stands in."
    numbers = table("The numbers: JCT at equal energy", [row.model_dump() for row in rows], _EQUAL)
    return Group(title, intro, (equal_energy_panel(rows, f"{prefix}-equal"),), (numbers,),
                 key=(("ok", "at one energy"), ("hollow", "clamped")))  # fmt: skip
