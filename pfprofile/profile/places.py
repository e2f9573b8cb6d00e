"""Where profiles live: slugs, default paths, and the ones that ship with the tool."""

from __future__ import annotations

import re
from pathlib import Path

from pfprofile.errors import InputError, nearest


def device_slug(device_name: str) -> str:
    """``NVIDIA A100-SXM4`` → ``a100-sxm4``: lower case, "nvidia" dropped, hyphens."""
    words = re.findall(r"[a-z0-9]+", device_name.lower())
    return "-".join(w for w in words if w != "nvidia") or "device"


def workload_slug(workload: str) -> str:
    """A workload's name as a file name (``train.py:Net`` → ``train.py-Net``); letters of any script stay."""
    return re.sub(r"[^\w.-]+", "-", workload).strip("-.") or "workload"


def default_profile_path(device_name: str, workload: str) -> Path:
    """``profiles/<device-slug>/<workload>.parquet`` below the current folder."""
    return Path("profiles") / device_slug(device_name) / f"{workload_slug(workload)}.parquet"


def shipped_root() -> Path:
    """The folder of shipped profiles and models: inside the wheel, or the checkout's ``profiles/``."""
    package = Path(__file__).resolve().parent.parent
    inside = package / "_data" / "profiles"
    return inside if inside.is_dir() else package.parent / "profiles"


def shipped(suffix: str) -> dict[str, Path]:
    """Shipped files by name, e.g. ``a100-sxm4/resnet50`` for suffix ``.parquet`` or ``.json``."""
    root = shipped_root()
    return {f"{p.parent.name}/{p.stem}": p for p in sorted(root.glob(f"*/*{suffix}"))}


def find_profile(name: str) -> Path:
    """A profile by path, or by the name of a shipped one.

    Raises:
        InputError: neither; it names the nearest shipped one.
    """
    path = Path(name)
    if path.is_file():
        return path
    known = shipped(".parquet")
    if name in known:
        return known[name]
    raise InputError(
        f"{name}: neither a profile file nor a shipped profile{nearest(name, known)}",
        "list the shipped ones with: pfprofile show profiles",
    )
