"""Which artifact a file is: told by its content, never by its name. Shared by `show`, `check` and `report`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

from pfprofile.errors import InputError
from pfprofile.profile import Profile, read_profile
from pfprofile.profile.places import shipped

_PARQUET = b"PAR1"


class Kind(StrEnum):
    """The artifacts of the chain."""

    profile = "profile"
    model = "model"
    schedule = "schedule"
    comparison = "comparison"


#: keys by which a JSON object is told; all must be there
_KEYS: dict[Kind, frozenset[str]] = {
    Kind.model: frozenset({"workload", "device_name", "parameters", "domain"}),
    Kind.schedule: frozenset({"segments", "jobs", "totals"}),
    Kind.comparison: frozenset({"runs", "equal_energy"}),
}
_EXPECTED = (
    "expected a profile (.parquet), a model (from fit), a schedule (from plan) or a comparison (from compare), "
    "the latter three as JSON"
)


@dataclass(frozen=True, slots=True)
class Artifact:
    """A file that was recognised.

    Attributes:
        body: a `Profile`, or the JSON object as a dict.
    """

    kind: Kind
    path: Path
    body: Profile | Mapping[str, Any]


def find_artifact(name: str) -> Path:
    """A file by path, or a shipped one by its name (``a100-sxm4/resnet50``; its model with ``.json`` behind).

    Raises:
        InputError: neither exists.
    """
    path = Path(name)
    if path.is_file():
        return path
    for suffix in (".parquet", ".json"):
        known = shipped(suffix)
        if name.removesuffix(suffix) in known:
            return known[name.removesuffix(suffix)]
    if path.is_dir():
        raise InputError(f"{name}: a folder, not a file", "name the files in it")
    raise InputError(f"{name}: no such file", _EXPECTED)


def read_artifact(path: Path) -> Artifact:
    """Recognise a file and read it.

    Raises:
        InputError: missing, unreadable, or none of the artifacts; it says what was found and what is expected.
    """
    try:
        with path.open("rb") as file:
            head = file.read(len(_PARQUET))
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}", _EXPECTED) from None
    if head == _PARQUET:
        return Artifact(Kind.profile, path, read_profile(path))
    body = _json_object(path)
    for kind, keys in _KEYS.items():
        if keys <= body.keys():
            return Artifact(kind, path, body)
    raise InputError(f"{path}: a JSON object with the keys {_some(body)}, none of pfprofile's artifacts", _EXPECTED)


def _json_object(path: Path) -> dict[str, Any]:
    try:
        body = json.loads(path.read_bytes().decode("utf-8"), parse_constant=_no_constant)
    except UnicodeDecodeError:
        raise InputError(f"{path}: neither Parquet nor text", _EXPECTED) from None
    except RecursionError:
        raise InputError(f"{path}: JSON nested too deeply", _EXPECTED) from None
    except ValueError as error:
        raise InputError(f"{path}: neither Parquet nor JSON: {error}", _EXPECTED) from None
    if isinstance(body, list):
        first = body[0] if body and isinstance(body[0], dict) else {}
        if "model_path" in first:
            raise InputError(f"{path}: a fit report, which holds no model", f"give {first['model_path']} instead")
        raise InputError(f"{path}: a JSON list, not an artifact", _EXPECTED)
    if not isinstance(body, dict):
        raise InputError(f"{path}: JSON, but not an object", _EXPECTED)
    return body


def _no_constant(word: str) -> float:
    raise ValueError(f"{word} is not JSON (unknown numbers are null)")


def _some(body: Mapping[str, Any]) -> str:
    keys = [repr(key) for key in sorted(body)[:4]]
    return ", ".join(keys) + (" ..." if len(body) > 4 else "") if keys else "(none)"
