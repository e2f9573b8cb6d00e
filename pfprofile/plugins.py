"""A class of one's own, ``file.py:Class`` in place of a registered name: policies, importers, exports, devices."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pfprofile.errors import InputError, nearest


def names_a_class(text: str) -> bool:
    """Whether a name is meant as ``file.py:Class``."""
    file, colon, _ = text.rpartition(":")
    return text.endswith(".py") or (bool(colon) and file.endswith(".py"))


def load_class(text: str, what: str, needs: Sequence[str]) -> Any:
    """The class that ``file.py:Class`` names.

    Args:
        text: the name.
        what: what it should be, for messages: ``policy``.
        needs: methods that make it one.

    Raises:
        InputError: no such file, it does not run, it has no such class, or the class lacks a method.
    """
    file, _, member = text.rpartition(":") if not text.endswith(".py") else (text, "", "")
    path = Path(file)
    if not path.is_file():
        raise InputError(f"{path}: no such file", f"name the {what} as file.py:Class")
    module = _module(path)
    found = getattr(module, member, None)
    if not isinstance(found, type):
        own = [n for n, v in vars(module).items() if isinstance(v, type) and v.__module__ == module.__name__]
        fit = [n for n in own if all(hasattr(getattr(module, n), method) for method in needs)]
        offered = " or ".join(f"{path}:{n}" for n in fit[:3])
        raise InputError(
            f"{path}: no {what} class {member!r}{nearest(member, fit)}" if member else f"{path} is a file, not a class",
            f"write {offered}" if offered else f"a {what} is a class with {', '.join(needs)}",
        )
    lacks = [method for method in needs if not callable(getattr(found, method, None))]
    if lacks:
        raise InputError(f"{path}: {member} is no {what}: it lacks {', '.join(lacks)}", "see docs/extending.md")
    return found


def _module(path: Path) -> Any:
    """Run a file as a module, once for each path."""
    name = f"_pfprofile_own_{path.resolve().as_posix().replace('/', '_').replace('.', '_')}"
    if name in sys.modules:
        return sys.modules[name]
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        # A file of one's own may raise anything while it is read.
        del sys.modules[name]
        raise InputError(f"{path}: does not run: {type(error).__name__}: {error}") from error
    return module
