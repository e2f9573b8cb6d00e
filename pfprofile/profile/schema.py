"""The columns of a profile: one row a trial, unknown is null. This table is the contract; docs and checks read it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import pyarrow as pa

from pfprofile.profile.words import FORMAT_VERSION, LIMITS, METADATA_KEY, SOURCES, STATUSES

__all__ = [
    "BY_NAME", "COLUMNS", "COLUMN_NAMES", "FORMAT_VERSION", "LIMITS", "METADATA_KEY", "SOURCES", "STATUSES", "Column",
    "arrow_schema",
]  # fmt: skip


@dataclass(frozen=True, slots=True)
class Column:
    """One column: its Arrow type, unit ("" where it has none), whether a row may leave it null, what it means."""

    name: str
    type: pa.DataType
    unit: str
    nullable: bool
    description: str
    choices: tuple[str, ...] = ()


_I, _F, _S = pa.int64(), pa.float64(), pa.string()

COLUMNS: tuple[Column, ...] = (
    Column("trial_id", _S, "", False, "identifies the trial inside its profile"),
    Column("workload", _S, "", False, "the training job's network and data shape"),
    Column("device_name", _S, "", False, "the device as its driver names it"),
    Column("n_gpus", _I, "", False, "devices that train together (CPU: processes)"),
    Column("n_nodes", _I, "", False, "nodes they sit on"),
    Column("placement", _S, "", True, "GPUs on each node, e.g. 4-4"),
    Column("local_batch", _I, "samples", False, "samples a GPU takes in one forward pass"),
    Column("accum_steps", _I, "", False, "forward passes accumulated in one optimizer step"),
    Column("precision", _S, "", False, "number format of the computation, e.g. fp32, bf16"),
    Column("requested_clock_mhz", _F, "MHz", True, "SM clock that was locked; null = not locked"),
    Column("achieved_clock_mhz", _F, "MHz", True, "median SM clock of the busy samples"),
    Column("limited_by", _S, "", False, "what kept the clock below the request", LIMITS),
    Column("status", _S, "", False, "how the trial ended; failed trials are rows too", STATUSES),
    Column("steps", _I, "", True, "optimizer steps in the measured window"),
    Column("step_time_s", _F, "s", True, "mean time of one optimizer step, the slowest rank's"),
    Column("step_time_std_s", _F, "s", True, "standard deviation of the step time between sub-windows"),
    Column("sync_time_s", _F, "s", True, "part of a step spent waiting for gradient synchronisation"),
    Column("power_w", _F, "W", True, "mean power of one GPU while stepping"),
    Column("power_spread_w", _F, "W", True, "highest minus lowest GPU's mean power"),
    Column("idle_power_w", _F, "W", True, "power of one GPU with a context and no work"),
    Column("energy_j", _F, "J", True, "energy of the measured window, sum over the GPUs"),
    Column("energy_source", _S, "", True, "where the energy comes from: counter, samples, imported"),
    Column("power_limit_w", _F, "W", True, "enforced power limit of one GPU"),
    Column("temperature_c", _F, "°C", True, "highest GPU temperature in the window"),
    Column("memory_peak_bytes", _I, "B", True, "peak device memory of the fullest rank"),
    Column("started_at", pa.timestamp("us", tz="UTC"), "", True, "when the measured window began"),
    Column("error", _S, "", True, "why the trial failed, or what is doubtful in it"),
)
COLUMN_NAMES = tuple(c.name for c in COLUMNS)
BY_NAME = {c.name: c for c in COLUMNS}


@lru_cache(maxsize=1)
def arrow_schema() -> pa.Schema:
    """The explicit pyarrow schema, with description and unit as field metadata."""
    return pa.schema(
        pa.field(c.name, c.type, nullable=c.nullable, metadata={"description": c.description, "unit": c.unit})
        for c in COLUMNS
    )
