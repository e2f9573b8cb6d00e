"""Energy below which no schedule can lie."""

from __future__ import annotations

import math
from collections.abc import Sequence

from pfprofile.cluster.speed_table import Config
from pfprofile.policy.base import Job


def job_configs(job: Job) -> list[Config]:
    """Every configuration a job may run in, over all its pools."""
    return [c for table in job.tables.values() for n in table.counts(job.min_n, job.max_n) for c in table.by_n[n]]


def least_work_energy_j(job: Job) -> float:
    """work · min(P'/speed), J: what the job's work costs where it is cheapest."""
    return job.work * _least_sample_j(job)


def _least_sample_j(job: Job) -> float:
    """min(P'/speed) over all pools, J; kept in the tables, which many jobs share."""
    least = math.inf
    for table in job.tables.values():
        key = ("least", job.min_n, job.max_n)
        found: float | None = table.cache.get(key)
        if found is None:
            configs = [c for n in table.counts(job.min_n, job.max_n) for c in table.by_n[n]]
            found = table.cache[key] = min((c.power_w / c.speed_per_s for c in configs), default=math.inf)
        least = min(least, found)
    return least


def least_energy_j(jobs: Sequence[Job]) -> float:
    """Σ work · min(P'/speed), J.

    Each GPU in use draws its own power, and a node that is on draws at least its tenants' shares of the node's power.
    """
    return math.fsum(least_work_energy_j(job) for job in jobs)
