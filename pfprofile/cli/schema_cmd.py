"""``pfprofile schema``: the contracts, as tables or JSON Schema."""

from __future__ import annotations

from typing import Annotated

import typer

from pfprofile.cli._output import Format, FormatOption, emit, print_json

HELP = "Print the column table or JSON Schema of a contract."
EPILOG = "Example: pfprofile schema profile"
_TEXT = {name: (name, str) for name in ("column", "type", "unit", "null", "description")}
_FIELDS = {name: (name, str) for name in ("field", "type", "description")}
_KEYS = {name: (name, str) for name in ("key", "must_agree", "description")}


def command(
    name: Annotated[str, typer.Argument(help="profile, metadata, model or comparison.")],
    fmt: FormatOption = Format.table,
) -> None:
    """Print a contract."""
    from pfprofile.errors import UsageError, nearest
    from pfprofile.model.document import field_table
    from pfprofile.plan.compare.contract import field_table as comparison_table
    from pfprofile.profile.describe import column_table, metadata_table

    if name == "model" and fmt is Format.json:
        from pfprofile.model.document import json_schema

        print_json(json_schema())
        return
    if name == "comparison" and fmt is Format.json:
        from pfprofile.plan.compare.contract import json_schema as comparison_schema

        print_json(comparison_schema())
        return
    tables = {"profile": (column_table, _TEXT), "metadata": (metadata_table, _KEYS), "model": (field_table, _FIELDS),
              "comparison": (comparison_table, _FIELDS)}  # fmt: skip
    if name not in tables:
        raise UsageError(f"no contract {name!r}{nearest(name, tables)}", f"known: {', '.join(tables)}")
    rows, cells = tables[name]
    emit(rows(), fmt, cells)
