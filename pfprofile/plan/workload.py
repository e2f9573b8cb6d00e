"""A trace as jobs with models: who trains what is drawn under a seed, and the work is what kept the GPUs busy."""

from __future__ import annotations

import math
import random
from collections.abc import Mapping, Sequence
from dataclasses import replace

from pfprofile.cluster.jobs import ceil_power_of_two
from pfprofile.cluster.nodes import Cluster
from pfprofile.cluster.speed_table import SpeedTable, build_table
from pfprofile.cluster.traces import TraceJob
from pfprofile.errors import InputError, UsageError, nearest
from pfprofile.model.interface import PerformanceModel
from pfprofile.policy.base import Job

#: names that traces use → ours
ALIASES = {"inception3": "inception_v3", "inceptionv3": "inception_v3", "resnet-50": "resnet50", "vgg-16": "vgg16"}


def trace_jobs(
    trace: Sequence[TraceJob],
    models: Mapping[str, PerformanceModel],
    cluster: Cluster,
    seed: int,
    *,
    fixed_batch: bool = False,
    deadlines: bool = False,
) -> list[Job]:
    """Jobs of a trace for a cluster of one pool.

    The global batch is the GPUs asked for × the model's reference local batch (so that what was asked for is a sensible
    size), the work is the duration × the throughput on these GPUs at the fastest clock.

    Args:
        trace: arrivals, durations, GPUs.
        models: by workload name; a job that names none draws one, all equally likely.
        cluster: GPU counts are powers of two, at most the largest block of it.
        seed: of the draws.
        fixed_batch: every job has its model's reference local batch as global batch, whatever it asked for; so jobs
            that asked for many GPUs use them badly, and policies that never resize lose by it.
        deadlines: keep the trace's.

    Raises:
        InputError: a model that the trace names is not there; no job has any work.
    """
    rng = random.Random(seed)
    names = sorted(models)
    pool = cluster.pools[0]
    tables: dict[tuple[str, int], SpeedTable] = {}
    jobs: list[Job] = []
    for job in trace:
        drawn = names[rng.randrange(len(names))]
        name = ALIASES.get(job.model, job.model) if job.model else drawn
        if name not in models:
            near = nearest(name, names)
            raise InputError(f"trace: job {job.name}: no model of {name!r}{near}", f"have {', '.join(names)}")
        reference = models[name].facts.reference_local_batch or 32
        asked = min(ceil_power_of_two(job.n_gpus), pool.max_job_gpus)
        batch = reference if fixed_batch else job.global_batch or asked * reference
        key = (name, batch)
        if key not in tables:
            tables[key] = build_table(models[name], batch, pool)
        table = tables[key]
        counts = table.counts(1, pool.max_job_gpus)
        asked = min(max((n for n in counts if n <= asked), default=counts[0]), counts[-1])
        work = job.duration_s * table.fastest(asked).speed_per_s
        if work <= 0:
            continue
        until = job.submit_s + job.deadline_s if deadlines and job.deadline_s is not None else math.inf
        jobs.append(Job(job.name, job.submit_s, work, counts[0], counts[-1], {0: table}, until, asked_n=asked))
    if not jobs:
        raise InputError("trace: no job has any work", "durations are all 0")
    return jobs


def offered_load(jobs: Sequence[Job], cluster: Cluster) -> float:
    """GPU time of the jobs on the GPUs they asked for ÷ what the cluster has until the last arrival."""
    asked = sum(
        job.work / next(iter(job.tables.values())).fastest(job.rigid_n).speed_per_s * job.rigid_n for job in jobs
    )
    span = max(job.submit_s for job in jobs) - min(job.submit_s for job in jobs)
    return asked / (cluster.n_gpus * span) if span > 0 else math.inf


def scale_load(jobs: Sequence[Job], cluster: Cluster, load: float) -> list[Job]:
    """The same jobs with arrivals stretched or squeezed, so that the offered load is ``load``; deadlines move along.

    Raises:
        UsageError: ``load`` is not positive, or all jobs arrive at once.
    """
    if not 0.0 < load < math.inf:
        raise UsageError(f"--load {load:g}: not a positive number", "1 = the jobs ask for as much as the cluster has")
    found = offered_load(jobs, cluster)
    if math.isinf(found):
        raise UsageError("--load: all jobs arrive at once", "leave --load out")
    factor = found / load
    return [
        replace(job, submit_s=job.submit_s * factor, deadline_s=job.deadline_s + job.submit_s * (factor - 1.0))
        for job in jobs
    ]
