"""``pfprofile show``: any artifact as a table."""

from __future__ import annotations

from typing import Annotated

import typer

from pfprofile.cli._output import Cells, Format, FormatOption, emit, say
from pfprofile.units import format_bytes, format_clock, format_duration, format_power

HELP = "Show a profile as a table; `show profiles` lists the shipped ones."
EPILOG = "Example: pfprofile show profiles/a100-sxm4/resnet50.parquet"
_TRIALS: Cells = {
    "n_gpus": ("GPUs", str),
    "n_nodes": ("nodes", str),
    "local_batch": ("batch", str),
    "accum_steps": ("acc", str),
    "requested_clock_mhz": ("clock", format_clock),
    "achieved_clock_mhz": ("achieved", format_clock),
    "step_time_s": ("step", format_duration),
    "power_w": ("power", format_power),
    "memory_peak_bytes": ("memory", format_bytes),
    "status": ("status", str),
}


def command(
    target: Annotated[str, typer.Argument(metavar="FILE", help="A profile, a shipped profile's name, or `profiles`.")],
    fmt: FormatOption = Format.table,
) -> None:
    """Print an artifact."""
    from pfprofile.profile import read_profile
    from pfprofile.profile.describe import headline
    from pfprofile.profile.places import find_profile, shipped

    if target == "profiles":
        rows = [{"name": name, "holds": headline(read_profile(path))} for name, path in shipped(".parquet").items()]
        emit(rows, fmt, {"name": ("name", str), "holds": ("holds", str)})
        return
    profile = read_profile(find_profile(target))
    say(headline(profile))
    emit(profile.rows(), fmt, _TRIALS, columns=profile.table.column_names)
