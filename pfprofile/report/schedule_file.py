"""A schedule read for its pictures: the contract's keys checked, any other key let through unread."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from pfprofile.errors import InputError

Finite = Annotated[float, Field(allow_inf_nan=False)]
Amount = Annotated[float, Field(ge=0, allow_inf_nan=False)]


class _Read(BaseModel):
    # A reader of somebody else's contract: a key that a later version adds is no error here.
    model_config = ConfigDict(extra="ignore", frozen=True)


class Segment(_Read):
    """A stretch of one job on the same GPUs at the same clock."""

    job: str
    kind: Literal["run", "rescale"]
    start_s: Finite
    end_s: Finite
    n_gpus: Annotated[int, Field(ge=1)]
    gpus: list[str] = Field(default_factory=list)
    sm_clock_mhz: Amount | None = None
    throughput_per_s: Amount | None = None
    job_power_w: Amount | None = None
    energy_j: Amount | None = None


class Job(_Read):
    """A job's times and energy."""

    name: str
    submit_s: Finite | None = None
    start_s: Finite | None = None
    finish_s: Finite | None = None
    jct_s: Finite | None = None
    energy_j: Amount | None = None
    jct_lo_s: Finite | None = None
    jct_hi_s: Finite | None = None


class Totals(_Read):
    """Sums over the schedule."""

    energy_j: Amount | None = None
    gpu_energy_j: Amount | None = None
    idle_energy_j: Amount | None = None
    node_energy_j: Amount | None = None
    avg_jct_s: Finite | None = None
    makespan_s: Finite | None = None


class Budget(_Read):
    """What was allowed."""

    energy_j: Amount | None = None
    power_cap_w: Amount | None = None
    used_fraction: Amount | None = None
    probability: Amount | None = None


class Bound(_Read):
    """What no schedule can beat."""

    kind: str | None = None
    avg_jct_s: Finite | None = None
    gap: Finite | None = None


class Schedule(_Read):
    """The schedule contract."""

    segments: list[Segment]
    jobs: list[Job]
    totals: Totals
    budget: Budget | None = None
    bound: Bound | None = None
    inputs: Any = None


def read_schedule(body: Mapping[str, Any], path: Path) -> Schedule:
    """Check the keys of the contract.

    Raises:
        InputError: a missing or wrong value, or a segment that ends before it starts; the key is named.
    """
    try:
        schedule = Schedule.model_validate(body)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"]))
        raise InputError(f"{path}: schedule: {where}: {first['msg']}", "make it again with: pfprofile plan") from None
    for i, segment in enumerate(schedule.segments):
        if segment.end_s < segment.start_s:
            raise InputError(f"{path}: schedule: segments.{i} ({segment.job}) ends before it starts")
    return schedule


def sources_in(inputs: Any) -> tuple[str, ...]:
    """Every `source` that stands anywhere in the inputs, in the order measured, imported, synthetic."""
    found: set[str] = set()
    stack = [inputs]
    while stack:
        item = stack.pop()
        if isinstance(item, Mapping):
            source = item.get("source")
            found.update([source] if isinstance(source, str) else [])
            stack.extend(item.values())
        elif isinstance(item, list):
            stack.extend(item)
    return tuple(word for word in ("measured", "imported", "synthetic") if word in found)


def split_gpu(name: str) -> tuple[str, int]:
    """``node:index`` → (node, index); a name without a number stands for itself."""
    node, _, index = name.rpartition(":")
    return (node, int(index)) if node and index.isdecimal() else (name, 0)
