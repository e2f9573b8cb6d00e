"""Jobs and clusters of the planner's benchmarks, from the shipped (synthetic) models."""

from __future__ import annotations

import random

from pfprofile.cluster.nodes import Cluster, NodeGroup, make_cluster
from pfprofile.cluster.speed_table import SpeedTable, build_table
from pfprofile.model.interface import PerformanceModel
from pfprofile.model.store import load_model
from pfprofile.policy.base import Job

NAMES = ("bert", "deepspeech2", "gpt2", "inception_v3", "resnet50", "vgg16")


def shipped_models() -> dict[str, PerformanceModel]:
    """The six A100 models by workload."""
    return {name: load_model(f"a100-sxm4/{name}") for name in NAMES}


def a100s(nodes: int) -> Cluster:
    """Nodes of eight A100s; 550 W a node and 55 W an idle GPU, as profiles/README.md assumes."""
    return make_cluster([NodeGroup("n", "a100-sxm4", nodes, 8, 550.0, 55.0)])


def random_jobs(count: int, cluster: Cluster, seed: int, gap_s: float = 0.0) -> list[Job]:
    """Log-normal lengths around an hour on one GPU, one of six models, 1-8 reference batches."""
    rng = random.Random(seed)
    models, tables = shipped_models(), dict[tuple[str, int], SpeedTable]()
    jobs, now = [], 0.0
    for i in range(count):
        name = rng.choice(NAMES)
        model = models[name]
        batch = (model.facts.reference_local_batch or 32) * rng.choice((1, 2, 4, 8))
        if (name, batch) not in tables:
            tables[name, batch] = build_table(model, batch, cluster.pools[0])
        table = tables[name, batch]
        counts = table.counts(1, 64)
        work = rng.lognormvariate(0.0, 1.5) * 3600.0 * table.fastest(counts[0]).speed_per_s
        jobs.append(Job(f"j{i}", now, work, counts[0], counts[-1], {0: table}))
        now += rng.expovariate(1.0 / gap_s) if gap_s else 0.0
    return jobs
