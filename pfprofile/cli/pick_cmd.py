"""``pfprofile pick``: the best point for one job, and what it saves."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from pfprofile.cli._output import Cells, Format, FormatOption, emit, notice
from pfprofile.units import format_clock, format_duration, format_energy, format_power

HELP = "Choose GPU count, batch and clock for one job, and say what that saves against the default clock."
EPILOG = "Example: pfprofile pick a100-sxm4/resnet50 --max-slowdown 5%"


class Objective(StrEnum):
    """What is made as small as possible, a sample."""

    energy = "energy"
    time = "time"
    edp = "edp"


def _percent(value: float) -> str:
    return f"{value:.1%}"


_CELLS: Cells = {
    "n_gpus": ("GPUs", str),
    "local_batch": ("batch", str),
    "sm_clock_mhz": ("clock", format_clock),
    "step_time_s": ("step", format_duration),
    "power_w": ("power", lambda v: format_power(v, 3)),
    "energy_per_step_j": ("energy", lambda v: format_energy(v, 3)),
    "energy_saved": ("saves", _percent),
    "energy_saved_lo": ("from", _percent),
    "energy_saved_hi": ("to", _percent),
    "time_added": ("slower", _percent),
}


def command(
    models: Annotated[list[str], typer.Argument(metavar="MODEL...", help="Model files or names.")],
    objective: Annotated[Objective, typer.Option(help="What to minimise, a sample.")] = Objective.energy,
    max_slowdown: Annotated[
        str | None, typer.Option(help="Longest step against the default clock, e.g. 5% (kept with 1 % to spare).")
    ] = None,
    power_cap: Annotated[str | None, typer.Option(help="Highest power of one GPU, e.g. 300W.")] = None,
    deadline: Annotated[str | None, typer.Option(help="Latest end of the work, e.g. 2h.")] = None,
    samples: Annotated[float | None, typer.Option(min=1, help="Size of the work (default: one epoch).")] = None,
    gpus: Annotated[str | None, typer.Option(help="GPU counts to choose among (default: the least measured).")] = None,
    batch_sizes: Annotated[
        str | None, typer.Option(help="Local batches to choose among (default: the largest measured).")
    ] = None,
    freqs: Annotated[str, typer.Option(help="Clocks to choose among: all, a list, or LO:HI:STEP in MHz.")] = "all",
    fmt: FormatOption = Format.table,
) -> None:
    """Pick a point."""
    from pfprofile.model.pick import Limits, candidates, clocks_given, pick
    from pfprofile.model.store import load_model
    from pfprofile.units import parse_clock_list, parse_duration, parse_fraction, parse_int_list, parse_power

    limits = Limits(
        max_slowdown=parse_fraction(max_slowdown, what="--max-slowdown") if max_slowdown else None,
        power_cap_w=parse_power(power_cap, what="--power-cap") if power_cap else None,
        deadline_s=parse_duration(deadline, what="--deadline") if deadline else None,
        samples=samples,
    )
    n = parse_int_list(gpus, what="--gpus") if gpus is not None else None
    b = parse_int_list(batch_sizes, what="--batch-sizes") if batch_sizes is not None else None
    asked = parse_clock_list(freqs)
    rows = []
    for name in models:
        model = load_model(name)
        if model.source == "synthetic":
            notice(f"{name}: fitted to synthetic data")
        choice = pick(model, candidates(model, n, b, clocks_given(model, asked)), objective.value, limits)
        for text in choice.advice:
            notice(f"{name}: {text}")
        rows.append({"model": name, **choice.row()})
    emit(rows, fmt, _CELLS)
