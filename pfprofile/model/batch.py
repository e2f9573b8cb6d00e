"""Fit many profiles: find them, fit each, save each model where it belongs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from pfprofile.errors import InputError, UsageError
from pfprofile.model.fit import fit_profile
from pfprofile.model.fitted import FittedModel
from pfprofile.model.store import default_model_path, save_model

PROFILES_DIR = Path("profiles")


def find_profiles(targets: Sequence[str]) -> list[tuple[Path, bool]]:
    """Profile files below folders, or named; each with whether it was named itself.

    Raises:
        InputError: a target that is neither, or a folder without profiles.
    """
    from pfprofile.profile.places import find_profile

    out: dict[Path, bool] = {}
    for target in targets or [str(PROFILES_DIR)]:
        folder = Path(target)
        if not folder.is_dir():
            if not targets:
                raise InputError(f"no folder {folder}/ here", "measure first: pfprofile sweep, or name a profile")
            out[find_profile(target)] = True
            continue
        found = [p for p in sorted(folder.rglob("*.parquet")) if not p.name.endswith(".samples.parquet")]
        if not found:
            raise InputError(f"{folder}: no profile (*.parquet) in it", "measure first: pfprofile sweep WORKLOAD")
        for path in found:
            out.setdefault(path, False)
    return list(out.items())


def fit_files(
    targets: Sequence[str], output: Path | None, say: Callable[[str], None]
) -> list[tuple[Path, FittedModel]]:
    """Fit profiles and save the models.

    Args:
        targets: profile files, shipped names or folders; none means `profiles/`.
        output: where the one model goes; None = each to its default place.
        say: told of what was skipped.

    Returns:
        (path, model) of each model written.

    Raises:
        InputError: a named profile cannot be fitted, or none of a folder's can.
        UsageError: several profiles for one output, or two for one default place.
    """
    from pfprofile.profile import read_profile

    found = find_profiles(targets)
    if output is not None and len(found) > 1:
        raise UsageError(f"{len(found)} profiles, but one -o", "drop -o to write each model to its own place")
    models: dict[Path, FittedModel] = {}
    for path, named in found:
        try:
            model = fit_profile(read_profile(path), str(path))
        except InputError as error:
            if named or len(found) == 1:
                raise
            say(f"skipped: {error}")
            continue
        place = output or default_model_path(model.device_name, model.workload)
        if place in models:
            raise UsageError(f"{path}: a second profile of {model.workload} on {model.device_name}",
                             "join them with: pfprofile merge, or fit each with its own -o")  # fmt: skip
        models[place] = model
    if not models:
        raise InputError("none of the profiles could be fitted", "look at them with: pfprofile check FILE")
    for place, model in models.items():
        save_model(model, place)
    return list(models.items())
