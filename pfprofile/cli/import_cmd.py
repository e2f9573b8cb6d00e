"""``pfprofile import``: what users already hold → profile."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from pfprofile.cli._output import ForceOption, notice, refuse_existing, say

HELP = "Turn measurements that you already hold into a profile."
EPILOG = (
    "Example: pfprofile import table runs.csv --map step_time_s=time --map 'power_w=energy/time' "
    "--set n_gpus=1 --set workload=resnet50 --set device_name='NVIDIA A40'"
)


def command(
    format_name: Annotated[str, typer.Argument(metavar="FORMAT", help="The files' format: table.")],
    files: Annotated[list[Path], typer.Argument(metavar="FILE...", help="Files to read, as parts of one table.")],
    mapping: Annotated[
        list[str] | None,
        typer.Option("--map", help="COLUMN=EXPRESSION: a profile column from + - * / of the file's columns."),
    ] = None,
    constants: Annotated[
        list[str] | None,
        typer.Option("--set", help="NAME=VALUE: a profile column or fact (gpus_per_node, samples_per_epoch, ...)."),
    ] = None,
    where: Annotated[
        list[str] | None, typer.Option("--where", help="COLUMN=VALUE: read only the rows that match.")
    ] = None,
    unpivot: Annotated[
        str | None, typer.Option("--unpivot", help="HEADINGS=VALUES: numeric column headings become rows.")
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", help="Profile to write; default profiles/<device>/<workload>.parquet."),
    ] = None,
    force: ForceOption = False,
) -> None:
    """Import files; writes one profile for each (device, workload, precision) found."""
    refuse_existing(output, force)
    from pfprofile.profile.importers import ImportOptions, importer
    from pfprofile.profile.store import store_imported

    options = ImportOptions(tuple(mapping or ()), tuple(constants or ()), tuple(where or ()), unpivot)
    imported = importer(format_name).read(files, options)
    for line in imported.notices:
        notice(line)
    for path, profile in store_imported(imported.profiles, output):
        say(f"wrote {path}: {profile.n_rows} trials")
