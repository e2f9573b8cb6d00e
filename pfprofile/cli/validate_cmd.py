"""``pfprofile validate``: held-out errors of the models, by axis."""

from __future__ import annotations

from typing import Annotated

import typer

from pfprofile.cli._output import Cells, Format, FormatOption, emit

HELP = "Measure how well the models predict what they have not seen: leave one batch, GPU count, clock out."
EPILOG = "Example: pfprofile validate profiles/a100-sxm4/resnet50.parquet --max-error 10%"


def _percent(value: float) -> str:
    return f"{value:.1%}"


_CELLS: Cells = {
    "workload": ("workload", str),
    "part": ("part", lambda v: "time" if v == "throughput" else str(v)),
    "axis": ("left out", str),
    "folds": ("folds", str),
    "points": ("points", str),
    "mape": ("error", _percent),
    "coverage": ("in 90 %", lambda v: f"{v:.0%}"),
    "log_linear": ("linear", _percent),
    "log_quadratic": ("quadr.", _percent),
    "gradient_boosting": ("boost", _percent),
}


def command(
    profiles: Annotated[
        list[str], typer.Argument(metavar="PROFILE...", help="Profiles, names of shipped ones, folders.")
    ],
    folds: Annotated[
        int | None, typer.Option(min=3, help="Values left out on one axis at most (default: every one).")
    ] = None,
    max_error: Annotated[
        str | None, typer.Option(help="Exit 6 where a held-out error is above this, e.g. 10%.")
    ] = None,
    fmt: FormatOption = Format.table,
) -> None:
    """Validate."""
    from pfprofile.model.batch import find_profiles
    from pfprofile.model.judge import require, validate_profile
    from pfprofile.profile import read_profile
    from pfprofile.units import parse_fraction

    limit = parse_fraction(max_error, what="--max-error") if max_error else None
    rows = []
    for path, _ in find_profiles(profiles):
        rows += validate_profile(read_profile(path), str(path), folds)
    emit(rows, fmt, _CELLS)
    if limit is not None:
        require(rows, limit)
