"""Defaults from ``pfprofile.toml``: one table a command, keys as the flags. Flags and PFPROFILE_* come before it."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

from pfprofile.errors import InputError, nearest

CONFIG_NAME = "pfprofile.toml"


def load_defaults(group: Any, folder: Path | None = None) -> dict[str, Any]:
    """Read ``pfprofile.toml`` in the current folder as click's default_map.

    Args:
        group: the command group; its commands and their parameters are the known keys.
        folder: where to look instead of the current folder.

    Raises:
        InputError: not TOML, or a table or key that no command has; the nearest known one is named.
    """
    path = (folder or Path()) / CONFIG_NAME
    if not path.is_file():
        return {}
    try:
        body = tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: not valid TOML: {error}") from None
    defaults: dict[str, Any] = {}
    for name, table in body.items():
        command = group.commands.get(name)
        if command is None:
            raise InputError(f"{path}: unknown table [{name}]{nearest(name, group.commands)}")
        if not isinstance(table, dict):
            raise InputError(f"{path}: {name} must be a table", f"write [{name}]")
        known = {o.lstrip("-"): p for p in command.params for o in p.opts if o.startswith("--")}
        defaults[name] = {}
        for key, value in table.items():
            param = known.get(key.replace("_", "-")) or known.get(key)
            if param is None:
                raise InputError(f"{path}: [{name}] has no key {key!r}{nearest(key, known)}")
            defaults[name][param.name] = ",".join(map(str, value)) if isinstance(value, list) else value
    return defaults
