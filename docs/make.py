"""Writes the pages that the code itself says: ``cli.md`` and ``formats.md``. Run by ``make docs``; a test compares."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterable
from importlib import import_module
from pathlib import Path
from types import ModuleType, NoneType
from typing import Any, get_args, get_type_hints

from typer.models import ArgumentInfo, OptionInfo

from pfprofile import errors
from pfprofile.cli._app import COMMANDS
from pfprofile.cli.schema_cmd import CONTRACTS

FOLDER = Path(__file__).parent
HEAD = "<!-- written by docs/make.py (make docs): change the code, not this page -->\n"


def main() -> None:
    """Write both pages."""
    for name, text in pages().items():
        (FOLDER / name).write_text(text, encoding="utf-8")


def pages() -> dict[str, str]:
    """Text of each page by its file name."""
    return {"cli.md": _cli(), "formats.md": _formats()}


def _table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    head = list(head)
    lines = [head, ["---"] * len(head), *rows]
    return "".join("| " + " | ".join(map(_escaped, line)) + " |\n" for line in lines)


def _escaped(cell: str) -> str:
    """A bar would end the cell, and what looks like a tag would vanish; in code, Markdown keeps the latter."""
    cell = cell.replace("|", "\\|")
    return cell if "`" in cell else cell.replace("<", "&lt;")


def _cli() -> str:
    parts = [HEAD, "# Commands\n\n", CLI_INTRO]
    parts += [_command(name, import_module(f"pfprofile.cli.{name.replace('-', '_')}_cmd")) for name in COMMANDS]
    parts += ["## Exit codes\n\n", _table(("code", "means"), _codes())]
    return "".join(parts)


CLI_INTRO = """\
Data goes to stdout, everything else to stderr. A flag wins over its variable `PFPROFILE_<COMMAND>_<FLAG>` (dashes
become underscores), that over `pfprofile.toml` in the current folder, which holds one table a command:

```toml
[plan]
cluster = "our-cluster.toml"
confidence = 0.95
```

Energies, powers, clocks and times are written with their units: `120kWh`, `20kW`, `1410MHz`, `2h`. An output named by
`-o` that exists is refused without `--force`; default outputs are replaced, whole or not at all. `NO_COLOR` is obeyed.

"""


def _command(name: str, module: ModuleType) -> str:
    arguments, options = [], []
    hints = get_type_hints(module.command, include_extras=True)
    for key, parameter in inspect.signature(module.command).parameters.items():
        kind, info = get_args(hints[key])[0], get_args(hints[key])[1]
        if isinstance(info, ArgumentInfo):
            arguments.append((key, kind, info, parameter.default))
        else:
            options.append((key, kind, info, parameter.default))
    line = " ".join(["pfprofile", name, *(_placeholder(*a) for a in arguments)])
    text = f"## {name}\n\n{module.HELP}\n\n    {line} [OPTIONS]\n\n"
    words = [(f"`{_placeholder(*a)}`", a[2].help or "") for a in arguments]
    if words:
        text += _table(("argument", "is"), words) + "\n"
    text += _table(("option", "default", "does"), [_option(*o) for o in options]) + "\n" if options else ""
    return text + "".join(f"    {example}\n" for example in _examples(module.EPILOG)) + "\n"


def _examples(epilog: str) -> list[str]:
    return [text.strip().removesuffix(".") for text in re.split(r"(?:^|\s)Example: ", epilog) if text.strip()]


def _placeholder(key: str, kind: Any, info: ArgumentInfo, default: Any) -> str:
    name = (info.metavar or key).upper().replace("_NAME", "").removesuffix("...").strip("[]")
    if getattr(kind, "__origin__", None) is list or list in {getattr(k, "__origin__", None) for k in get_args(kind)}:
        name += "…"
    return name if default is inspect.Parameter.empty else f"[{name}]"


def _option(key: str, kind: Any, info: OptionInfo, default: Any) -> tuple[str, str, str]:
    # In Annotated form, typer keeps the first name where a default would stand.
    named = [name for name in (info.default, *(info.param_decls or ())) if isinstance(name, str)]
    flags = [name for name in named if name.startswith("-")] or [f"--{key.replace('_', '-')}"]
    shown = "" if default in (None, False, inspect.Parameter.empty) else str(getattr(default, "value", default))
    return ", ".join(f"`{flag}`" for flag in flags) + _kind(kind), f"`{shown}`" if shown else "", info.help or ""


def _kind(kind: Any) -> str:
    """What is written after the flag."""
    inner = [k for k in get_args(kind) if k is not NoneType] if NoneType in get_args(kind) else [kind]
    inner = [get_args(k)[0] if getattr(k, "__origin__", None) is list else k for k in inner]
    one = inner[0]
    if one is bool:
        return ""
    if hasattr(one, "__members__"):
        return " " + "|".join(member.value for member in one)
    return {int: " N", float: " NUMBER", Path: " PATH"}.get(one, " TEXT")


def _codes() -> list[tuple[str, str]]:
    said: dict[int, list[str]] = {0: ["Done."]}
    for thing in vars(errors).values():
        if isinstance(thing, type) and issubclass(thing, errors.PfprofileError) and thing.exit_code != 1:
            said.setdefault(thing.exit_code, []).append(str(inspect.getdoc(thing)).split("\n")[0])
    return [(str(code), " ".join(words)) for code, words in sorted(said.items())]


def _formats() -> str:
    parts = [f"{HEAD}# File formats\n\n{FORMATS_INTRO}"]
    for name, contract in CONTRACTS.items():
        rows = contract.rows()
        title = contract.description[0].upper() + contract.description[1:]
        cells = [[_cell(key, row) for key in contract.cells] for row in rows]
        parts.append(f"## {name}\n\n{title}.\n\n{_table(contract.cells, cells)}")
    return "\n".join(parts)


def _cell(key: str, row: dict[str, Any]) -> str:
    value = str(row[key])
    return f"`{value}`" if key in ("column", "field", "key") else value


FORMATS_INTRO = """\
What commands read and write; `pfprofile schema NAME` prints the same, and with `--format json` the JSON Schema where
there is one. Units are SI and MHz and stand in the names. Unknown is null or an empty field, never 0. A clock is the
*requested* one, and null means that it is not locked. Files of older versions are read for ever.

"""

if __name__ == "__main__":
    main()
