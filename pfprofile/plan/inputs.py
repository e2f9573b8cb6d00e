"""From files to what the planner needs: models found, jobs given their work and tables, the cluster its pools."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pfprofile._version import __version__
from pfprofile.cluster.jobs import JobRequest, ceil_power_of_two, floor_power_of_two, parse_jobs, read_jobs
from pfprofile.cluster.nodes import Cluster, NodeGroup, make_cluster, parse_nodes, read_cluster
from pfprofile.cluster.speed_table import SpeedTable, build_table
from pfprofile.errors import InputError, UsageError, nearest
from pfprofile.model.interface import PerformanceModel
from pfprofile.model.store import find_model, known_models, load_model, local_models
from pfprofile.policy.base import Job
from pfprofile.profile.places import device_slug


@dataclass(slots=True)
class Inputs:
    """Everything a plan is made from.

    Attributes:
        jobs: with speed tables, in file order.
        requests: the same jobs as asked for.
        batches: global batch of each job.
        cluster: its pools.
        notices: what the person should know.
        provenance: digests, sources and versions, for the schedule.
        models: one of those that each ``model`` in the requests means.
    """

    jobs: list[Job]
    requests: list[JobRequest]
    batches: list[int]
    cluster: Cluster
    notices: list[str]
    provenance: dict[str, Any]
    models: dict[str, PerformanceModel] = field(default_factory=dict)


@dataclass(slots=True)
class Library:
    """Models by name and device, loaded once.

    Attributes:
        folder: where fitted models lie.
        used: what was loaded, by path.
    """

    folder: Path
    used: dict[Path, PerformanceModel] = field(default_factory=dict)

    def load(self, path: Path) -> PerformanceModel:
        """A model file, once."""
        if path not in self.used:
            self.used[path] = load_model(path, self.folder)
        return self.used[path]

    def named(self, name: str, slugs: Sequence[str]) -> list[PerformanceModel]:
        """The models a job's ``model`` means on these device types; a path or a full name means one.

        Raises:
            InputError: none of that name; the nearest is offered.
        """
        known = known_models(self.folder)
        paths = [] if Path(name).is_file() else [known[f"{slug}/{name}"] for slug in slugs if f"{slug}/{name}" in known]
        return [self.load(path) for path in (paths or [find_model(name, self.folder)])]


#: entries with a file's keys, in place of the file
Entries = Sequence[Mapping[str, Any]]


def load_inputs(jobs_path: Path | Entries | None, cluster_path: Path | Entries | None, models: Path) -> Inputs:
    """Read and check all inputs of a plan.

    Args:
        jobs_path: jobs file, or its entries; None = one epoch of every fitted model with power.
        cluster_path: cluster file, or its groups; None = the machine the models were profiled on.
        models: folder of fitted models.

    Raises:
        InputError: see `pfprofile.cluster.jobs.read_jobs`, `pfprofile.cluster.nodes.read_cluster`; an unknown model,
            one without power, a GPU type no model is for, a job that fits nowhere.
        UsageError: profiles of several device types and no cluster file.
    """
    library, notices = Library(models), list[str]()
    where = str(jobs_path) if isinstance(jobs_path, Path) else str(models) if jobs_path is None else "jobs"
    if jobs_path is None:
        requests = _epoch_jobs(library, notices)
    else:
        requests = read_jobs(jobs_path) if isinstance(jobs_path, Path) else parse_jobs(jobs_path, where)
    if cluster_path is None:
        groups = _own_machine(library, requests, where)
    else:
        groups = read_cluster(cluster_path) if isinstance(cluster_path, Path) else parse_nodes(cluster_path, "cluster")
    slugs = list(dict.fromkeys(g.gpu for g in groups))
    found = {r.model: _models(library, r, slugs, where) for r in requests}
    idle = {s: _idle_power(found, s) for s in slugs}
    cluster = make_cluster(groups, idle)
    notices += [f"{what} is not known; it counts as 0 W" for what in cluster.unknown]
    jobs = _bind(requests, found, cluster, where, notices)
    provenance = {
        "tool_version": __version__,
        "jobs": _origin(jobs_path, f"one epoch of each model in {models}"),
        "cluster": _origin(cluster_path, "the machine the models were profiled on"),
        "models": [
            {"name": f"{device_slug(m.device_name)}/{m.workload}", "device_name": m.device_name, "source": m.source,
             "digest": m.digest}
            for m in library.used.values()
        ],
    }  # fmt: skip
    synthetic = sorted({m.workload for m in library.used.values() if m.source == "synthetic"})
    if synthetic:
        notices.append(f"synthetic, not measured: the models of {', '.join(synthetic)}")
    batches = [next(iter(job.tables.values())).global_batch for job in jobs]
    first = {name: next(iter(models.values())) for name, models in found.items()}
    return Inputs(jobs, requests, batches, cluster, notices, provenance, first)


def _origin(path: Path | Entries | None, words: str) -> dict[str, Any]:
    if path is None:
        return {"source": words, "digest": None}
    if not isinstance(path, Path):
        text = json.dumps([dict(entry) for entry in path], sort_keys=True, default=str)
        return {"source": "given in memory", "digest": hashlib.sha256(text.encode()).hexdigest()}
    return {"source": path.name, "digest": hashlib.sha256(path.read_bytes()).hexdigest()}


def _epoch_jobs(library: Library, notices: list[str]) -> list[JobRequest]:
    """One epoch of every model in the folder that has power."""
    requests: list[JobRequest] = []
    own = local_models(library.folder)
    if not own:
        raise InputError(f"{library.folder}: no fitted models", "fit some with: pfprofile fit, or name --jobs")
    for name, path in own.items():
        model = library.load(path)
        if not model.has_power:
            notices.append(f"{name} is skipped: its profile has no power")
        elif model.facts.samples_per_epoch is None:
            notices.append(f"{name} is skipped: its samples per epoch are not known")
        elif _global_batch(None, model) is None:
            notices.append(f"{name} is skipped: its default global batch is not known")
        else:
            requests.append(JobRequest(name=name, model=str(path), epochs=1.0))
            continue
        del library.used[path]
    if not requests:
        raise InputError(f"{library.folder}: no model can be planned by itself", "; ".join(notices))
    return requests


def _own_machine(library: Library, requests: list[JobRequest], where: str) -> list[NodeGroup]:
    """As many nodes of the profiled machine as the largest profiled GPU count needs."""
    models = [model for r in requests for model in _named(library, r, (), where)]
    slugs = sorted({device_slug(m.device_name) for m in models})
    if len(slugs) > 1:
        raise UsageError(
            f"the models are of several device types ({', '.join(slugs)})", "describe the cluster with --cluster FILE"
        )
    size = max(m.gpus_per_node for m in models)
    largest = max(_largest_profiled(m) for m in models)
    return [NodeGroup(name="node", gpu=slugs[0], count=max(1, -(-largest // size)), gpus_per_node=size)]


def _largest_profiled(model: PerformanceModel) -> int:
    document = getattr(model, "document", None)
    return max(document.domain.n_gpus) if document is not None else model.gpus_per_node


def _label(request: JobRequest, where: str) -> str:
    return f"{where}: job {request.name!r}: key model"


def _named(library: Library, request: JobRequest, slugs: Sequence[str], where: str) -> list[PerformanceModel]:
    """`Library.named`, with the job in its error."""
    try:
        return library.named(request.model, slugs)
    except InputError as error:
        raise InputError(f"{_label(request, where)}: {error.message}", error.hint) from None


def _models(library: Library, request: JobRequest, slugs: list[str], where: str) -> dict[str, PerformanceModel]:
    """A job's models by device slug."""
    label = _label(request, where)
    found = _named(library, request, slugs, where)
    by_slug = {device_slug(m.device_name): m for m in found if device_slug(m.device_name) in slugs}
    if not by_slug:
        device = device_slug(found[0].device_name)
        raise InputError(
            f"{label}: {request.model!r} was profiled on {device}, but the cluster has {', '.join(slugs)}"
            f"{nearest(device, slugs)}",
            f"fit a model for {slugs[0]}, or correct key gpu in the cluster file",
        )
    for model in by_slug.values():
        if not model.has_power:
            raise InputError(
                f"{label}: {request.model!r} has no power, so its energy cannot be planned", "profile it with power"
            )
    return by_slug


