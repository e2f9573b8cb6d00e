"""The model file: one JSON object, checked by pydantic; no pickle, plain numbers, every float to its last digit."""

from __future__ import annotations

import hashlib
import json
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from pfprofile.errors import InputError
from pfprofile.model.schema_table import schema_table
from pfprofile.units import counted

MODEL_VERSION = 1


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", allow_inf_nan=False, frozen=True)


class Parameter(_Strict):
    """One fitted or frozen parameter."""

    name: str = Field(description="as in docs/models.md")
    unit: str = Field(description="unit of the value; empty: none")
    value: float = Field(description="its value")
    stderr: float | None = Field(default=None, description="standard error of the value; null where it is frozen")
    frozen: bool = Field(description="not fitted: kept at its prior")
    reason: str | None = Field(default=None, description="why it is frozen, weak or at a bound")
    weak: bool = Field(default=False, description="the data hardly tell it")
    at_bound: bool = Field(default=False, description="lies at a limit of its range")


class Covariance(_Strict):
    """Covariance of the solver's parameters (logarithms, save rho and phi_knee)."""

    names: list[str] = Field(description="parameter of each row and column")
    matrix: list[list[float]] = Field(description="covariance, row by row")


class Noise(_Strict):
    """Spread of the data about the form, nats."""

    time: float = Field(ge=0, description="of the logarithm of the step time")
    power: float | None = Field(default=None, ge=0, description="of the logarithm of the power; null: no power")
    dof: float = Field(gt=0, description="effective degrees of freedom behind it")


class ResidualPart(_Strict):
    """Gaussian process on the log residuals of time or power."""

    amplitude: float = Field(gt=0, description="standard deviation of the process, nats")
    noise: float = Field(ge=0, description="standard deviation of a single point, nats")
    inputs: list[list[float]] = Field(description="log n_gpus, log n_nodes, log local_batch, log φ/0.25 of each")
    values: list[float] = Field(description="log residual of each")


class Residual(_Strict):
    """Residual stage: what the form leaves over, by distance to the measured points."""

    time: ResidualPart | None = Field(default=None, description="of the step time; null: none")
    power: ResidualPart | None = Field(default=None, description="of the power; null: none")


class Clocks(_Strict):
    """Clocks of the device and of the fit, MHz."""

    f_max_mhz: float | None = Field(description="clock at which the relative clock is 1")
    default_mhz: float | None = Field(description="clock of an unlocked GPU")
    supported_mhz: list[float] = Field(description="SM clocks that may be locked; empty = unknown or none")
    cap_w: float | None = Field(description="power limit that holds high clocks down, W")
    cap_inferred: bool = Field(default=False, description="the cap was read off a plateau, not recorded")
    achieved_share: float = Field(
        default=1.0, description="median achieved over requested clock where nothing limited it"
    )


class Domain(_Strict):
    """What was measured: the distinct values of each axis."""

    n_gpus: list[int] = Field(description="GPU counts")
    n_nodes: list[int] = Field(description="node counts")
    local_batch: list[int] = Field(description="samples a GPU takes in a forward pass")
    accum_steps: list[int] = Field(description="forward passes in a step")
    clock_mhz: list[float] = Field(description="clocks, MHz; the default one among them if measured")
    power_limit_w: list[float] = Field(description="enforced limits of one GPU, W")
    gpus_one_node: list[int] = Field(description="GPU counts above 1 on one node")
    gpus_per_node_across: list[float] = Field(description="GPUs a node in points that span nodes")
    max_local_batch: int | None = Field(description="largest local batch that is known to fit")
    oom_local_batch: int | None = Field(default=None, description="smallest local batch that did not fit")
    gpus_per_node: int = Field(description="GPUs in one node of the machine")


class Facts(_Strict):
    """Facts about the workload."""

    sample_unit: str = Field(default="sample", description="what is counted: image, sequence, …")
    samples_per_epoch: int | None = Field(default=None, description="size of its data set")
    reference_local_batch: int | None = Field(default=None, description="largest usual batch of one GPU")
    default_global_batch: int | None = Field(default=None, description="samples of a step where nobody says")


class PartQuality(_Strict):
    """Errors of one part; MAPE is a fraction (0.02 = 2 %)."""

    in_sample_mape: float = Field(description="on the data that it was fitted to")
    cv: dict[str, float] = Field(default_factory=dict, description="axis -> MAPE with one value of it left out")
    coverage: dict[str, float] = Field(default_factory=dict, description="axis -> share of left-out points in 90 %")
    baselines: dict[str, dict[str, float]] = Field(default_factory=dict, description="baseline -> axis -> MAPE")


class Quality(_Strict):
    """Errors on the data, in-sample and held out."""

    throughput: PartQuality
    power: PartQuality | None = None


