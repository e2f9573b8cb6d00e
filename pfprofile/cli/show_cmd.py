"""``pfprofile show``: any artifact as a table."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Annotated, Any

import typer

from pfprofile.cli._output import Cells, Format, FormatOption, emit, print_json, say, stdout_width
from pfprofile.cli._schedule import print_schedule
from pfprofile.units import format_bytes, format_clock, format_duration, format_power

HELP = "Show a profile, model, schedule or comparison as a table; `show profiles` lists the shipped profiles."
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
    target: Annotated[
        str,
        typer.Argument(metavar="FILE", help="A profile, model or schedule, a shipped profile's name, or `profiles`."),
    ],
    fmt: FormatOption = Format.table,
) -> None:
    """Print an artifact."""
    from pfprofile.profile import read_profile
    from pfprofile.profile.describe import headline
    from pfprofile.profile.places import shipped
    from pfprofile.report.artifact import Kind, find_artifact, read_artifact

    if target == "profiles":
        rows = [{"name": name, "holds": headline(read_profile(path))} for name, path in shipped(".parquet").items()]
        emit(rows, fmt, {"name": ("name", str), "holds": ("holds", str)})
        return
    artifact = read_artifact(find_artifact(target))
    show = {Kind.profile: _profile, Kind.model: _model, Kind.schedule: _schedule, Kind.comparison: _comparison}
    show[artifact.kind](artifact, fmt)


def _profile(artifact: Any, fmt: Format) -> None:
    from pfprofile.profile.describe import headline

    profile = artifact.body
    say(headline(profile))
    emit(profile.rows(), fmt, _TRIALS, columns=profile.table.column_names)
    if fmt is Format.table:
        from pfprofile.cli._trials import say_reasons
        from pfprofile.report.terminal import profile_charts

        say_reasons(profile.rows())
        _draw(profile_charts, profile.rows())


def _model(artifact: Any, fmt: Format) -> None:
    from pfprofile.model.report import as_text, fit_report, parameter_rows
    from pfprofile.model.store import load_model

    model = load_model(artifact.path)
    if fmt is Format.table:
        from pfprofile.report.terminal import model_charts

        typer.echo(as_text(artifact.path, model))
        _draw(model_charts, model)
    elif fmt is Format.json:
        print_json([fit_report(artifact.path, model)])
    else:
        emit(parameter_rows(artifact.path, model), fmt, {})


def _draw(charts: Callable[..., list[str]], what: Any) -> None:
    """Bars below a table, in the terminal's width and characters."""
    from pfprofile.report.blocks import can_show_blocks

    for line in charts(what, stdout_width(), blocks=can_show_blocks(sys.stdout.encoding)):
        typer.echo(line)


def _schedule(artifact: Any, fmt: Format) -> None:
    print_schedule(artifact.body, fmt)


def _comparison(artifact: Any, fmt: Format) -> None:
    from pfprofile.cli._comparison import print_comparison
    from pfprofile.report.comparison_file import rows_to_print

    print_comparison(artifact.body if fmt is Format.json else rows_to_print(artifact.body, artifact.path), fmt)
