"""``pfprofile check``: what is doubtful in an artifact, and what to do."""

from __future__ import annotations

from typing import Annotated

import typer

from pfprofile.cli._output import Cells, Format, FormatOption, emit, say
from pfprofile.units import counted

HELP = "Say what is doubtful in a profile, model or schedule, and which command would help."
EPILOG = "Example: pfprofile check profiles/a100-sxm4/resnet50.parquet"
_CELLS: Cells = {"what": ("doubt", str), "where": ("where", str), "next_command": ("next command", str)}


def command(
    target: Annotated[
        str, typer.Argument(metavar="FILE", help="A profile (or a shipped one's name), model, schedule or comparison.")
    ],
    fmt: FormatOption = Format.table,
) -> None:
    """List doubts; finding some is no error."""
    from pfprofile.report.artifact import find_artifact, read_artifact
    from pfprofile.report.doubts import doubts

    path = find_artifact(target)
    found = doubts(read_artifact(path))
    rows = [{"what": f.what, "where": f.where, "next_command": f.next_command} for f in found]
    if rows or fmt is not Format.table:
        emit(rows, fmt, _CELLS, columns=list(_CELLS))
    say(f"{path}: {counted(len(rows), 'doubt')}" if rows else f"{path}: nothing doubtful found")
