"""``pfprofile schema``: the contracts, as tables or JSON Schema."""

from __future__ import annotations

from typing import Annotated

import typer

from pfprofile.cli._output import Format, FormatOption, emit

HELP = "Print the column table or JSON Schema of a contract."
EPILOG = "Example: pfprofile schema profile"
_TEXT = {name: (name, str) for name in ("column", "type", "unit", "null", "description")}
_KEYS = {name: (name, str) for name in ("key", "must_agree", "description")}


def command(
    name: Annotated[str, typer.Argument(help="profile or metadata.")],
    fmt: FormatOption = Format.table,
) -> None:
    """Print a contract."""
    from pfprofile.errors import UsageError, nearest
    from pfprofile.profile.describe import column_table, metadata_table

    tables = {"profile": (column_table, _TEXT), "metadata": (metadata_table, _KEYS)}
    if name not in tables:
        raise UsageError(f"no contract {name!r}{nearest(name, tables)}", f"known: {', '.join(tables)}")
    rows, cells = tables[name]
    emit(rows(), fmt, cells)
