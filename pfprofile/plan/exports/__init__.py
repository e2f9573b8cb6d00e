"""A schedule as files that other systems run: one module a target, one line each in the registry."""

from __future__ import annotations

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

__all__ = ["EXPORTERS", "check_targets", "export"]


def check_targets(targets: list[str], force: bool) -> None:
    """Before any planning: are targets and folders all right? Raises UsageError."""
    for text in targets:
        _, folder, _ = parse_target(text, EXPORTERS)
        path = Path(folder)
        if path.is_file():
            raise UsageError(f"--export {text}: {path} is a file", "give a folder")
        if path.is_dir() and any(path.iterdir()) and not force:
            raise UsageError(f"--export {text}: {path} is not empty", "give another folder, or --force to replace it")


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


def _swap(fresh: Path, path: Path) -> None:
    """Put the new folder in the old one's place."""
    if not path.exists():
        fresh.replace(path)
        return
    old = Path(tempfile.mkdtemp(prefix=f".{path.name}.", dir=path.parent))
    path.replace(old / "old")
    fresh.replace(path)
    shutil.rmtree(old)