def _idle_power(found: dict[str, dict[str, PerformanceModel]], slug: str) -> float | None:
    """The least idle power that a model of this device measured, W."""
    known = [m.idle_power_w for models in found.values() for s, m in models.items() if s == slug]
    return min((w for w in known if w is not None), default=None)


def _global_batch(asked: int | None, model: PerformanceModel) -> int | None:
    return asked or model.facts.default_global_batch or model.facts.reference_local_batch


def _bind(
    requests: list[JobRequest],
    found: dict[str, dict[str, PerformanceModel]],
    cluster: Cluster,
    where: str,
    notices: list[str],
) -> list[Job]:
    tables: dict[tuple[str, int, int, int], SpeedTable] = {}
    said: set[str] = set()

    def notice(text: str) -> None:
        if text not in said:
            said.add(text)
            notices.append(text)

    return [_bind_one(r, found[r.model], cluster, f"{where}: job {r.name!r}", tables, notice) for r in requests]


def _bind_one(
    request: JobRequest,
    models: dict[str, PerformanceModel],
    cluster: Cluster,
    label: str,
    tables: dict[tuple[str, int, int, int], SpeedTable],
    notice: Callable[[str], None],
) -> Job:
    least = ceil_power_of_two(request.min_gpus)
    most = floor_power_of_two(request.max_gpus) if request.max_gpus else max(p.max_job_gpus for p in cluster.pools)
    largest = max(p.max_job_gpus for p in cluster.pools if p.gpu in models)
    if least > largest:
        raise InputError(
            f"{label}: key min_gpus: {request.min_gpus} GPUs (as a power of two {least}) are more than one job can get "
            f"here ({largest})",
            "lower min_gpus or add nodes",
        )
    first = next(iter(models.values()))
    batch = _global_batch(request.global_batch, first)
    if batch is None:
        raise InputError(f"{label}: key global_batch: missing, and the model knows no default", "add global_batch")
    options: dict[int, SpeedTable] = {}
    for index, pool in enumerate(cluster.pools):
        model = models.get(pool.gpu)
        if model is None:
            notice(f"model {request.model} is not fitted for {pool.gpu}; its jobs do not run there")
            continue
        key = (model.digest, batch, index, least)
        if key not in tables:
            tables[key] = build_table(model, batch, pool, least)
        if tables[key].counts(least, most):
            options[index] = tables[key]
            if tables[key].extrapolated:
                notice(f"model {request.model} is extrapolated for a global batch of {batch}")
    if not options:
        raise InputError(
            f"{label}: no GPU count from {least} to {most} can be predicted for a global batch of {batch}",
            "change min_gpus, max_gpus or global_batch, or profile more",
        )
    work = _work(request, batch, first, label)
    deadline = request.submit_s + request.deadline_s if request.deadline_s is not None else float("inf")
    return Job(request.name, request.submit_s, work, least, most, options, deadline, request.rescale_s)


def _work(request: JobRequest, batch: int, model: PerformanceModel, label: str) -> float:
    """The job's work in samples."""
    if request.samples is not None:
        return request.samples
    if request.steps is not None:
        return request.steps * batch
    assert request.epochs is not None
    if model.facts.samples_per_epoch is None:
        raise InputError(f"{label}: key epochs: the model does not know its samples per epoch", "give samples or steps")
    return request.epochs * model.facts.samples_per_epoch
