"""Put profiles where they belong."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from pfprofile.errors import UsageError
from pfprofile.profile.data import Profile
from pfprofile.profile.io import write_profile
from pfprofile.profile.places import default_profile_path


def store_imported(profiles: Sequence[Profile], output: Path | None) -> list[tuple[Path, Profile]]:
    """Write imported profiles, to ``output`` where it is given (one profile only), else to their default places.

    Returns:
        (path, profile) of each file written.

    Raises:
        UsageError: several profiles for one output file, or two for one default place.
        OutputError: a file cannot be written.
    """
    if output is not None and len(profiles) > 1:
        raise UsageError(
            f"the files hold {len(profiles)} profiles: {_names(profiles)}",
            f"drop -o to write each to its own place, or choose one with --where; {output} was not written",
        )
    places: dict[Path, Profile] = {}
    for profile in profiles:
        path = output or default_profile_path(profile.unique("device_name")[0], profile.unique("workload")[0])
        if path in places:
            raise UsageError(f"two profiles would become {path}: {_names(profiles)}", "choose one with --where and -o")
        places[path] = profile
    for path, profile in places.items():
        write_profile(profile, path)
    return list(places.items())


def _names(profiles: Sequence[Profile]) -> str:
    columns = ("workload", "device_name", "precision")
    shown = [" on ".join(str(p.unique(c)[0]) for c in columns[:2]) + f" {p.unique(columns[2])[0]}" for p in profiles]
    return "; ".join(shown[:4]) + ("; ..." if len(shown) > 4 else "")
