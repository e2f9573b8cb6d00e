"""The model file: one JSON object, checked by pydantic; no pickle, plain numbers, every float to its last digit."""

from __future__ import annotations

import hashlib
import json
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from pfprofile.errors import InputError
from pfprofile.units import counted

MODEL_VERSION = 1


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", allow_inf_nan=False, frozen=True)


class Parameter(_Strict):
    """One fitted or frozen parameter."""

    name: str
    unit: str
    value: float
    stderr: float | None = Field(None, description="standard error of the value; null where it is frozen")
    frozen: bool
    reason: str | None = Field(None, description="why it is frozen, weak or at a bound")
    weak: bool = Field(False, description="the data hardly tell it")
    at_bound: bool = False


class Covariance(_Strict):
    """Covariance of the solver's parameters (logarithms, save rho and phi_knee)."""

    names: list[str]
    matrix: list[list[float]]


class Noise(_Strict):
    """Spread of the data about the form, nats."""

    time: float = Field(ge=0)
    power: float | None = Field(None, ge=0)
    dof: float = Field(gt=0, description="effective degrees of freedom behind it")


class ResidualPart(_Strict):
    """Gaussian process on the log residuals of time or power."""

    amplitude: float = Field(gt=0, description="standard deviation of the process, nats")
    noise: float = Field(ge=0, description="standard deviation of a single point, nats")
    inputs: list[list[float]] = Field(description="log n_gpus, log n_nodes, log local_batch, log φ/0.25 of each")
    values: list[float] = Field(description="log residual of each")


class Residual(_Strict):
    """Residual stage: what the form leaves over, by distance to the measured points."""

    time: ResidualPart | None = None
    power: ResidualPart | None = None


class Clocks(_Strict):
    """Clocks of the device and of the fit, MHz."""

    f_max_mhz: float | None = Field(description="clock at which the relative clock is 1")
    default_mhz: float | None = Field(description="clock of an unlocked GPU")
    supported_mhz: list[float] = Field(description="SM clocks that may be locked; empty = unknown or none")
    cap_w: float | None = Field(description="power limit that holds high clocks down, W")
    cap_inferred: bool = Field(False, description="the cap was read off a plateau, not recorded")
    achieved_share: float = Field(1.0, description="median achieved over requested clock where nothing limited it")


class Domain(_Strict):
    """What was measured: the distinct values of each axis."""

    n_gpus: list[int]
    n_nodes: list[int]
    local_batch: list[int]
    accum_steps: list[int]
    clock_mhz: list[float] = Field(description="clocks, MHz; the default one among them if measured")
    power_limit_w: list[float]
    gpus_one_node: list[int] = Field(description="GPU counts above 1 on one node")
    gpus_per_node_across: list[float] = Field(description="GPUs a node in points that span nodes")
    max_local_batch: int | None = Field(description="largest local batch that is known to fit")
    oom_local_batch: int | None = Field(None, description="smallest local batch that did not fit")
    gpus_per_node: int


class Facts(_Strict):
    """Facts about the workload."""

    sample_unit: str = "sample"
    samples_per_epoch: int | None = None
    reference_local_batch: int | None = None
    default_global_batch: int | None = None


class PartQuality(_Strict):
    """Errors of one part; MAPE is a fraction (0.02 = 2 %)."""

    in_sample_mape: float
    cv: dict[str, float] = Field(default_factory=dict, description="axis -> MAPE with one value of it left out")
    coverage: dict[str, float] = Field(default_factory=dict, description="axis -> share of left-out points in 90 %")
    baselines: dict[str, dict[str, float]] = Field(default_factory=dict, description="baseline -> axis -> MAPE")


class Quality(_Strict):
    """Errors on the data, in-sample and held out."""

    throughput: PartQuality
    power: PartQuality | None = None


class WorstRow(_Strict):
    """A measured point that the model misses."""

    n_gpus: int
    n_nodes: int
    local_batch: int
    sm_clock_mhz: float | None
    part: Literal["time", "power"]
    error: float = Field(description="predicted over measured, less 1")
    measured: float = Field(description="s or W")


class NextPoint(_Strict):
    """A point worth measuring next."""

    n_gpus: int
    n_nodes: int
    local_batch: int
    sm_clock_mhz: float | None
    reason: str


class Advice(_Strict):
    """Where the model is bad and what would help."""

    worst: list[WorstRow] = Field(default_factory=list)
    next_points: list[NextPoint] = Field(default_factory=list)


class Provenance(_Strict):
    """Where the model comes from."""

    profile_digest: str
    rows: int
    points: int
    created_at: str | None = None
    tool_version: str
    replayed_from: dict[str, str] | None = None
    notes: list[str] = Field(default_factory=list)

    @property
    def extent(self) -> str:
        """``72 trials, 24 points``."""
        return f"{counted(self.rows, 'trial')}, {counted(self.points, 'point')}"


class ModelDocument(_Strict):
    """A fitted throughput (and power) model of one workload on one device type."""

    kind: Literal["pfprofile-model"] = "pfprofile-model"
    format_version: int = MODEL_VERSION
    workload: str
    device_name: str
    precision: str
    source: Literal["measured", "synthetic", "imported"]
    facts: Facts
    forms: dict[str, str | None]
    parameters: list[Parameter]
    covariance: Covariance
    noise: Noise
    residual: Residual | None = None
    clocks: Clocks
    domain: Domain
    idle_power_w: float | None = None
    converged: bool
    quality: Quality
    advice: Advice = Field(default_factory=Advice)
    provenance: Provenance
    warnings: list[str] = Field(default_factory=list)

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


def schema_table(schema: dict[str, Any]) -> list[dict[str, str]]:
    """One row a field of a JSON Schema, nested ones by their path: its type, what it means."""
    out: list[dict[str, str]] = []

    def walk(node: dict[str, Any], path: str) -> None:
        for name, item in node.get("properties", {}).items():
            target, kind = _resolve(item, schema)
            out.append({"field": path + name, "type": kind, "description": item.get("description", "")
                        or target.get("description", "").split("\n")[0]})  # fmt: skip
            walk(target, f"{path}{name}.")

    walk(schema, "")
    return out


def _resolve(item: dict[str, Any], schema: dict[str, Any]) -> tuple[dict[str, Any], str]:
    """The object behind a property, and the property's type in words."""
    options = item.get("anyOf", [item])
    words, target = [], {}
    for option in options:
        inner = option.get("items", option)
        if "$ref" in inner:
            name = inner["$ref"].rpartition("/")[2]
            target = schema["$defs"][name]
            words.append(f"list of {name}" if option is not inner else name)
        else:
            kind = option.get("type", "value")
            kind = " or ".join(kind) if isinstance(kind, list) else str(kind)
            words.append(f"list of {inner.get('type', 'value')}" if kind == "array" else kind)
    return target, " or ".join(words)
