"""Join profiles of one device, workload and precision whose checked metadata agree."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, replace
from typing import Any

from pfprofile.errors import InputError
from pfprofile.profile.data import Profile
from pfprofile.profile.metadata import KEYS, ProfileMetadata, WorkloadFacts

#: every trial of a merged profile has the same value here
IDENTITY = ("device_name", "workload", "precision")


def merge(profiles: Sequence[Profile], names: Sequence[str]) -> Profile:
    """Join profiles; a trial that stands in several of them (same start, same numbers) is kept once.

    Args:
        profiles: at least one.
        names: how to call each in an error.

    Raises:
        InputError: identity columns or checked metadata differ; it names both files, the key and both values.
            An unknown (null) value agrees with anything.
    """
    metadata, first = profiles[0].metadata, names[0]
    for profile, name in zip(profiles[1:], names[1:], strict=True):
        metadata = _agreed(metadata, profile.metadata, first, name)
    _same_identity(profiles, names)
    rows: list[dict[str, Any]] = []
    seen: set[tuple[Any, ...]] = set()
    for profile in profiles:
        for row in profile.rows():
            key = tuple(v for k, v in sorted(row.items()) if k != "trial_id")
            # Without a start time two equal rows may be two trials (a quantised table): keep both.
            if row["started_at"] is not None and key in seen:
                continue
            seen.add(key)
            rows.append({**row, "trial_id": f"t{len(rows):05d}"})
    return Profile.from_rows(rows, metadata)


def _same_identity(profiles: Sequence[Profile], names: Sequence[str]) -> None:
    for column in IDENTITY:
        values: dict[Any, str] = {}
        for profile, name in zip(profiles, names, strict=True):
            for value in profile.unique(column):
                values.setdefault(value, name)
        if len(values) > 1:
            (a, file_a), (b, file_b) = list(values.items())[:2]
            raise InputError(
                f"cannot merge: {column} is {a!r} in {file_a} and {b!r} in {file_b}", f"merge one {column} at a time"
            )


def _agreed(a: ProfileMetadata, b: ProfileMetadata, name_a: str, name_b: str) -> ProfileMetadata:
    changes: dict[str, Any] = {}
    for key, (checked, _) in KEYS.items():
        old, new = getattr(a, key), getattr(b, key)
        if key == "workload":
            changes[key] = _agreed_facts(old, new, name_a, name_b)
        elif checked and not _unknown(old) and not _unknown(new) and old != new:
            raise _differ(f"metadata {key}", old, new, name_a, name_b)
        elif _unknown(old):
            changes[key] = new
    changes["gpu_uuids"] = tuple(dict.fromkeys(a.gpu_uuids + b.gpu_uuids))
    changes["notes"] = tuple(dict.fromkeys(a.notes + b.notes))
    # A joined profile is nobody's unfinished sweep and no single run's command.
    changes.update(sweep=None, argv=(), seed=a.seed if a.seed == b.seed else None)
    return replace(a, **changes)


def _agreed_facts(a: WorkloadFacts, b: WorkloadFacts, name_a: str, name_b: str) -> WorkloadFacts:
    values: dict[str, Any] = {}
    for field in fields(WorkloadFacts):
        old, new = getattr(a, field.name), getattr(b, field.name)
        if old is not None and new is not None and old != new:
            raise _differ(f"metadata workload.{field.name}", old, new, name_a, name_b)
        values[field.name] = new if old is None else old
    return WorkloadFacts(**values)


def _unknown(value: Any) -> bool:
    return value is None or value in ((), {})


def _differ(what: str, old: Any, new: Any, name_a: str, name_b: str) -> InputError:
    def short(value: Any) -> str:
        text = repr(value)
        return text if len(text) <= 60 else text[:57] + "..."

    return InputError(f"cannot merge: {what} is {short(old)} in {name_a} and {short(new)} in {name_b}")
