"""``pfprofile schema``: the contracts, as tables or JSON Schema."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from typing import Annotated, Any

import typer

from pfprofile.cli._output import Cells, Format, FormatOption, emit, print_json

HELP = "Print the column table or JSON Schema of a contract; without a name, list the contracts."
EPILOG = "Example: pfprofile schema profile"
_TEXT: Cells = {name: (name, str) for name in ("column", "type", "unit", "null", "description")}
_FIELDS: Cells = {name: (name, str) for name in ("field", "type", "description")}
_KEYS: Cells = {name: (name, str) for name in ("key", "must_agree", "description")}
_LIST: Cells = {name: (name, str) for name in ("name", "description")}


@dataclass(frozen=True, slots=True)
class Contract:
    """One file or output that others may read.

    Attributes:
        description: what it is, in a line.
        module, table: the function that gives its columns or keys.
        cells: how the table is printed.
        schema: the function of the module that gives its JSON Schema; "" = it has none.
    """

    description: str
    module: str
    table: str
    cells: Cells
    schema: str = ""

    def rows(self) -> list[dict[str, Any]]:
        """Its columns or keys, one row each."""
        found: list[dict[str, Any]] = getattr(import_module(self.module), self.table)()
        return found


_PROFILE, _MODEL, _PLAN = "pfprofile.profile.describe", "pfprofile.model.contracts", "pfprofile.plan.contracts"
#: in the order of the chain
CONTRACTS: dict[str, Contract] = {
    "profile": Contract("a profile: Parquet, one row a trial; unknown is null", _PROFILE, "column_table", _TEXT),
    "metadata": Contract("what a profile says of itself: JSON under its key pfprofile", _PROFILE, "metadata_table",
                         _KEYS),
    "model": Contract("a fitted model: JSON", "pfprofile.model.document", "field_table", _FIELDS, "json_schema"),
    "fit-report": Contract("what fit --format json prints: a list, one object a model", _MODEL, "fit_report_table",
                           _TEXT),
    "points": Contract("a table of points to predict, for predict --points", _MODEL, "point_table", _TEXT),
    "predictions": Contract("what predict --format json or csv prints", _MODEL, "prediction_table", _TEXT),
    "jobs": Contract("a jobs file: [[job]] tables in TOML or JSON, or a CSV with these columns", _PLAN, "jobs_table",
                     _FIELDS, "jobs_schema"),
    "cluster": Contract("a cluster file: [[nodes]] tables in TOML or JSON", _PLAN, "cluster_table", _FIELDS,
                        "cluster_schema"),
    "state": Contract("a state file for plan --running: TOML or JSON", _PLAN, "state_table", _FIELDS, "state_schema"),
    "schedule": Contract("a schedule: JSON", _PLAN, "schedule_table", _FIELDS, "schedule_schema"),
    "comparison": Contract("what compare --format json prints", "pfprofile.plan.compare.contract", "field_table",
                           _FIELDS, "json_schema"),
    "findings": Contract("what check --format json or csv prints", _PROFILE, "findings_table", _TEXT),
}  # fmt: skip


def _names(incomplete: str) -> list[str]:
    return [name for name in CONTRACTS if name.startswith(incomplete)]


def command(
    name: Annotated[str | None, typer.Argument(help=f"{', '.join(CONTRACTS)}.", autocompletion=_names)] = None,
    fmt: FormatOption = Format.table,
) -> None:
    """Print a contract, or the list of them."""
    from pfprofile.errors import UsageError, nearest

    if name is None:
        emit([{"name": key, "description": c.description} for key, c in CONTRACTS.items()], fmt, _LIST)
        return
    if name not in CONTRACTS:
        raise UsageError(f"no contract {name!r}{nearest(name, CONTRACTS)}", f"known: {', '.join(CONTRACTS)}")
    contract = CONTRACTS[name]
    if contract.schema and fmt is Format.json:
        print_json(getattr(import_module(contract.module), contract.schema)())
    else:
        emit(contract.rows(), fmt, contract.cells)
