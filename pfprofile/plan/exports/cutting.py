"""A schedule cut into stretches: each a job on the same GPUs from a (re)start to its end or next restart."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from pfprofile.plan.exports.base import ExportPlan, JobFacts, Stretch


@dataclass(slots=True)
class _Open:
    """A stretch that is being gathered."""

    rows: list[Mapping[str, Any]] = field(default_factory=list)
    local_batch: int = 1
    accum_steps: int = 1


def cut(
    body: Mapping[str, Any], batches: list[tuple[int, int]], jobs: Mapping[str, JobFacts], start_s: float
) -> ExportPlan:
    """Cut a schedule into stretches.

    Args:
        body: the schedule contract.
        batches: (local batch, accumulation steps) of each segment.
        jobs: how each is started.
        start_s: the plan's zero.
    """
    gathered: dict[str, list[_Open]] = {}
    for row, (local, accum) in zip(body["segments"], batches, strict=True):
        own = gathered.setdefault(row["job"], [])
        before = own[-1].rows[-1] if own else None
        # A restart begins a stretch; so do other GPUs, and a pause without any.
        same = (
            before is not None and before["gpus"] == row["gpus"] and before["end_s"] == row["start_s"]
            and (row["kind"] == "run" or before["kind"] == "rescale")
        )  # fmt: skip
        if not same:
            own.append(_Open())
        own[-1].rows.append(row)
        own[-1].local_batch, own[-1].accum_steps = local, accum
    order = sorted(
        ((o.rows[0]["start_s"], name, i) for name, own in gathered.items() for i, o in enumerate(own)),
        key=lambda item: (item[0], item[1], item[2]),
    )
    numbers = {(name, i): k for k, (_, name, i) in enumerate(order, start=1)}
    holders: dict[str, int] = {}
    ends: dict[int, float] = {}
    done: dict[str, float] = {}
    stretches = []
    for number, (_, name, i) in enumerate(order, start=1):
        opened, job = gathered[name][i], jobs[name]
        rows = opened.rows
        after = {holders[gpu] for gpu in rows[0]["gpus"] if gpu in holders}
        if i:
            after.add(numbers[name, i - 1])
        begin, end = rows[0]["start_s"], rows[-1]["end_s"]
        free_s = max((ends[k] for k in after), default=start_s)
        samples = math.fsum((r["end_s"] - r["start_s"]) * r["throughput_per_s"] for r in rows)
        first, done[name] = done.get(name, 0.0), done.get(name, 0.0) + samples
        last = i == len(gathered[name]) - 1
        to_step = done[name] / job.global_batch
        stretches.append(
            Stretch(
                number, job, i + 1, last, begin, end, _clocks(rows), _by_node(rows[0]["gpus"]), opened.local_batch,
                opened.accum_steps, round(first / job.global_batch),
                math.ceil(to_step - 1e-6) if last else round(to_step), tuple(sorted(after)),
                begin if begin > free_s + 1.0 else None, math.fsum(r["energy_j"] for r in rows),
            )
        )  # fmt: skip
        ends[number] = end
        for gpu in rows[0]["gpus"]:
            holders[gpu] = number
    return ExportPlan(body, tuple(stretches), start_s)


def _clocks(rows: list[Mapping[str, Any]]) -> tuple[tuple[float, float | None], ...]:
    changes: list[tuple[float, float | None]] = []
    for row in rows:
        if not changes or changes[-1][1] != row["sm_clock_mhz"]:
            changes.append((row["start_s"] - rows[0]["start_s"], row["sm_clock_mhz"]))
    return tuple(changes)


def _by_node(gpus: list[str]) -> dict[str, tuple[int, ...]]:
    nodes: dict[str, list[int]] = {}
    for gpu in gpus:
        node, _, index = gpu.rpartition(":")
        nodes.setdefault(node, []).append(int(index))
    return {node: tuple(indices) for node, indices in nodes.items()}
