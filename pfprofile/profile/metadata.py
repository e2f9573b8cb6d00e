"""What a profile says of itself: one JSON blob in the Parquet file. One table says of each key what it is and
whether two profiles must agree on it to be merged."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, fields, replace
from typing import Any

from pfprofile.errors import InputError, nearest
from pfprofile.profile.words import FORMAT_VERSION, SOURCES


@dataclass(frozen=True, slots=True)
class WorkloadFacts:
    """Facts about a workload that travel with its profile and model (DESIGN: the `workload` facts)."""

    sample_unit: str = "sample"
    samples_per_epoch: int | None = None
    reference_local_batch: int | None = None
    default_global_batch: int | None = None


@dataclass(frozen=True, slots=True)
class ProfileMetadata:
    """The metadata blob; field names are the JSON keys. ``None`` or an empty tuple means unknown."""

    source: str
    format_version: int = FORMAT_VERSION
    tool_version: str | None = None
    replayed_from: dict[str, str] | None = None
    argv: tuple[str, ...] = ()
    seed: int | None = None
    started_at: str | None = None
    host: str | None = None
    driver_version: str | None = None
    torch_version: str | None = None
    cuda_version: str | None = None
    gpu_name: str | None = None
    gpu_uuids: tuple[str, ...] = ()
    power_limit_w: float | None = None
    power_limit_range_w: tuple[float, ...] = ()
    supported_clocks_mhz: tuple[float, ...] = ()
    default_clock_mhz: float | None = None
    gpus_per_node: int | None = None
    workload: WorkloadFacts = field(default_factory=WorkloadFacts)
    settings: dict[str, Any] = field(default_factory=dict)
    sweep: dict[str, Any] | None = None
    notes: tuple[str, ...] = ()

    def with_(self, **changes: Any) -> ProfileMetadata:
        """A copy with some keys changed."""
        return replace(self, **changes)


#: key -> must two profiles agree on it to be merged? (what it means, for `schema profile`)
KEYS: dict[str, tuple[bool, str]] = {
    "source": (True, "measured, synthetic or imported"),
    "format_version": (False, "version of this file format"),
    "tool_version": (False, "pfprofile that wrote the file"),
    "replayed_from": (False, "name and digest of the recording that a replay answered from"),
    "argv": (False, "the command that made it"),
    "seed": (False, "seed of orders and random data"),
    "started_at": (False, "UTC start, ISO 8601"),
    "host": (False, "machine it ran on"),
    "driver_version": (True, "GPU driver"),
    "torch_version": (True, "torch that trained"),
    "cuda_version": (True, "CUDA of that torch"),
    "gpu_name": (True, "device as its driver names it"),
    "gpu_uuids": (False, "the devices' UUIDs"),
    "power_limit_w": (True, "enforced power limit of one GPU, W"),
    "power_limit_range_w": (False, "least and greatest settable limit, W"),
    "supported_clocks_mhz": (True, "SM clocks the driver offers, MHz"),
    "default_clock_mhz": (True, "SM clock that an unlocked GPU runs at, MHz"),
    "gpus_per_node": (True, "devices in one node"),
    "workload": (True, "sample unit, samples per epoch, reference local batch, default global batch"),
    "settings": (True, "workload settings such as image size"),
    "sweep": (False, "what the sweep was asked for and whether it finished"),
    "notes": (False, "sources and assumptions in words"),
}


def to_json(metadata: ProfileMetadata) -> str:
    """The blob as compact JSON with sorted keys (equal metadata, equal bytes)."""
    body: dict[str, Any] = {f.name: getattr(metadata, f.name) for f in fields(metadata)}
    body["workload"] = {f.name: getattr(metadata.workload, f.name) for f in fields(WorkloadFacts)}
    return json.dumps(body, sort_keys=True, separators=(",", ":"))


def from_json(text: str | bytes, where: str) -> ProfileMetadata:
    """Read the blob.

    Raises:
        InputError: not JSON, an unknown version or key, a value of the wrong kind; ``where`` names the file.
    """
    try:
        body = json.loads(text)
    except ValueError as error:
        raise InputError(f"{where}: the metadata under the key 'pfprofile' is not JSON: {error}") from None
    if not isinstance(body, dict):
        raise InputError(f"{where}: the metadata under the key 'pfprofile' is not a JSON object")
    body = upgrade(body, where)
    for key in body:
        if key not in KEYS:
            raise InputError(f"{where}: unknown metadata key {key!r}{nearest(key, KEYS)}")
    if body.get("source") not in SOURCES:
        raise InputError(f"{where}: metadata source is {body.get('source')!r}", f"expected one of {', '.join(SOURCES)}")
    return ProfileMetadata(**{k: _value(k, v, where) for k, v in body.items()})


def upgrade(body: dict[str, Any], where: str) -> dict[str, Any]:
    """Bring an older version's blob up to the current one; each version adds one step to ``_UPGRADES``.

    Raises:
        InputError: the version is missing or unknown.
    """
    version = body.get("format_version")
    if not isinstance(version, int) or isinstance(version, bool) or version < 1:
        raise InputError(f"{where}: metadata has no usable format_version (found {version!r})")
    if version > FORMAT_VERSION:
        raise InputError(
            f"{where}: format version {version} is newer than {FORMAT_VERSION}, the newest this pfprofile reads",
            "upgrade pfprofile",
        )
    while version < FORMAT_VERSION:
        body = _UPGRADES[version](body)
        version += 1
    return {**body, "format_version": FORMAT_VERSION}


#: version n -> function that turns its blob into version n + 1
_UPGRADES: dict[int, Any] = {}

_TUPLES = {
    "argv": str, "gpu_uuids": str, "power_limit_range_w": float, "supported_clocks_mhz": float, "notes": str,
}  # fmt: skip
_NUMBERS = {"power_limit_w": float, "default_clock_mhz": float, "gpus_per_node": int, "seed": int}


def _value(key: str, value: Any, where: str) -> Any:
    def wrong(expected: str) -> InputError:
        return InputError(f"{where}: metadata {key} is {value!r}", f"expected {expected}")

    if key in _TUPLES:
        kind = _TUPLES[key]
        allowed = (int, float) if kind is float else (str,)
        if not isinstance(value, list) or not all(isinstance(v, allowed) for v in value):
            raise wrong(f"a list of {'numbers' if kind is float else 'strings'}")
        return tuple(kind(v) for v in value)
    if key == "workload":
        return _workload(value, where)
    if value is None:
        return None
    if key in _NUMBERS:
        if not isinstance(value, (int, float)) or isinstance(value, bool):
            raise wrong("a number or null")
        return _NUMBERS[key](value)
    if key in ("settings", "sweep", "replayed_from"):
        if not isinstance(value, dict):
            raise wrong("an object")
        return value
    if key != "format_version" and not isinstance(value, str):
        raise wrong("a string or null")
    return value


def _workload(value: Any, where: str) -> WorkloadFacts:
    known = {f.name for f in fields(WorkloadFacts)}
    if not isinstance(value, dict) or set(value) - known:
        raise InputError(f"{where}: metadata workload is {value!r}", f"expected the keys {', '.join(sorted(known))}")
    for key, item in value.items():
        kinds = (str,) if key == "sample_unit" else (int, type(None))
        if not isinstance(item, kinds) or isinstance(item, bool):
            raise InputError(f"{where}: metadata workload.{key} is {item!r}", "expected a whole number or null")
    return WorkloadFacts(**value)
