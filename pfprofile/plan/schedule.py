"""The schedule artifact: a plan as the contract's JSON body, as rows, and as a file."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

from pfprofile.plan.outcome import Segment
from pfprofile.plan.planner import Plan
from pfprofile.profile.io import write_text

FORMAT_VERSION = 1
SEGMENT_COLUMNS = (
    "job", "kind", "start_s", "end_s", "n_gpus", "gpus", "sm_clock_mhz", "throughput_per_s", "job_power_w", "energy_j",
)  # fmt: skip


def merged_segments(segments: list[Segment]) -> list[Segment]:
    """Segments with stretches joined that differ in nothing but time; ordered by start, then job."""
    last: dict[int, Segment] = {}
    out: list[Segment] = []
    for segment in segments:
        before = last.get(segment.job)
        if (
            before is not None
            and before.kind == segment.kind
            and before.end_s == segment.start_s
            and before.config is segment.config
            and before.gpus == segment.gpus
        ):
            segment = Segment(
                segment.job, segment.kind, before.start_s, segment.end_s, segment.pool, segment.config, segment.gpus
            )
        elif before is not None:
            out.append(before)
        last[segment.job] = segment
    out += last.values()
    out.sort(key=lambda s: (s.start_s, s.job))
    return out


def segment_row(segment: Segment, name: str) -> dict[str, Any]:
    """One segment with the contract's keys. A restart makes no progress; its throughput is 0."""
    config = segment.config
    return {
        "job": name,
        "kind": segment.kind,
        "start_s": segment.start_s,
        "end_s": segment.end_s,
        "n_gpus": config.n,
        "gpus": list(segment.gpus),
        "sm_clock_mhz": config.clock_mhz,
        "throughput_per_s": config.speed_per_s if segment.kind == "run" else 0.0,
        "job_power_w": segment.power_w,
        "energy_j": segment.energy_j,
    }


def schedule_body(plan: Plan, inputs: dict[str, Any]) -> dict[str, Any]:
    """The schedule contract. Sums are exact: jobs and totals are added up from the segments that are written."""
    outcome = plan.outcome
    segments = merged_segments(outcome.segments)
    rows = [segment_row(s, outcome.jobs[s.job].job.name) for s in segments]
    by_job: dict[int, list[float]] = {}
    for segment, row in zip(segments, rows, strict=True):
        by_job.setdefault(segment.job, []).append(row["energy_j"])
    jobs: list[dict[str, Any]] = [
        {
            "name": state.job.name,
            "submit_s": state.job.submit_s,
            "start_s": state.started_s,
            "finish_s": state.finished_s,
            "jct_s": state.finished_s - state.job.submit_s,
            "energy_j": math.fsum(by_job.get(i, [])),
            "jct_lo_s": plan.spread.jct_lo_s[i],
            "jct_hi_s": plan.spread.jct_hi_s[i],
        }
        for i, state in enumerate(outcome.jobs)
    ]
    gpu_j = math.fsum(row["energy_j"] for row in rows)
    total_j = gpu_j + outcome.idle_energy_j + outcome.node_energy_j
    limits = plan.limits
    return {
        "segments": rows,
        "jobs": jobs,
        "totals": {
            "energy_j": total_j,
            "gpu_energy_j": gpu_j,
            "idle_energy_j": outcome.idle_energy_j,
            "node_energy_j": outcome.node_energy_j,
            "avg_jct_s": math.fsum(job["jct_s"] for job in jobs) / len(jobs),
            "makespan_s": outcome.makespan_s,
        },
        "budget": {
            "energy_j": limits.budget_j,
            "power_cap_w": limits.power_cap_w,
            "used_fraction": total_j / limits.budget_j if limits.budget_j else None,
            "probability": plan.spread.probability(limits.budget_j) if limits.budget_j else None,
        },
        "bound": {"kind": plan.bound.kind, "avg_jct_s": plan.bound.avg_jct_s, "gap": plan.bound.gap},
        "inputs": {
            "format_version": FORMAT_VERSION,
            "policy": plan.policy,
            "energy_price_s_per_j": plan.energy_price,
            "least_energy_j": plan.least_energy_j,
            "lower_bound_j": plan.lower_bound_j,
            **inputs,
        },
    }


def write_schedule(body: dict[str, Any], path: Path) -> None:
    """Write a schedule file atomically. Raises PfprofileError where it cannot."""
    write_text(path, json.dumps(body, indent=1, allow_nan=False) + "\n")


def job_rows(body: dict[str, Any]) -> list[dict[str, Any]]:
    """One row a job for people: its GPUs and clocks over time, start, finish, JCT and energy."""
    shapes: dict[str, list[dict[str, Any]]] = {}
    for segment in body["segments"]:
        shapes.setdefault(segment["job"], []).append(segment)
    rows = []
    for job in body["jobs"]:
        parts = shapes.get(job["name"], [])
        rows.append({**job, "gpus": _changes(parts, "n_gpus"), "clocks": _changes(parts, "sm_clock_mhz")})
    return rows


def _changes(parts: list[dict[str, Any]], key: str) -> str:
    """``8→16→32``; of many values the range, ``8…32 (9 changes)``."""
    values: list[Any] = []
    for part in parts:
        if not values or values[-1] != part[key]:
            values.append(part[key])
    words = ["default" if v is None else f"{v:g}" for v in values]
    if len(words) <= 3:
        return "→".join(words)
    numbers = [v for v in values if v is not None]
    return f"{min(numbers):g}…{max(numbers):g} ({len(words) - 1}×)" if numbers else "default"
