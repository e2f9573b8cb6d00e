"""``pfprofile predict``: time, throughput, power and energy of any points."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from pfprofile.cli._output import Cells, Format, FormatOption, emit, notice
from pfprofile.units import format_clock, format_duration, format_energy, format_power

HELP = "Predict step time, throughput, power and energy, with 90 % intervals."
EPILOG = "Example: pfprofile predict a100-sxm4/resnet50 --gpus 1,8 --batch-sizes 32,64 --freqs default,1005"

_CELLS: Cells = {
    "n_gpus": ("GPUs", str),
    "n_nodes": ("nodes", str),
    "local_batch": ("batch", str),
    "sm_clock_mhz": ("clock", format_clock),
    "step_time_s": ("step", format_duration),
    "step_interval": ("90 % interval", str),
    "throughput_per_s": ("per s", lambda v: f"{v:.4g}"),
    "power_w": ("power", lambda v: format_power(v, 3)),
    "energy_per_step_j": ("energy", lambda v: format_energy(v, 3)),
    "extrapolated": ("", lambda v: "!" if v else ""),
}


def command(
    models: Annotated[list[str], typer.Argument(metavar="MODEL...", help="Model files or names.")],
    gpus: Annotated[str | None, typer.Option(help="GPU counts, e.g. 1,2,8 (default: the measured ones).")] = None,
    batch_sizes: Annotated[
        str | None, typer.Option(help="Local batches, e.g. 32,64 (default: the measured ones).")
    ] = None,
    freqs: Annotated[str, typer.Option(help="Clocks: default, all, a list, or LO:HI:STEP in MHz.")] = "default",
    gpus_per_node: Annotated[int | None, typer.Option(min=1, help="GPUs in a node (default: the profile's).")] = None,
    points: Annotated[Path | None, typer.Option(help="CSV or Parquet file, one point a row.")] = None,
    fmt: FormatOption = Format.table,
) -> None:
    """Predict points."""
    from pfprofile.errors import UsageError
    from pfprofile.model.ask import COLUMNS, clocks_asked, from_file, grid, unsupported
    from pfprofile.model.points import PREDICTED
    from pfprofile.model.store import load_model
    from pfprofile.units import parse_clock_list, parse_int_list

    if points is not None and (gpus or batch_sizes or freqs != "default"):
        raise UsageError("--points holds the points itself", "drop --gpus, --batch-sizes and --freqs")
    n = parse_int_list(gpus, what="--gpus") if gpus is not None else None
    b = parse_int_list(batch_sizes, what="--batch-sizes") if batch_sizes is not None else None
    asked = parse_clock_list(freqs)
    rows = []
    for name in models:
        model = load_model(name)
        if model.source == "synthetic":
            notice(f"{name}: fitted to synthetic data")
        if points is not None:
            wanted = from_file(model, points, gpus_per_node)
        else:
            clocks = clocks_asked(model, asked)
            if text := unsupported(model, clocks):
                notice(f"{name}: {text}")
            wanted = grid(model, n, b, clocks, gpus_per_node)
        head = {"model": name} if len(models) > 1 else {}
        rows += [{**head, **row} for row in model.predict(wanted).rows()]
    more = {"model": ("model", str)} if len(models) > 1 else {}
    if fmt is Format.table:
        rows = [{**row, "step_interval": _interval(row["step_time_lo_s"], row["step_time_hi_s"])} for row in rows]
    outside = "! = outside the measured range: a guess" if any(row["extrapolated"] for row in rows) else ""
    emit(rows, fmt, {**more, **_CELLS}, columns=[*more, *COLUMNS, *PREDICTED], caption=outside)


def _interval(low_s: float, high_s: float) -> str:
    """``490-507 ms``: one unit where both ends share it."""
    low, high = format_duration(low_s).split(), format_duration(high_s).split()
    return f"{low[0]}-{high[0]} {high[1]}" if low[1:] == high[1:] else f"{' '.join(low)}-{' '.join(high)}"
