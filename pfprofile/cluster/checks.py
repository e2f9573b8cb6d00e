"""How a file that pydantic refuses is reported: one line with key, what is wrong and the nearest known key."""

from __future__ import annotations

from datetime import date, time
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ValidationError

from pfprofile.errors import InputError, nearest

#: pydantic's kinds of trouble in our words; {…} are the error's own details
WORDS = {
    "int_type": "expected a whole number",
    "int_parsing": "expected a whole number",
    "int_from_float": "expected a whole number",
    "int_parsing_size": "too large a number",
    "float_type": "expected a number",
    "float_parsing": "expected a number",
    "finite_number": "expected a finite number",
    "string_type": "expected text",
    "string_too_short": "must not be empty",
    "list_type": "expected a list",
    "dict_type": "expected a table",
    "model_type": "expected a table",
    "greater_than": "must be above {gt:g}",
    "greater_than_equal": "must be at least {ge:g}",
    "less_than": "must be below {lt:g}",
    "less_than_equal": "must be at most {le:g}",
}


def first_error(error: ValidationError, model: type[BaseModel]) -> str:
    """The first problem as ``key K: what (found V)``."""
    problem = error.errors()[0]
    key = ".".join(str(p) for p in problem["loc"] if isinstance(p, str) and "[" not in p and p in model.model_fields)
    if problem["type"] == "extra_forbidden":
        name = str(problem["loc"][-1])
        return f"unknown key {name!r}{nearest(name, model.model_fields)}"
    if problem["type"] == "missing":
        return f"key {key}: missing"
    known = WORDS.get(problem["type"])
    text = known.format(**problem.get("ctx", {})) if known else problem["msg"].removeprefix("Value error, ")
    if not key:
        return text
    found = problem["input"]
    return f"key {key}: {text} (found {found if isinstance(found, (date, time)) else repr(found)})"


def no_bool(value: Any) -> Any:
    """A validator: true is no number. Raises ValueError."""
    if isinstance(value, bool):
        raise ValueError("expected a number")
    return value


def read_body(path: Path) -> str:
    """A text file's content. Raises InputError naming the file."""
    try:
        return path.read_text(encoding="utf-8-sig")  # editors on Windows put a byte order mark first
    except FileNotFoundError:
        raise InputError(f"{path}: no such file") from None
    except IsADirectoryError:
        raise InputError(f"{path}: a folder, not a file", "name the file in it") from None
    except UnicodeDecodeError:
        raise InputError(f"{path}: not UTF-8 text", "save it as UTF-8") from None
    except OSError as error:
        raise InputError(f"{path}: not readable: {error.strerror or error}") from None
