"""The Parquet profile: schema, read, write, merge, import.

The public names load on first use, so that a room that only needs a name or a slug does not load pyarrow.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pfprofile.profile.data import Profile
    from pfprofile.profile.io import read_profile, write_profile
    from pfprofile.profile.metadata import ProfileMetadata, WorkloadFacts

_HOMES = {
    "Profile": "data",
    "ProfileMetadata": "metadata",
    "WorkloadFacts": "metadata",
    "read_profile": "io",
    "write_profile": "io",
}
__all__ = ["Profile", "ProfileMetadata", "WorkloadFacts", "read_profile", "write_profile"]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
