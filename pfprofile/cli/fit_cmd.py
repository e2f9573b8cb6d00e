"""``pfprofile fit``: profiles → models and a fit report."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from pfprofile.cli._output import ForceOption, Format, FormatOption, emit, notice, print_json, refuse_existing

HELP = "Fit throughput and power models to profiles; write model files and report how good they are."
EPILOG = "Example: pfprofile fit profiles/a100-sxm4/resnet50.parquet -o resnet50.json"


def command(
    profiles: Annotated[
        list[str] | None, typer.Argument(metavar="[PROFILE|DIR]...", help="Profiles or folders (default: profiles/).")
    ] = None,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", help="Model file (default: models/DEVICE/WORKLOAD.json).")
    ] = None,
    fmt: FormatOption = Format.table,
    force: ForceOption = False,
) -> None:
    """Fit and report."""
    refuse_existing(output, force)
    from pfprofile.model.batch import fit_files
    from pfprofile.model.report import as_text, fit_report, parameter_rows

    fitted = fit_files(profiles or [], output, notice)
    if fmt is not Format.table:  # the text report ends with them
        for path, model in fitted:
            for warning in model.document.warnings:
                notice(f"{path}: {warning}")
    if fmt is Format.json:
        print_json([fit_report(path, model) for path, model in fitted])
    elif fmt is Format.csv:
        emit([row for path, model in fitted for row in parameter_rows(path, model)], fmt, {})
    else:
        typer.echo("\n\n".join(as_text(path, model) for path, model in fitted))
