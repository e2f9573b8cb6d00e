"""Schedules that never reallocate, as further candidates: better where jobs are short beside their restarts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from pfprofile.cluster.nodes import Cluster
from pfprofile.plan.bounds.static import static_problem
from pfprofile.plan.oneshot import one_shot
from pfprofile.policy.base import Choice, Job

Choices = dict[int, Choice]


def fixed_choices(jobs: Sequence[Job], cluster: Cluster, prices: Sequence[float]) -> list[tuple[float, Choices]]:
    """One allocation for good at each energy price, least Σ (time + λ·energy); the same one only once.

    They depend on the jobs and the grid of prices, never on a budget. Only for jobs that all arrive at once, without
    deadlines, in a cluster of one pool that has room for the fewest GPUs of all.
    """
    pools = cluster.pools
    at_once = len({job.submit_s for job in jobs}) == 1 and all(job.deadline_s == float("inf") for job in jobs)
    if len(pools) > 1 or not at_once:
        return []
    least = sum(job.tables[0].counts(job.min_n, job.max_n)[0] for job in jobs)
    if least > pools[0].n_gpus:
        return []
    problem = static_problem(jobs, [pools[0].n_gpus], None)
    found: list[tuple[float, Choices]] = []
    seen: set[tuple[int, ...]] = set()
    for price in prices:
        picks = one_shot(replace(problem, time_s=problem.time_s + price * problem.energy_j))
        if tuple(picks) not in seen:
            seen.add(tuple(picks))
            found.append((price, {i: Choice(0, problem.configs[k]) for i, k in enumerate(picks)}))
    return found
