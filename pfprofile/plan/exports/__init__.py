"""A schedule as files that other systems run: one module a target, one line each in the registry."""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path

from pfprofile.errors import OutputError, UsageError
from pfprofile.plan.exports.base import Exporter, ExportPlan, parse_target
from pfprofile.plan.exports.kubernetes import Kubernetes
from pfprofile.plan.exports.slurm import Slurm
from pfprofile.plan.exports.tables import Tables

EXPORTERS: dict[str, Exporter] = {e.name: e for e in (Slurm(), Kubernetes(), Tables())}
#: in every folder: what an export wrote there, and so may replace
MARKER = ".pfprofile-export"

__all__ = ["EXPORTERS", "check_targets", "export"]


def check_targets(targets: list[str], force: bool) -> None:
    """Before any planning: are targets and folders all right? Raises UsageError."""
    for text in targets:
        _, folder, _ = parse_target(text, EXPORTERS)
        path = Path(folder)
        if path.is_file():
            raise UsageError(f"--export {text}: {path} is a file", "give a folder")
        if path.is_dir() and any(path.iterdir()):
            foreign = _foreign(path)
            if foreign is not None:
                raise UsageError(
                    f"--export {text}: {path} holds {foreign}, which no export wrote: it would be lost",
                    "give another folder",
                )
            if not force:
                raise UsageError(
                    f"--export {text}: {path} is not empty", "give another folder, or --force to replace it"
                )


def _foreign(path: Path) -> str | None:
    """Something in a folder that an export did not write; None = nothing."""
    try:
        own = set(json.loads((path / MARKER).read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError):
        own = set()
    return next((entry.name for entry in sorted(path.iterdir()) if entry.name not in own | {MARKER}), None)


def export(plan: ExportPlan, target: str) -> Path:
    """Write one target's folder, whole or not at all.

    Raises:
        InputError: a job that nothing says how to start.
        OutputError: the folder cannot be written.
    """
    exporter, folder, options = parse_target(target, EXPORTERS)
    files = exporter.files(plan, options)
    path = Path(folder)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        fresh = Path(tempfile.mkdtemp(prefix=f".{path.name}.", dir=path.parent))
        try:
            _fill(fresh, files)
            _swap(fresh, path)
        finally:
            shutil.rmtree(fresh, ignore_errors=True)
    except OSError as error:
        raise OutputError(f"{path}: cannot be written: {error.strerror or error}", "choose another folder") from None
    return path


def _fill(folder: Path, files: Mapping[str, str]) -> None:
    folder.chmod(0o755)
    for name, text in files.items():
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
        if file.suffix in (".sh", ".sbatch"):
            file.chmod(0o755)
    own = sorted({Path(name).parts[0] for name in files})
    (folder / MARKER).write_text(json.dumps(own, indent=1) + "\n", encoding="utf-8")


def _swap(fresh: Path, path: Path) -> None:
    """Put the new folder in the old one's place; the old one comes back where that fails."""
    if not path.exists():
        fresh.replace(path)
        return
    old = Path(tempfile.mkdtemp(prefix=f".{path.name}.", dir=path.parent))
    path.replace(old / "old")
    try:
        fresh.replace(path)
    except OSError:
        (old / "old").replace(path)
        raise
    finally:
        shutil.rmtree(old, ignore_errors=True)
