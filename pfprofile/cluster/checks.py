"""How a file that pydantic refuses is reported: one line with key, what is wrong and the nearest known key."""

from __future__ import annotations

from pathlib import Path

from pydantic import BaseModel, ValidationError

from pfprofile.errors import InputError, nearest


def first_error(error: ValidationError, model: type[BaseModel]) -> str:
    """The first problem as ``key K: what (found V)``."""
    problem = error.errors()[0]
    key = ".".join(str(p) for p in problem["loc"] if isinstance(p, str) and "[" not in p and p in model.model_fields)
    if problem["type"] == "extra_forbidden":
        name = str(problem["loc"][-1])
        return f"unknown key {name!r}{nearest(name, model.model_fields)}"
    if problem["type"] == "missing":
        return f"key {key}: missing"
    text = problem["msg"].removeprefix("Value error, ")
    if not key:
        return text
    return f"key {key}: {text} (found {problem['input']!r})"


def read_body(path: Path) -> str:
    """A text file's content. Raises InputError naming the file."""
    try:
        return path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise InputError(f"{path}: no such file") from None
    except IsADirectoryError:
        raise InputError(f"{path}: a folder, not a file", "name the file in it") from None
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: not readable as text: {error}") from None
