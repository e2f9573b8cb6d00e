"""Clusters and jobs that several tests share."""

from __future__ import annotations

import random

from pfprofile.cluster.nodes import Cluster, NodeGroup, make_cluster
from pfprofile.cluster.speed_table import SpeedTable, build_table
from pfprofile.policy.base import Job
from tests.plan.double import Double

CLUSTER = make_cluster([NodeGroup("n", "a100-sxm4", 3, 8, 400.0, 55.0)])
MODELS = (Double(), Double("bert", sync_s=0.04, sample_s=0.004), Double("vgg", sync_s=0.09, clocks=()))
TABLES: dict[tuple[int, int, int], SpeedTable] = {}


def table(model: int, batch: int, cluster: Cluster = CLUSTER, pool: int = 0) -> SpeedTable:
    """A speed table of one of the doubles, built once."""
    key = (model, batch, id(cluster.pools[pool]))
    if key not in TABLES:
        TABLES[key] = build_table(MODELS[model], batch, cluster.pools[pool])
    return TABLES[key]


def make_jobs(seed: int, count: int, gap_s: float, cluster: Cluster = CLUSTER) -> list[Job]:
    """Random jobs: three models, three batches, log-normal lengths around a quarter of an hour."""
    rng = random.Random(seed)
    jobs, now = [], 0.0
    for i in range(count):
        speeds = table(rng.randrange(3), rng.choice((64, 256, 1024)), cluster)
        work = rng.lognormvariate(0.0, 1.3) * 900.0 * speeds.fastest(1).speed_per_s
        least = rng.choice((1, 1, 1, 2, 4))
        jobs.append(Job(f"j{i}", now, work, least, rng.choice((least, 8, 16)), {0: speeds}))
        now += rng.expovariate(1 / gap_s) if gap_s else 0.0
    return jobs
