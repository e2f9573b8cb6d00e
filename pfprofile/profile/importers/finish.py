"""The last steps of every importer: what must be said, what is assumed, what is implausible, and the profile."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pfprofile._version import __version__
from pfprofile.errors import InputError, UsageError
from pfprofile.profile.data import ROW_DEFAULTS, Profile
from pfprofile.profile.importers.base import Imported
from pfprofile.profile.importers.facts import metadata_from
from pfprofile.profile.rows import doubts_of

IDENTITY = ("device_name", "workload", "precision")
_PLACEHOLDERS = {"workload": "NAME", "local_batch": "SAMPLES", "n_gpus": "COUNT", "samples_per_epoch": "COUNT"}
UNKNOWN_DEVICE = "unknown device"


def require(known: Mapping[str, Any], names: Sequence[str], where: str) -> None:
    """What the file cannot say must come by `--set`. Raises UsageError with the whole flag for all that is missing."""
    missing = [name for name in names if known.get(name) is None]
    if missing:
        flags = " ".join(f"--set {name}={_PLACEHOLDERS.get(name, 'VALUE')}" for name in missing)
        raise UsageError(f"{where} does not say {' and '.join(missing)}", f"add {flags}")


def finish(
    rows: Sequence[dict[str, Any]], facts: Mapping[str, Any], paths: Sequence[Path], where: str,
    notes: Sequence[str], notices: Sequence[str],
) -> Imported:  # fmt: skip
    """Check rows and make one profile for each (device, workload, precision).

    Args:
        rows: trials, each possibly with ``line`` for errors.
        facts: of `--set` and of the file, for the metadata; ``gpu_uuids`` too.

    Raises:
        InputError: an implausible value (the suspicion is named).
    """
    said, assumed = list(notices), set()
    for row in rows:
        line = row.pop("line", None)
        place = f"{where}: line {line}" if line else where
        for column, doubt in doubts_of(row):
            raise InputError(f"{place}: {column} is {doubt}", "correct the file, or leave the value out")
        assumed |= _complete(row)
    lacking = sum(row.get("step_time_s") is None for row in rows)
    if lacking:
        which = "no step time" if lacking == len(rows) else f"no step time of {lacking} trials"
        said.append(f"{which} is known, which a fit needs: add --steps COUNT or --set step_time_s=SECONDS")
    if assumed:
        said.append(f"not given and assumed: {', '.join(sorted(assumed))} (say it with --set NAME=VALUE)")
    groups: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
    for row in rows:
        groups.setdefault(tuple(row.get(c) for c in IDENTITY), []).append(row)
    kept = {k: v for k, v in facts.items() if k != "gpu_uuids"}
    all_notes = (*(f"imported from {path.name}" for path in paths), *notes)
    profiles = [
        Profile.from_rows(group, metadata_from(kept, group, all_notes, __version__).with_(
            gpu_uuids=tuple(facts.get("gpu_uuids", ()))))
        for group in groups.values()
    ]  # fmt: skip
    return Imported(profiles, list(dict.fromkeys(said)))


def _complete(row: dict[str, Any]) -> set[str]:
    """Fill in what every row must have; returns what was assumed, in words."""
    assumed = set()
    if row.get("device_name") is None:
        row["device_name"] = UNKNOWN_DEVICE
        assumed.add(f"device_name {UNKNOWN_DEVICE!r}")
    if row.get("n_nodes") is None:
        row["n_nodes"] = 1
        if row["n_gpus"] > 1:
            assumed.add("n_nodes 1")
    if row.get("precision") is None:
        assumed.add(f"precision {ROW_DEFAULTS['precision']}")
    for name in [k for k, v in row.items() if v is None]:
        del row[name]
    return assumed
