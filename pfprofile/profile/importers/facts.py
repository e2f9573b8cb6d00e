"""`--set`: constants for columns, and the facts about workload and machine that a profile's metadata holds."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from pfprofile.errors import UsageError, nearest
from pfprofile.profile.metadata import ProfileMetadata, WorkloadFacts
from pfprofile.profile.schema import BY_NAME

_WORKLOAD_FACTS = ("sample_unit", "samples_per_epoch", "reference_local_batch", "default_global_batch")
_MACHINE_FACTS = ("gpus_per_node", "default_clock_mhz", "supported_clocks_mhz", "driver_version", "host")
FACTS = (*_WORKLOAD_FACTS, *_MACHINE_FACTS)


def pairs(items: Sequence[str], option: str, example: str) -> dict[str, str]:
    """``TARGET=VALUE`` strings of an option as a dict. Raises UsageError for another form, or a target given twice."""
    pairs: dict[str, str] = {}
    for item in items:
        target, equals, value = (part.strip() for part in item.partition("="))
        if not equals or not target or not value:
            raise UsageError(f"{option} {item!r} is not TARGET=VALUE", f"write for example {option} {example}")
        if target in pairs:
            raise UsageError(f"{option}: {target} is given twice")
        pairs[target] = value
    return pairs


def split_targets(constants: Mapping[str, str]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Sort ``--set`` into column constants and metadata facts, each in its column's or key's type.

    Raises:
        UsageError: an unknown target (the nearest is named) or a value of the wrong kind.
    """
    columns: dict[str, Any] = {}
    facts: dict[str, Any] = {}
    for target, text in constants.items():
        if target in BY_NAME:
            columns[target] = _column_value(target, text)
        elif target in FACTS:
            facts[target] = _fact_value(target, text)
        else:
            known = (*BY_NAME, *FACTS)
            raise UsageError(f"--set: no profile column or fact {target!r}{nearest(target, known)}")
    return columns, facts


def _column_value(target: str, text: str) -> Any:
    import pyarrow as pa

    column = BY_NAME[target]
    if pa.types.is_integer(column.type):
        return _whole(target, text)
    if pa.types.is_floating(column.type):
        return _number(target, text)
    if column.choices and text not in column.choices:
        raise UsageError(f"--set {target}={text}: expected one of {', '.join(column.choices)}")
    if pa.types.is_timestamp(column.type):
        raise UsageError(f"--set {target}: a start time belongs to a trial", f"use --map {target}=COLUMN")
    return text


def _fact_value(target: str, text: str) -> Any:
    if target in ("samples_per_epoch", "reference_local_batch", "default_global_batch", "gpus_per_node"):
        return _whole(target, text)
    if target == "default_clock_mhz":
        return _number(target, text)
    if target == "supported_clocks_mhz":
        return tuple(sorted(_number(target, part) for part in text.split(",")))
    return text


def _number(target: str, text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise UsageError(f"--set {target}={text}: expected a number")
    return value


def _whole(target: str, text: str) -> int:
    value = _number(target, text)
    if value != int(value) or value < 1:
        raise UsageError(f"--set {target}={text}: expected a whole number from 1 on")
    return int(value)


def metadata_from(
    facts: Mapping[str, Any], rows: Sequence[Mapping[str, Any]], notes: tuple[str, ...], version: str
) -> ProfileMetadata:
    """Metadata of an imported profile: what was said, and what the rows themselves show."""
    limits = {row.get("power_limit_w") for row in rows}
    per_node = facts.get("gpus_per_node") or _gpus_per_node(rows)
    machine = {k: facts[k] for k in _MACHINE_FACTS if k in facts and k != "gpus_per_node"}
    return ProfileMetadata(
        source="imported",
        tool_version=version,
        gpu_name=str(rows[0]["device_name"]),
        power_limit_w=limits.pop() if len(limits) == 1 else None,
        gpus_per_node=per_node,
        workload=WorkloadFacts(**{k: facts[k] for k in _WORKLOAD_FACTS if k in facts}),
        notes=notes,
        **machine,
    )


def _gpus_per_node(rows: Sequence[Mapping[str, Any]]) -> int | None:
    """The most GPUs that any trial had on one node; unknown where no trial needed more than one node."""
    most = [max(int(n) for n in str(row["placement"]).split("-")) for row in rows if row.get("placement")]
    if most and max(row.get("n_nodes") or 1 for row in rows) > 1:
        return max(most)
    return None
