"""Find a workload: a zoo name, ``module:Class`` or ``file.py:Class``."""

from __future__ import annotations

import ast
import importlib
import importlib.util
import sys
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
    if not colon and text.endswith(".py"):
        if not Path(text).is_file():
            raise InputError(f"{text}: no such file")
        classes = _classes(Path(text)) or ["Class"]
        raise UsageError(
            f"{text} is a file; a workload is a class in it", f"write {' or '.join(f'{text}:{c}' for c in classes[:3])}"
        )
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


def _classes(path: Path) -> list[str]:
    """The classes of a file that look like workloads, else all of them; found without running it."""
    try:
        tree = ast.parse(path.read_text(encoding="utf-8"))
    except (OSError, SyntaxError, ValueError):
        return []
    classes = [node for node in tree.body if isinstance(node, ast.ClassDef)]
    methods = {c.name: {f.name for f in c.body if isinstance(f, ast.FunctionDef)} for c in classes}
    return [n for n, has in methods.items() if {"build", "batch", "loss"} <= has] or list(methods)


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
        return _import_file(Path(target)) if target.endswith(".py") else importlib.import_module(target)
    except InputError:
        raise
    except Exception as error:
        # A file of one's own may raise anything while it is read.
        words = str(error) if isinstance(error, (ImportError, SyntaxError)) else f"{type(error).__name__}: {error}"
        hint = "run from the folder that holds it" if isinstance(error, ImportError) else ""
        if isinstance(error, ModuleNotFoundError) and error.name and not target.startswith(error.name.split(".")[0]):
            hint = f"install {error.name.split('.')[0]} where pfprofile runs ({sys.executable})"
        raise InputError(f"{target} cannot be imported: {words}", hint) from error


def _import_file(path: Path) -> Any:
    """As Python runs a script: its folder comes first on the path, so that it finds the modules beside it."""
    name = f"_workload_{path.stem}"
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise InputError(f"{path} is not a Python file")
    module = importlib.util.module_from_spec(spec)
    if str(path.parent) not in sys.path:
        sys.path.insert(0, str(path.parent))
    # Dataclasses and pickle look a class's module up by its name.
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module
