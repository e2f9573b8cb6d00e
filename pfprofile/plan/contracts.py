"""The planner's files as JSON Schema and as tables, for `schema`: jobs, cluster, state, schedule."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

from pfprofile.cluster.jobs import WORK_KEYS, JobFile
from pfprofile.cluster.nodes import NodesFile
from pfprofile.model.schema_table import schema_table
from pfprofile.plan.running import StateFile

DIALECT = "https://json-schema.org/draft/2020-12/schema"


class JobsFile(BaseModel):
    """A jobs file."""

    model_config = ConfigDict(extra="forbid")

    job: Annotated[list[JobFile], Field(min_length=1, description="the jobs, by submit")]


class ClusterFile(BaseModel):
    """A cluster file."""

    model_config = ConfigDict(extra="forbid")

    nodes: Annotated[list[NodesFile], Field(min_length=1, description="groups of like nodes")]


class SegmentRow(BaseModel):
    """A stretch of a job on the same GPUs at the same clock."""

    job: Annotated[str, Field(description="name")]
    kind: Annotated[str, Field(description="run, or rescale: checkpoint and restart", pattern="^(run|rescale)$")]
    start_s: Annotated[float, Field(description="begin, s")]
    end_s: Annotated[float, Field(description="end, s")]
    n_gpus: Annotated[int, Field(description="GPUs", gt=0)]
    gpus: Annotated[list[str], Field(description="node:index of each")]
    sm_clock_mhz: Annotated[float | None, Field(description="requested SM clock, MHz; null: not locked")]
    throughput_per_s: Annotated[float, Field(description="samples/s over all its GPUs; 0 while it restarts")]
    job_power_w: Annotated[float, Field(description="power of its GPUs, W")]
    energy_j: Annotated[float, Field(description="energy of its GPUs, J")]


class JobRow(BaseModel):
    """A job's outcome."""

    name: Annotated[str, Field(description="name")]
    submit_s: Annotated[float, Field(description="arrival, s")]
    start_s: Annotated[float, Field(description="first start, s")]
    finish_s: Annotated[float, Field(description="finish, s")]
    jct_s: Annotated[float, Field(description="finish − submit, s")]
    energy_j: Annotated[float, Field(description="energy of its GPUs, J")]
    jct_lo_s: Annotated[float, Field(description="90 % interval of the JCT, lower end, s")]
    jct_hi_s: Annotated[float, Field(description="90 % interval of the JCT, upper end, s")]


class Totals(BaseModel):
    """Sums over the schedule."""

    energy_j: Annotated[float, Field(description="GPUs, idle GPUs and nodes, J")]
    gpu_energy_j: Annotated[float, Field(description="GPUs with a job, J")]
    idle_energy_j: Annotated[float, Field(description="idle GPUs in nodes that are on, J")]
    node_energy_j: Annotated[float, Field(description="nodes that are on, without GPUs, J")]
    avg_jct_s: Annotated[float, Field(description="mean JCT, s")]
    makespan_s: Annotated[float, Field(description="first arrival to last finish, s")]


class BudgetRow(BaseModel):
    """What the schedule was held to."""

    energy_j: Annotated[float | None, Field(description="budget, J; null: none")]
    power_cap_w: Annotated[float | None, Field(description="power cap, W; null: none")]
    used_fraction: Annotated[float | None, Field(description="energy ÷ budget")]
    probability: Annotated[float | None, Field(description="that the budget holds, given the models' errors")]


class BoundRow(BaseModel):
    """What no schedule beats."""

    kind: Annotated[str, Field(description="preemptive or static")]
    avg_jct_s: Annotated[float, Field(description="least average JCT possible, s")]
    gap: Annotated[float, Field(description="how far the schedule lies above it; 0.1 = 10 %")]


class ScheduleFile(BaseModel):
    """A schedule; --pue, --price and --carbon add derived columns."""

    segments: Annotated[list[SegmentRow], Field(description="by start, then job")]
    jobs: Annotated[list[JobRow], Field(description="in the order of the jobs file")]
    totals: Annotated[Totals, Field(description="sums")]
    budget: Annotated[BudgetRow, Field(description="limits")]
    bound: Annotated[BoundRow, Field(description="lower bound")]
    inputs: Annotated[dict[str, Any], Field(description="digest, source and version of all that went in")]


def _schema(model: type[BaseModel]) -> dict[str, Any]:
    return {"$schema": DIALECT, **model.model_json_schema()}


def jobs_schema() -> dict[str, Any]:
    """JSON Schema of a jobs file."""
    schema = _schema(JobsFile)
    schema["$defs"]["JobFile"]["oneOf"] = [{"required": [key]} for key in WORK_KEYS]
    return schema


def cluster_schema() -> dict[str, Any]:
    """JSON Schema of a cluster file."""
    return _schema(ClusterFile)


def state_schema() -> dict[str, Any]:
    """JSON Schema of a state file for ``plan --running``."""
    return _schema(StateFile)


def schedule_schema() -> dict[str, Any]:
    """JSON Schema of a schedule."""
    return _schema(ScheduleFile)


def jobs_table() -> list[dict[str, str]]:
    """One row a key of a jobs file."""
    return schema_table(jobs_schema())


def cluster_table() -> list[dict[str, str]]:
    """One row a key of a cluster file."""
    return schema_table(cluster_schema())


def state_table() -> list[dict[str, str]]:
    """One row a key of a state file."""
    return schema_table(state_schema())


def schedule_table() -> list[dict[str, str]]:
    """One row a field of a schedule."""
    return schema_table(schedule_schema())
