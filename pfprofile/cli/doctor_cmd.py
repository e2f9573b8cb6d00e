"""``pfprofile doctor``: what this machine can do, and how to mend what it cannot."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

from pfprofile.cli._output import Cells, Format, FormatOption, emit, print_json, say
from pfprofile.errors import HardwareError

HELP = "Say what this machine can do (GPUs, clocks, power, permissions) and how to fix what it cannot."
EPILOG = "Example: pfprofile doctor --restore-clocks"
_CELLS: Cells = {"topic": ("topic", str), "state": ("state", str), "words": ("found", str), "fix": ("fix", str)}


def command(
    restore_clocks: Annotated[
        bool, typer.Option("--restore-clocks", help="Reset clocks that sweeps left locked when they were killed.")
    ] = False,
    fmt: FormatOption = Format.table,
) -> None:
    """Print the findings, or restore clocks."""
    if restore_clocks:
        from pfprofile.device.restore import restore_clocks as restore

        for words in restore(insist=True) or ["no clock locks are left behind"]:
            say(words)
        return
    from pfprofile.device.doctor import diagnose
    from pfprofile.device.find import WITHOUT_GPU

    diagnosis = diagnose()
    rows = [asdict(f) for f in diagnosis.findings]
    if fmt is Format.json:
        print_json({"sweep_possible": diagnosis.sweep_possible, "findings": rows})
    else:
        emit(rows, fmt, _CELLS, columns=list(_CELLS))
    if not diagnosis.sweep_possible:
        raise HardwareError("no sweep on GPUs is possible here", f"the page above says what to mend; or {WITHOUT_GPU}")
