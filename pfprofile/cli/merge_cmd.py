"""``pfprofile merge``: join profiles."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from pfprofile.cli._output import ForceOption, refuse_existing, say
from pfprofile.units import counted

HELP = "Join profiles of one device, workload and precision."
EPILOG = "Example: pfprofile merge monday.parquet tuesday.parquet -o both.parquet"


def command(
    files: Annotated[list[Path], typer.Argument(metavar="FILE...", help="Profiles to join.")],
    output: Annotated[Path, typer.Option("-o", "--output", help="Profile to write.")],
    force: ForceOption = False,
) -> None:
    """Join profiles whose checked metadata agree; else say what differs."""
    refuse_existing(output, force)
    from pfprofile.profile import read_profile, write_profile
    from pfprofile.profile.merge import merge

    merged = merge([read_profile(f) for f in files], [str(f) for f in files])
    write_profile(merged, output)
    say(f"wrote {output}: {counted(merged.n_rows, 'trial')} from {len(files)} profiles")
