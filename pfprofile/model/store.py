"""Where models live: name → path, → `models/`, → shipped; load and save."""

from __future__ import annotations

import json
from pathlib import Path

from pfprofile.errors import InputError, nearest
from pfprofile.model.document import from_json
from pfprofile.model.fitted import FittedModel

MODELS_DIR = Path("models")


def known_models(folder: Path = MODELS_DIR) -> dict[str, Path]:
    """Models by name (``a100-sxm4/resnet50``): those in ``folder`` come before those that ship."""
    from pfprofile.profile.places import shipped

    local = local_models(folder)
    return {**{n: p for n, p in shipped(".json").items() if n not in local}, **local}


def local_models(folder: Path) -> dict[str, Path]:
    """One's own models by name: ``folder/<device>/*.json``, then ``folder/*.json``; or ``folder`` is itself a file.

    Raises:
        InputError: ``folder`` is a file, but not a model. Other JSON files in a folder are passed over.
    """
    from pfprofile.profile.places import device_slug, workload_slug

    if folder.is_file():
        loose = [folder]
    else:
        loose = sorted(p for p in folder.glob("*.json") if _looks_like_model(p))
    nested = {f"{p.parent.name}/{p.stem}": p for p in sorted(folder.glob("*/*.json"))}
    found: dict[str, Path] = {}
    for path in loose:
        model = _read(path)
        found[f"{device_slug(model.device_name)}/{workload_slug(model.workload)}"] = path
    return {**found, **nested}


def _looks_like_model(path: Path) -> bool:
    """Whether a JSON file has a model's keys; what else lies in the folder is somebody else's."""
    try:
        body = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False
    return isinstance(body, dict) and {"device_name", "workload", "forms"} <= set(body)


def find_model(name: str, folder: Path = MODELS_DIR) -> Path:
    """A model by path, by name below ``folder``, or by the name of a shipped one; a bare workload where it is unique.

    Raises:
        InputError: none of these, or several; it names the nearest, or the candidates.
    """
    path = Path(name)
    if path.is_file():
        return path
    known = known_models(folder)
    if name in known:
        return known[name]
    if path.suffix == ".json" and name.removesuffix(".json") in known:
        return known[name.removesuffix(".json")]
    bare = [full for full in known if full.partition("/")[2] == name]
    # A model of one's own comes before a shipped one of the same workload.
    own = [full for full in bare if known[full].is_relative_to(folder)]
    candidates = own or bare
    if len(candidates) == 1:
        return known[candidates[0]]
    if candidates:
        raise InputError(f"{name}: several models have this name", f"choose one of {', '.join(sorted(candidates))}")
    near = nearest(name, [*known, *{full.partition("/")[2] for full in known}])
    raise InputError(
        f"{name}: neither a model file nor a model in {folder}/ nor a shipped one{near}", "fit one with: pfprofile fit"
    )


def load_model(name: str | Path, folder: Path = MODELS_DIR) -> FittedModel:
    """Load a model by path or name.

    Raises:
        InputError: not found, or not a model file.
    """
    return _read(find_model(str(name), folder))


def _read(path: Path) -> FittedModel:
    try:
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise InputError(f"{path}: not a model file", "is it a profile? fit it first: pfprofile fit") from None
    except OSError as error:
        raise InputError(f"{path}: cannot be read as a model: {error}") from None
    return FittedModel(from_json(text, str(path)))


def save_model(model: FittedModel, path: Path) -> None:
    """Write a model file atomically. Raises PfprofileError where it cannot."""
    from pfprofile.profile.io import write_text

    write_text(path, model.document.to_json())


def default_model_path(device_name: str, workload: str) -> Path:
    """``models/<device-slug>/<workload>.json`` below the current folder."""
    from pfprofile.profile.places import device_slug, workload_slug

    return MODELS_DIR / device_slug(device_name) / f"{workload_slug(workload)}.json"