class WorstRow(_Strict):
    """A measured point that the model misses."""

    n_gpus: int = Field(description="GPUs")
    n_nodes: int = Field(description="nodes")
    local_batch: int = Field(description="samples a GPU takes in a forward pass")
    sm_clock_mhz: float | None = Field(description="clock, MHz; null: not locked")
    part: Literal["time", "power"] = Field(description="which of the two it misses")
    error: float = Field(description="predicted over measured, less 1")
    measured: float = Field(description="s or W")


class NextPoint(_Strict):
    """A point worth measuring next."""

    n_gpus: int = Field(description="GPUs")
    n_nodes: int = Field(description="nodes")
    local_batch: int = Field(description="samples a GPU takes in a forward pass")
    sm_clock_mhz: float | None = Field(description="clock, MHz; null: not locked")
    reason: str = Field(description="what it would tell")


class Advice(_Strict):
    """Where the model is bad and what would help."""

    worst: list[WorstRow] = Field(default_factory=list, description="measured points with the greatest errors")
    next_points: list[NextPoint] = Field(default_factory=list, description="points worth measuring")


class Provenance(_Strict):
    """Where the model comes from."""

    profile_digest: str = Field(description="SHA-256 of the data that it was fitted to")
    rows: int = Field(description="trials")
    points: int = Field(description="different points among them")
    created_at: str | None = Field(default=None, description="UTC, ISO 8601")
    tool_version: str = Field(description="pfprofile that fitted it")
    replayed_from: dict[str, str] | None = Field(None, description="name and digest of a replay's recording")
    notes: list[str] = Field(default_factory=list, description="sources and assumptions in words")

    @property
    def extent(self) -> str:
        """``72 trials, 24 points``."""
        return f"{counted(self.rows, 'trial')}, {counted(self.points, 'point')}"


class ModelDocument(_Strict):
    """A fitted throughput (and power) model of one workload on one device type."""

    kind: Literal["pfprofile-model"] = Field(default="pfprofile-model", description="says what the file is")
    format_version: int = Field(default=MODEL_VERSION, description="version of this file format")
    workload: str = Field(description="the training job's network and data shape")
    device_name: str = Field(description="the device as its driver names it")
    precision: str = Field(description="number format of the computation")
    source: Literal["measured", "synthetic", "imported"] = Field(description="what the data were")
    facts: Facts
    forms: dict[str, str | None] = Field(description="throughput form and power form (null: no power)")
    parameters: list[Parameter] = Field(description="all of both forms")
    covariance: Covariance
    noise: Noise
    residual: Residual | None = Field(default=None, description="null: the forms alone")
    clocks: Clocks
    domain: Domain
    idle_power_w: float | None = Field(
        default=None, description="of one GPU with a context and no work, W; null: unknown"
    )
    converged: bool = Field(description="the solver reached an optimum")
    quality: Quality
    advice: Advice = Field(default_factory=Advice)
    provenance: Provenance
    warnings: list[str] = Field(default_factory=list, description="what its reader should know")

    def to_json(self) -> str:
        """The file's text; equal models give equal text."""
        return json.dumps(self.model_dump(), indent=1, allow_nan=False) + "\n"

    def digest(self) -> str:
        """SHA-256 of what the model says (not of when it was made)."""
        body = self.model_dump()
        body["provenance"].pop("created_at")
        return hashlib.sha256(json.dumps(body, sort_keys=True, allow_nan=False).encode()).hexdigest()


def from_json(text: str, where: str) -> ModelDocument:
    """Read a model file.

    Raises:
        InputError: not JSON, not a model, an unknown version, a missing or unknown key; it names the key.
    """
    try:
        body: Any = json.loads(text)
    except ValueError as error:
        raise InputError(f"{where}: not JSON: {error}") from None
    if not isinstance(body, dict) or body.get("kind") != "pfprofile-model":
        raise InputError(f"{where}: JSON, but not a pfprofile model", "models are written by: pfprofile fit")
    version = body.get("format_version")
    if version != MODEL_VERSION:
        hint = "upgrade pfprofile" if isinstance(version, int) and version > MODEL_VERSION else "fit it again"
        raise InputError(f"{where}: model format version {version!r}, this pfprofile reads {MODEL_VERSION}", hint)
    try:
        return ModelDocument.model_validate(body)
    except ValidationError as error:
        first = error.errors()[0]
        key = ".".join(map(str, first["loc"])) or "model"
        raise InputError(f"{where}: {key}: {first['msg']}", "fit it again") from None


def json_schema() -> dict[str, Any]:
    """The JSON Schema of the model file."""
    return ModelDocument.model_json_schema()


def field_table() -> list[dict[str, str]]:
    """One row a field of the model file."""
    return schema_table(json_schema())
