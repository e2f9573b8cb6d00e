"""Replanning with jobs under way: a state file, or an earlier schedule and the time now.

A state file (TOML or JSON) says what time it is, what has been done and where jobs sit:

    now = "2h"                     # seconds or text; submit times count from the same zero
    spent = "3kWh"                 # energy used so far; it counts against the budget
    finished = ["nightly"]         # jobs that are done
    [[running]]
    job = "paper"
    done_fraction = 0.4            # or done_samples, done_steps
    gpus = ["rack1-0:0", "rack1-0:1"]   # absent: restarted wherever there is room
    sm_clock_mhz = 1215            # absent: not locked
"""

from __future__ import annotations

import json
import math
import tomllib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, WithJsonSchema

from pfprofile.cluster.checks import first_error, no_bool, read_body
from pfprofile.cluster.jobs import Seconds
from pfprofile.cluster.nodes import Cluster
from pfprofile.cluster.speed_table import Config
from pfprofile.errors import InputError, UsageError, nearest
from pfprofile.plan.actual import Progress, looks_like_slurm, refuse_unseparated, slurm_state
from pfprofile.plan.outcome import Seat
from pfprofile.policy.base import Job
from pfprofile.units import parse_energy


def _joules(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    try:
        return parse_energy(value)
    except UsageError as error:
        raise ValueError(str(error)) from None


Done = Annotated[float, Field(ge=0, allow_inf_nan=False), BeforeValidator(no_bool)]


class RunningFile(BaseModel):
    """One ``[[running]]`` entry."""

    model_config = ConfigDict(extra="forbid")

    job: Annotated[str, Field(description="name in the jobs file")]
    done_samples: Annotated[Done | None, Field(description="work done, in samples")] = None
    done_steps: Annotated[Done | None, Field(description="work done, in optimizer steps")] = None
    done_fraction: Annotated[
        float | None, Field(ge=0, le=1, description="share of its work that is done"), BeforeValidator(no_bool)
    ] = None
    gpus: Annotated[list[str] | None, Field(description="node:index of each; absent: it is restarted anywhere")] = None
    sm_clock_mhz: Annotated[
        float | None, Field(gt=0, description="its clock, MHz; absent: not locked"), BeforeValidator(no_bool)
    ] = None


class StateFile(BaseModel):
    """A state file."""

    model_config = ConfigDict(extra="forbid")

    now: Annotated[Seconds, Field(description="the time, from the same zero as submit")] = 0.0
    spent: Annotated[
        float,
        Field(ge=0, allow_inf_nan=False, description="energy used so far: J, or text such as 3kWh"),
        BeforeValidator(_joules),
        BeforeValidator(no_bool),
        WithJsonSchema({"type": ["number", "string"], "minimum": 0}),
    ] = 0.0
    finished: Annotated[list[str], Field(default_factory=list, description="jobs that are done")]
    running: Annotated[list[RunningFile], Field(default_factory=list, description="jobs that have begun")]


@dataclass(frozen=True, slots=True)
class Underway:
    """What is left to plan.

    Attributes:
        jobs: unfinished jobs with their remaining work.
        seats: where those that run sit, by index in ``jobs``.
        now_s: the plan's start.
        spent_j: energy used so far.
        notices: what the person should know.
    """

    jobs: list[Job]
    seats: dict[int, Seat]
    now_s: float
    spent_j: float
    notices: list[str]


def read_state(
    path: Path, now_s: float | None, manifest: Path | None = None, tell: Callable[[Progress], None] = lambda row: None
) -> StateFile:
    """Read a state file, an earlier schedule at a time, or what Slurm says of an export.

    Args:
        path: the file.
        now_s: the time; a state file may hold it itself.
        manifest: of the export, for sacct's and squeue's output.
        tell: hears planned against actual, script by script.

    Raises:
        InputError: unreadable, an unknown key, a wrong value.
        UsageError: a schedule without a time; sacct's or squeue's output without a time or manifest.
    """
    text = read_body(path)
    if looks_like_slurm(text):
        if now_s is None or manifest is None:
            raise UsageError(f"--running {path}: Slurm's output needs --now TIME and --manifest FILE",
                             "for example --now 2h --manifest slurm-jobs/manifest.json")  # fmt: skip
        told, rows = slurm_state(text, path, manifest, now_s)
        for row in rows:
            tell(row)
        return StateFile.model_validate(told)
    refuse_unseparated(text, path)
    try:
        body = json.loads(text) if path.suffix.lower() == ".json" else tomllib.loads(text)
    except (ValueError, tomllib.TOMLDecodeError) as error:
        raise InputError(f"{path}: neither valid TOML nor JSON: {error}") from None
    if isinstance(body, dict) and "segments" in body:
        if now_s is None:
            raise UsageError(f"--running {path}: a schedule needs --now TIME", "for example --now 2h")
        body = _from_schedule(body, now_s, path)
    elif isinstance(body, dict) and now_s is not None:
        body["now"] = now_s
    try:
        return StateFile.model_validate(body)
    except ValidationError as error:
        where = error.errors()[0]["loc"]
        model = RunningFile if where and where[0] == "running" else StateFile
        raise InputError(f"{path}: {first_error(error, model)}") from None


def _from_schedule(body: dict[str, Any], now_s: float, path: Path) -> dict[str, Any]:
    """What a schedule says has happened by ``now_s``, had it been kept to."""
    done: dict[str, float] = {}
    sits: dict[str, dict[str, Any]] = {}
    gpu_j = 0.0
    try:
        for segment in body["segments"]:
            span = min(segment["end_s"], now_s) - segment["start_s"]
            if span <= 0:
                continue
            name = segment["job"]
            done[name] = done.get(name, 0.0) + span * segment["throughput_per_s"]
            gpu_j += span * segment["job_power_w"]
            if segment["end_s"] > now_s:
                sits[name] = {"gpus": segment["gpus"], "sm_clock_mhz": segment["sm_clock_mhz"]}
        finished = [job["name"] for job in body["jobs"] if job["finish_s"] <= now_s]
        share = gpu_j / body["totals"]["gpu_energy_j"] if body["totals"]["gpu_energy_j"] else 0.0
        standing_j = body["totals"]["idle_energy_j"] + body["totals"]["node_energy_j"]
    except (KeyError, TypeError) as error:
        raise InputError(f"{path}: not a schedule of pfprofile: {error}") from None
    running: list[dict[str, Any]] = [
        {"job": name, "done_samples": amount, **sits.get(name, {"gpus": []})}
        for name, amount in done.items()
        if name not in finished
    ]
    return {"now": now_s, "spent": gpu_j + share * standing_j, "finished": finished, "running": running}


def resume(jobs: Sequence[Job], cluster: Cluster, state: StateFile, batches: Sequence[int], where: str) -> Underway:
    """Apply a state to the jobs.

    Args:
        jobs: all jobs of the jobs file.
        cluster: where they run.
        state: what has happened.
        batches: global batch of each job.
        where: the state file, for errors.

    Raises:
        InputError: a job or GPU that does not exist, more work done than asked, GPUs named twice.
    """
    by_name = {job.name: i for i, job in enumerate(jobs)}
    for name in (*state.finished, *(r.job for r in state.running)):
        if name not in by_name:
            raise InputError(f"{where}: unknown job {name!r}{nearest(name, by_name)}")
    entries = {r.job: r for r in state.running}
    seats: dict[int, Seat] = {}
    left: list[Job] = []
    notices: list[str] = []
    taken: dict[str, str] = {}
    for job, batch in zip(jobs, batches, strict=True):
        if job.name in state.finished:
            continue
        entry = entries.get(job.name)
        if entry is not None:
            done = _done(entry, job, batch)
            if done >= job.work:
                raise InputError(f"{where}: job {job.name!r}: all its work is done", "list it under finished")
            anywhere = next(iter(job.tables))
            if done > 0:
                seats[len(left)] = Seat(anywhere, job.tables[anywhere].configs[0], None)
            if entry.gpus:
                for gpu in entry.gpus:
                    if gpu in taken:
                        raise InputError(f"{where}: GPU {gpu} runs both {taken[gpu]!r} and {job.name!r}")
                    taken[gpu] = job.name
                seat = _seat(job, cluster, entry, where)
                if seat is None:
                    notices.append(f"job {job.name!r} sits where the planner would not put it; it is restarted")
                else:
                    seats[len(left)] = seat
            job = replace(job, work=job.work - done)
        left.append(job)
    if not left:
        raise InputError(f"{where}: every job is finished", "there is nothing to plan")
    return Underway(left, seats, state.now, state.spent, notices)


def _done(entry: RunningFile, job: Job, batch: int) -> float:
    if entry.done_samples is not None:
        return entry.done_samples
    if entry.done_steps is not None:
        return entry.done_steps * batch
    return (entry.done_fraction or 0.0) * job.work


def _seat(job: Job, cluster: Cluster, entry: RunningFile, where: str) -> Seat | None:
    """The job's place, if it is one block with a configuration that the model knows."""
    places = {name: (p, i) for p, pool in enumerate(cluster.pools) for i, name in enumerate(pool.node_names)}
    found = []
    for gpu in entry.gpus or []:
        node, _, index = gpu.rpartition(":")
        if node not in places or not index.isdigit() or int(index) >= cluster.pools[places[node][0]].gpus_per_node:
            raise InputError(f"{where}: job {job.name!r}: unknown GPU {gpu!r}{nearest(node, places)}")
        found.append((*places[node], int(index)))
    pools = {p for p, _, _ in found}
    n = len(found)
    pool = next(iter(pools))
    if len(pools) > 1 or pool not in job.tables or n not in job.tables[pool].by_n or not job.min_n <= n <= job.max_n:
        return None

    def gap(config: Config) -> float:
        if entry.sm_clock_mhz is None or config.clock_mhz is None:
            return math.inf if config.clock_mhz != entry.sm_clock_mhz else 0.0
        return abs(config.clock_mhz - entry.sm_clock_mhz)

    config = min(reversed(job.tables[pool].by_n[n]), key=gap)
    return Seat(pool, config, tuple(sorted((node, index) for _, node, index in found)))
