"""``pfprofile schema``: the contracts, as tables or JSON Schema."""

from __future__ import annotations

from typing import Annotated

import typer

from pfprofile.cli._output import Cells, Format, FormatOption, emit, print_json

HELP = "Print the column table or JSON Schema of a contract."
EPILOG = "Example: pfprofile schema profile"
_TEXT: Cells = {name: (name, str) for name in ("column", "type", "unit", "null", "description")}
_FIELDS: Cells = {name: (name, str) for name in ("field", "type", "description")}
_KEYS: Cells = {name: (name, str) for name in ("key", "must_agree", "description")}
#: contract → (module, its function that gives a table, the table's cells, its function that gives a JSON Schema or "")
CONTRACTS: dict[str, tuple[str, str, Cells, str]] = {
    "profile": ("pfprofile.profile.describe", "column_table", _TEXT, ""),
    "metadata": ("pfprofile.profile.describe", "metadata_table", _KEYS, ""),
    "model": ("pfprofile.model.document", "field_table", _FIELDS, "json_schema"),
    "fit-report": ("pfprofile.model.contracts", "fit_report_table", _TEXT, ""),
    "points": ("pfprofile.model.contracts", "point_table", _TEXT, ""),
    "predictions": ("pfprofile.model.contracts", "prediction_table", _TEXT, ""),
    "jobs": ("pfprofile.plan.contracts", "jobs_table", _FIELDS, "jobs_schema"),
    "cluster": ("pfprofile.plan.contracts", "cluster_table", _FIELDS, "cluster_schema"),
    "state": ("pfprofile.plan.contracts", "state_table", _FIELDS, "state_schema"),
    "schedule": ("pfprofile.plan.contracts", "schedule_table", _FIELDS, "schedule_schema"),
    "comparison": ("pfprofile.plan.compare.contract", "field_table", _FIELDS, "json_schema"),
    "findings": ("pfprofile.profile.describe", "findings_table", _TEXT, ""),
}


def _names(incomplete: str) -> list[str]:
    return [name for name in CONTRACTS if name.startswith(incomplete)]


def command(
    name: Annotated[str, typer.Argument(help=f"{', '.join(CONTRACTS)}.", autocompletion=_names)],
    fmt: FormatOption = Format.table,
) -> None:
    """Print a contract."""
    from importlib import import_module

    from pfprofile.errors import UsageError, nearest

    if name not in CONTRACTS:
        raise UsageError(f"no contract {name!r}{nearest(name, CONTRACTS)}", f"known: {', '.join(CONTRACTS)}")
    where, table, cells, schema = CONTRACTS[name]
    module = import_module(where)
    if schema and fmt is Format.json:
        print_json(getattr(module, schema)())
    else:
        emit(getattr(module, table)(), fmt, cells)
