"""Find a workload: a zoo name, ``module:Class`` or ``file.py:Class``."""

from __future__ import annotations

import importlib
import importlib.util
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from models_zoo import ZOO
from pfprofile.errors import InputError, UsageError, nearest
from pfprofile.train.workload import missing_parts


@dataclass(frozen=True, slots=True)
class WorkloadSpec:
    """Where a workload's class is.

    Attributes:
        name: how a profile calls it (a file's folder is dropped: it means nothing elsewhere).
        target: module name or path of a Python file.
        attribute: the class's name.
    """

    name: str
    target: str
    attribute: str


def parse_workload(text: str) -> WorkloadSpec:
    """Read WORKLOAD without importing it.

    Raises:
        UsageError: neither a zoo name nor ``module:Class`` nor ``file.py:Class``; the nearest zoo name is given.
        InputError: the file does not exist.
    """
    if text in ZOO:
        module, attribute = ZOO[text].split(":")
        return WorkloadSpec(text, module, attribute)
    target, colon, attribute = text.rpartition(":")
    if not colon:
        raise UsageError(
            f"unknown workload {text!r}{nearest(text, ZOO)}",
            f"one of {', '.join(ZOO)}, or your own as module:Class or file.py:Class",
        )
    if not target or not attribute.isidentifier():
        raise UsageError(f"{text!r} names no class", "write module:Class or file.py:Class")
    if target.endswith(".py"):
        path = Path(target)
        if not path.is_file():
            raise InputError(f"{target}: no such file")
        return WorkloadSpec(f"{path.name}:{attribute}", str(path.resolve()), attribute)
    return WorkloadSpec(text, target, attribute)


def load_workload(spec: WorkloadSpec) -> Any:
    """Import the class and make one. Only ranks call this: it imports torch.

    Raises:
        InputError: it cannot be imported, is not there, or lacks something; what it lacks is named.
    """
    module = _import(spec.target)
    cls = getattr(module, spec.attribute, None)
    if cls is None:
        classes = [n for n, v in vars(module).items() if isinstance(v, type)]
        raise InputError(f"{spec.target} has no {spec.attribute!r}{nearest(spec.attribute, classes)}")
    if not isinstance(cls, type):
        raise InputError(f"{spec.name} is a {type(cls).__name__}, not a class")
    lacks = missing_parts(cls)
    if lacks:
        raise InputError(f"{spec.name} is not a workload: it lacks {'; '.join(lacks)}")
    try:
        return cls()
    except TypeError as error:
        raise InputError(f"{spec.name} cannot be made without arguments: {error}") from None


def _import(target: str) -> Any:
    try:
        if not target.endswith(".py"):
            return importlib.import_module(target)
        spec = importlib.util.spec_from_file_location(Path(target).stem, target)
        if spec is None or spec.loader is None:
            raise InputError(f"{target} is not a Python file")
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module
    except (ImportError, SyntaxError) as error:
        raise InputError(f"{target} cannot be imported: {error}", "run from the folder that holds it") from None
