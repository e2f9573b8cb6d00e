"""What can be refused before, or found broken after, a simulation: the power cap's floor and deadlines."""

from __future__ import annotations

import math
from collections.abc import Sequence

from pfprofile.cluster.nodes import Cluster
from pfprofile.errors import InfeasibleError
from pfprofile.plan.bounds.energy import job_configs
from pfprofile.plan.outcome import Outcome
from pfprofile.policy.base import Job
from pfprofile.units import format_power

#: a finish this much after the deadline is rounding, s
TOLERANCE_S = 1e-6


def check_power_floor(jobs: Sequence[Job], cluster: Cluster, cap_w: float | None, *, always_on: bool) -> None:
    """Raises InfeasibleError where the cap is below the idle floor, or below what some job needs alone."""
    if cap_w is None:
        return
    if always_on and cap_w < cluster.floor_w:
        raise InfeasibleError(
            f"power cap {format_power(cap_w)} is below the idle power of the cluster, {format_power(cluster.floor_w)}",
            "raise --power-cap, or let empty nodes go off",
        )
    for job in jobs:
        need_w = min(_alone_w(cluster, pool, job, always_on=always_on) for pool in job.tables)
        if need_w > cap_w:
            raise InfeasibleError(
                f"power cap {format_power(cap_w)} is below the {format_power(need_w)} job {job.name!r} needs alone",
                "raise --power-cap",
            )


def _alone_w(cluster: Cluster, pool_index: int, job: Job, *, always_on: bool) -> float:
    """Least power of the cluster with only this job running, W."""
    pool, table = cluster.pools[pool_index], job.tables[pool_index]
    best = math.inf
    for n in table.counts(job.min_n, job.max_n):
        gpu_w = min(c.gpu_w for c in table.by_n[n])
        nodes = pool.nodes_for(n)
        if always_on:
            best = min(best, cluster.floor_w + n * (gpu_w - pool.idle_w))
        else:
            idle_w = (nodes * pool.gpus_per_node - n) * pool.idle_w
            best = min(best, n * gpu_w + nodes * pool.node_w + idle_w)
    return best


def check_deadlines_alone(jobs: Sequence[Job], start_s: float) -> None:
    """Raises InfeasibleError where a job could not meet its deadline with the cluster to itself."""
    for job in jobs:
        if math.isinf(job.deadline_s):
            continue
        fastest = max(c.speed_per_s for c in job_configs(job))
        earliest_s = max(job.submit_s, start_s) + job.work / fastest
        if earliest_s > job.deadline_s + TOLERANCE_S:
            raise InfeasibleError(
                f"job {job.name!r} cannot meet its deadline at {job.deadline_s:g} s: alone on the cluster its earliest "
                f"finish is {earliest_s:.1f} s",
                "move the deadline, or raise max_gpus",
            )


def missed_deadline(outcome: Outcome) -> tuple[int, float] | None:
    """The job that is latest after its deadline, and when it finishes; None if all are met."""
    late = [
        (state.finished_s - state.job.deadline_s, i, state.finished_s)
        for i, state in enumerate(outcome.jobs)
        if state.finished_s > state.job.deadline_s + TOLERANCE_S
    ]
    if not late:
        return None
    _, index, finish_s = max(late)
    return index, finish_s
