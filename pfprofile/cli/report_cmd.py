"""``pfprofile report``: the pictures."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from pfprofile.cli._output import ForceOption, refuse_existing, say

HELP = "Draw profiles, models, schedules and comparisons into one HTML file that needs no network."
EPILOG = "Example: pfprofile report profiles/a100-sxm4/resnet50.parquet schedule.json -o report.html"


def command(
    files: Annotated[
        list[str],
        typer.Argument(metavar="FILE...", help="Profiles (or shipped ones by name), models, schedules, comparisons."),
    ],
    output: Annotated[
        Path | None, typer.Option("-o", "--output", help="Where to write; default report.html, replaced.")
    ] = None,
    force: ForceOption = False,
) -> None:
    """Write the report."""
    refuse_existing(output, force)
    from pfprofile.report import write_report
    from pfprofile.units import format_bytes

    path = output or Path("report.html")
    size = write_report(files, path)
    say(f"wrote {path} ({format_bytes(size)}): open it in any browser")
