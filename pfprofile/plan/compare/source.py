"""Where the work comes from: trace, models and cluster of a comparison, as jobs. Loaded once a process."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from pfprofile.cluster.nodes import Cluster, NodeGroup, make_cluster, read_cluster
from pfprofile.cluster.traces import read_trace
from pfprofile.errors import InputError
from pfprofile.model.fitted import FittedModel
from pfprofile.model.store import load_model
from pfprofile.plan.grid import price_grid
from pfprofile.plan.workload import scale_load, trace_jobs
from pfprofile.policy.base import Job
from pfprofile.profile.places import shipped

#: what profiles/README.md assumes of the shipped A100s
DEFAULT_GROUP = NodeGroup("node", "a100-sxm4", 16, 8, 550.0, 55.0)
DEFAULT_WORDS = "16 nodes of 8 a100-sxm4, 550 W a node, 55 W an idle GPU"
#: prices of a sweep, λ = 0 included, and jobs that its ends are found from
MOST_PRICES = 20
GRID_JOBS = 200


@dataclass(frozen=True, slots=True)
class Source:
    """One trace on one cluster.

    Attributes:
        trace: CSV file.
        mapping: (field, column) pairs; empty = a known layout.
        cluster, models: file and folder; None = the default cluster, the shipped models.
        first: no more jobs than this.
        load: offered load to scale to; None = as it is.
        fixed_batch: see `pfprofile.plan.workload.trace_jobs`.
        deadlines: every policy sees the trace's deadlines, not only those that live by them.
    """

    trace: Path
    mapping: tuple[tuple[str, str], ...] = ()
    cluster: Path | None = None
    models: Path | None = None
    first: int | None = None
    load: float | None = None
    fixed_batch: bool = False
    deadlines: bool = False

    @property
    def name(self) -> str:
        """The trace's file name, with its folder where the name alone says little."""
        return f"{self.trace.parent.name}/{self.trace.name}" if self.trace.stem == "jobs" else self.trace.name


@lru_cache(maxsize=4)
def cluster_of(path: Path | None) -> Cluster:
    """The cluster. Raises InputError: see `read_cluster`; or nodes of more than one kind."""
    groups = read_cluster(path) if path is not None else [DEFAULT_GROUP]
    cluster = make_cluster(groups)
    if len(cluster.pools) > 1:
        raise InputError(f"{path}: {len(cluster.pools)} kinds of nodes", "compare needs a cluster of one kind")
    return cluster


@lru_cache(maxsize=4)
def models_of(folder: Path | None, slug: str) -> dict[str, FittedModel]:
    """Models with power for a device, by workload. Raises InputError where there is none."""
    if folder is None:
        paths = [path for name, path in shipped(".json").items() if name.startswith(f"{slug}/")]
    else:
        paths = sorted((folder / slug).glob("*.json"))
    models = {model.workload: model for model in map(load_model, paths) if model.has_power}
    if not models:
        where = "shipped" if folder is None else f"in {folder}"
        raise InputError(f"no model with power for {slug} is {where}", "fit some, and name their folder with --models")
    return models


@lru_cache(maxsize=3)
def jobs_of(source: Source, seed: int, deadlines: bool) -> tuple[Job, ...]:
    """The jobs. Raises InputError: see `read_trace` and `trace_jobs`."""
    cluster = cluster_of(source.cluster)
    trace = read_trace(source.trace, dict(source.mapping), source.first)
    models = models_of(source.models, cluster.pools[0].gpu)
    jobs = trace_jobs(trace, models, cluster, seed, fixed_batch=source.fixed_batch, deadlines=True)
    if source.load is not None:
        jobs = scale_load(jobs, cluster, source.load)
    return tuple(jobs if deadlines else (replace(job, deadline_s=float("inf")) for job in jobs))


def prices_for(jobs: Sequence[Job]) -> list[float]:
    """λ = 0 and a geometric sweep over everything that changes what the jobs do, ends included."""
    grid = price_grid(jobs[:GRID_JOBS])
    if len(grid) <= MOST_PRICES:
        return grid
    last = len(grid) - 1
    return [
        grid[i] for i in sorted({0, *(1 + round(k * (last - 1) / (MOST_PRICES - 2)) for k in range(MOST_PRICES - 1))})
    ]


def describe(sources: Sequence[Source]) -> dict[str, Any]:
    """Digests and sources of all inputs."""
    first = sources[0]
    models = models_of(first.models, cluster_of(first.cluster).pools[0].gpu)
    cluster: dict[str, Any] = {"source": f"default: {DEFAULT_WORDS}", "digest": None}
    if first.cluster is not None:
        cluster = {"source": first.cluster.name, "digest": _digest(first.cluster)}
    return {
        "traces": [{"source": s.name, "digest": _digest(s.trace)} for s in sources],
        "first": first.first,
        "load": first.load,
        "fixed_batch": first.fixed_batch,
        "deadlines": first.deadlines,
        "cluster": cluster,
        "models": [
            {"name": name, "device_name": m.device_name, "source": m.source, "digest": m.digest}
            for name, m in sorted(models.items())
        ],
    }


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()
