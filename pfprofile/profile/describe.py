"""The profile contract and profiles themselves, as rows for tables."""

from __future__ import annotations

from typing import Any

from pfprofile.profile.data import Profile
from pfprofile.profile.metadata import KEYS
from pfprofile.profile.schema import COLUMNS
from pfprofile.units import counted


def column_table() -> list[dict[str, Any]]:
    """One row a column of the profile: its type, unit, whether it may be null, what it means."""
    return [
        {
            "column": c.name,
            "type": str(c.type),
            "unit": c.unit,
            "null": "yes" if c.nullable else "no",
            "description": c.description + (f" ({', '.join(c.choices)})" if c.choices else ""),
        }
        for c in COLUMNS
    ]


def metadata_table() -> list[dict[str, Any]]:
    """One row a key of the metadata blob: whether merged profiles must agree on it, what it means."""
    return [{"key": k, "must_agree": "yes" if c else "no", "description": text} for k, (c, text) in KEYS.items()]


def headline(profile: Profile) -> str:
    """What a profile is, in one line."""
    words = [" + ".join(map(str, profile.unique(c))) for c in ("workload", "device_name", "precision")]
    failed = profile.n_rows - profile.ok().n_rows
    trials = counted(profile.n_rows, "trial") + (f", {failed} failed" if failed else "")
    return f"{words[0]} on {words[1]}, {words[2]}, {trials}, {profile.metadata.source}"


def findings_table() -> list[dict[str, Any]]:
    """One row a column of ``check --format json|csv``."""
    told = {
        "what": "what is doubtful, in words",
        "where": "the rows, column or part of the file that it stands in",
        "next_command": "what to type next",
    }
    return [{"column": k, "type": "string", "unit": "", "null": "no", "description": v} for k, v in told.items()]
