"""A trace as jobs with models: who trains what is drawn under a seed, and the work is what kept the GPUs busy."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence

from pfprofile.cluster.jobs import ceil_power_of_two
from pfprofile.cluster.nodes import Cluster
from pfprofile.cluster.speed_table import SpeedTable, build_table
from pfprofile.cluster.traces import TraceJob
from pfprofile.errors import InputError
from pfprofile.model.interface import PerformanceModel
from pfprofile.policy.base import Job


def trace_jobs(
    trace: Sequence[TraceJob], models: Mapping[str, PerformanceModel], cluster: Cluster, seed: int
) -> list[Job]:
    """Jobs of a trace for a cluster of one pool.

    The global batch is the GPUs asked for × the model's reference local batch (so that what was asked for is a sensible
    size), the work is the duration × the throughput on these GPUs at the fastest clock.

    Args:
        trace: arrivals, durations, GPUs.
        models: by workload name; a job that names none draws one, all equally likely.
        cluster: GPU counts are powers of two, at most the largest block of it.
        seed: of the draws.

    Raises:
        InputError: a model that the trace names is not there.
    """
    rng = random.Random(seed)
    names = sorted(models)
    pool = cluster.pools[0]
    tables: dict[tuple[str, int], SpeedTable] = {}
    jobs: list[Job] = []
    for job in trace:
        drawn = names[rng.randrange(len(names))]
        name = job.model or drawn
        if name not in models:
            raise InputError(f"trace: job {job.name}: no model of {name!r}", f"have {', '.join(names)}")
        model = models[name]
        asked = min(ceil_power_of_two(job.n_gpus), pool.max_job_gpus)
        batch = job.global_batch or asked * (model.facts.reference_local_batch or 32)
        key = (name, batch)
        if key not in tables:
            tables[key] = build_table(model, batch, pool)
        table = tables[key]
        counts = table.counts(1, pool.max_job_gpus)
        asked = min(max((n for n in counts if n <= asked), default=counts[0]), counts[-1])
        work = job.duration_s * table.fastest(asked).speed_per_s
        if work <= 0:
            continue
        jobs.append(Job(job.name, job.submit_s, work, counts[0], counts[-1], {0: table}, asked_n=asked))
    return jobs


def offered_load(jobs: Sequence[Job], cluster: Cluster) -> float:
    """GPU time of the jobs on the GPUs they asked for ÷ what the cluster has until the last arrival."""
    asked = sum(
        job.work / next(iter(job.tables.values())).fastest(job.rigid_n).speed_per_s * job.rigid_n for job in jobs
    )
    span = max(job.submit_s for job in jobs) - min(job.submit_s for job in jobs)
    return asked / (cluster.n_gpus * span) if span > 0 else float("inf")
