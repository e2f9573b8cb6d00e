"""How commands speak: data on stdout, everything else on stderr, files refused or replaced as asked."""

from __future__ import annotations

import json
import math
import os
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from pfprofile.errors import UsageError


class Format(StrEnum):
    """How data is printed."""

    table = "table"
    json = "json"
    csv = "csv"


FormatOption = Annotated[Format, typer.Option("--format", help="How to print the result.")]
ForceOption = Annotated[bool, typer.Option("--force", help="Replace the output file if it exists.")]


def say(text: str) -> None:
    """One line for the person, on stderr."""
    sys.stderr.write(text + "\n")
    sys.stderr.flush()


def notice(text: str) -> None:
    """Something the person should know, on stderr."""
    say(f"note: {text}")


def refuse_existing(path: Path | None, force: bool) -> None:
    """An explicit output that exists is kept, unless forced; a folder always is. Raises UsageError."""
    if path is not None and path.is_dir():
        raise UsageError(f"{path} is a folder", "give a file name with -o")
    if path is not None and path.exists() and not force:
        raise UsageError(f"{path} exists", "give another -o, or --force to replace it")


def plain(value: Any) -> Any:
    """A value for JSON: NaN and infinity, which JSON lacks, become null; dataclass-free containers are walked."""
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, Mapping):
        return {str(k): plain(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(v) for v in value]
    if hasattr(value, "isoformat"):
        return value.isoformat()
    return value


def print_json(body: Any) -> None:
    """JSON on stdout, never through rich."""
    sys.stdout.write(json.dumps(plain(body), indent=2, allow_nan=False) + "\n")


def print_csv(rows: Iterable[Mapping[str, Any]], columns: Sequence[str]) -> None:
    """CSV with a header on stdout; null is an empty field."""
    import csv

    writer = csv.DictWriter(sys.stdout, fieldnames=list(columns), extrasaction="ignore", lineterminator="\n")
    writer.writeheader()
    for row in rows:
        writer.writerow({k: plain(row.get(k)) for k in columns})


#: how one column of a table is shown: heading, and value -> text
Cells = Mapping[str, tuple[str, Callable[[Any], str]]]


def stdout_width() -> int:
    """Width of the terminal on stdout; COLUMNS, or 80, where there is none."""
    wide = os.environ.get("COLUMNS", "")
    if wide.isdigit() and int(wide) > 0:
        return int(wide)
    return os.get_terminal_size(sys.stdout.fileno()).columns if sys.stdout.isatty() else 80


def print_table(
    rows: Sequence[Mapping[str, Any]], cells: Cells, *, title: str = "", caption: str = "", on_stderr: bool = False
) -> None:
    """A table as wide as the terminal (COLUMNS, or 80, where there is none). Missing values show as ``-``.

    Args:
        rows, cells: what to show, and how.
        title, caption: above and below it.
        on_stderr: it is for the person, not the data that was asked for.
    """
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    stream = sys.stderr if on_stderr else sys.stdout
    console = Console(file=stream, width=None if stream.isatty() else stdout_width(), highlight=False)
    table = Table(box=box.SIMPLE_HEAD, title=title or None, title_justify="left", caption=caption or None,
                  caption_justify="left", show_edge=False, pad_edge=False, padding=(0, 1, 0, 0))  # fmt: skip
    for name, (heading, _) in cells.items():
        numeric = all(isinstance(row.get(name), (int, float, type(None))) for row in rows)
        table.add_column(heading, justify="right" if numeric else "left", overflow="fold")
    for row in rows:
        shown = []
        for name, (_, show) in cells.items():
            value = row.get(name)
            missing = value is None or (isinstance(value, float) and math.isnan(value))
            shown.append(Text("-" if missing else show(value)))
        table.add_row(*shown)
    console.print(table)


def emit(rows: Sequence[Mapping[str, Any]], fmt: Format, cells: Cells, *, title: str = "", caption: str = "",
         columns: Sequence[str] | None = None) -> None:  # fmt: skip
    """Print rows as the person asked: table (``cells``), JSON or CSV (``columns``, default the rows' own keys)."""
    if fmt is Format.json:
        print_json(list(rows))
    elif fmt is Format.csv:
        print_csv(rows, columns or (list(rows[0]) if rows else list(cells)))
    else:
        print_table(rows, cells, title=title, caption=caption)
