"""`pfprofile sweep`: measure a workload over GPUs × batch sizes × clocks."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from pfprofile.cli._output import Cells, ForceOption, Format, FormatOption, emit, notice, say
from pfprofile.cli._trials import say_reasons
from pfprofile.errors import PartialSweepError, UsageError
from pfprofile.units import (
    counted,
    format_bytes,
    format_clock,
    format_duration,
    format_energy,
    format_power,
    parse_duration,
    parse_int_list,
)

if TYPE_CHECKING:
    from pfprofile.sweep import Outcome

HELP = "Measure a training workload over GPU counts, batch sizes and SM clocks into a Parquet profile."
EPILOG = "Example: pfprofile sweep resnet18 --device cpu --gpus 1,2 --batch-sizes 1,2 --image-size 32 -o p.parquet"

#: A table of more trials than this is not printed; `show` prints it.
MOST_SHOWN = 40


Workload = Annotated[str | None, typer.Argument(help="A zoo model, module:Class or file.py:Class.")]
Command = Annotated[str | None, typer.Option("--command", help="Your own training command, with placeholders.")]
ThroughputRegex = Annotated[str | None, typer.Option(help="Finds samples/s in the command's log; one group.")]
Gpus = Annotated[str | None, typer.Option(help="GPU counts, e.g. 1,2,4 (CPU: processes).")]
BatchSizes = Annotated[str, typer.Option(help="Local batch sizes: auto or a list.")]
Freqs = Annotated[str | None, typer.Option(help="SM clocks: auto, all, default, a list or LO:HI:STEP (MHz).")]
DeviceKind = Annotated[str, typer.Option(help="auto, cuda, cpu, or file.py:Class.")]
Replay = Annotated[str | None, typer.Option(help="Answer from a profile: a file, or a shipped one's name.")]
AccumSteps = Annotated[str | None, typer.Option(help="Forward passes accumulated in one step: a list.")]
Precision = Annotated[str | None, typer.Option(help="fp32 (default) or bf16.")]
ImageSize = Annotated[int | None, typer.Option(help="Short for --set image_size=N.", min=1)]
Setting = Annotated[list[str] | None, typer.Option("--set", help="A workload setting, KEY=VALUE; may be repeated.")]
Repeats = Annotated[int | None, typer.Option(help="Trials of each point.", min=1)]
Steps = Annotated[int | None, typer.Option(help="Steps in a measured window (default: by time).", min=1)]
Seed = Annotated[int, typer.Option(help="Seed of the order and of the random data.")]
MaxPoints = Annotated[str | None, typer.Option(help="The most points, spread by a design; auto stops by itself.")]
MaxTime = Annotated[str | None, typer.Option(help="Begin no new point after this, e.g. 30min.")]
Timeout = Annotated[str, typer.Option(help="The longest that one trial may take.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Print the points and an estimate; measure nothing.")]
Fresh = Annotated[bool, typer.Option("--fresh", help="Start over instead of going on.")]
RetryFailed = Annotated[bool, typer.Option("--retry-failed", help="Measure failed trials again.")]
RequireClocks = Annotated[bool, typer.Option("--require-clocks", help="Fail where clocks cannot be locked.")]
Shared = Annotated[bool, typer.Option("--shared", help="Measure although others use the GPUs.")]
AllowMixed = Annotated[bool, typer.Option("--allow-mixed", help="Go on although driver or torch have changed.")]
RawSamples = Annotated[bool, typer.Option("--samples", help="Keep the raw sensor samples in <name>.samples.parquet.")]
Output = Annotated[
    Path | None, typer.Option("-o", "--output", help="Profile to write; default profiles/<device>/<workload>.parquet.")
]


def command(
    workload: Workload = None,
    own_command: Command = None,
    throughput_regex: ThroughputRegex = None,
    gpus: Gpus = None,
    batch_sizes: BatchSizes = "auto",
    freqs: Freqs = None,
    device: DeviceKind = "auto",
    replay: Replay = None,
    accum_steps: AccumSteps = None,
    precision: Precision = None,
    image_size: ImageSize = None,
    setting: Setting = None,
    repeats: Repeats = None,
    steps: Steps = None,
    seed: Seed = 0,
    max_points: MaxPoints = None,
    max_time: MaxTime = None,
    timeout: Timeout = "10min",
    dry_run: DryRun = False,
    fresh: Fresh = False,
    retry_failed: RetryFailed = False,
    require_clocks: RequireClocks = False,
    shared: Shared = False,
    allow_mixed: AllowMixed = False,
    samples: RawSamples = False,
    output: Output = None,
    force: ForceOption = False,
    fmt: FormatOption = Format.table,
) -> None:
    """Read the flags, sweep, print what was measured."""
    from pfprofile.cli._progress import make_progress
    from pfprofile.sweep import SweepRequest, sweep
    from pfprofile.sweep.request import Reporter

    by_search = batch_sizes.strip().lower() == "auto"
    request = SweepRequest(
        workload=workload, command=own_command, throughput_regex=throughput_regex, replay=replay,
        device=device, freqs=freqs, precision=precision,
        gpus=tuple(parse_int_list(gpus, what="--gpus")) if gpus else None,
        batch_sizes=None if by_search else tuple(parse_int_list(batch_sizes, what="--batch-sizes")),
        accum_steps=tuple(parse_int_list(accum_steps, what="--accum-steps")) if accum_steps else None,
        settings=_settings(setting or [], image_size), repeats=repeats, steps=steps, seed=seed,
        max_points=_budget(max_points), max_time_s=parse_duration(max_time, what="--max-time") if max_time else None,
        timeout_s=parse_duration(timeout, what="--timeout"), dry_run=dry_run, fresh=fresh, force=force,
        retry_failed=retry_failed, require_clocks=require_clocks, shared=shared, allow_mixed=allow_mixed,
        samples=samples, output=output, argv=("pfprofile", *sys.argv[1:]),
    )  # fmt: skip
    _show(sweep(request, Reporter(notice, make_progress())), fmt)


def _budget(text: str | None) -> int | Literal["auto"] | None:
    if text is None:
        return None
    if text.strip().lower() == "auto":
        return "auto"
    if not text.strip().isdigit() or int(text) < 1:
        raise UsageError(f"--max-points {text!r} is neither auto nor a whole number from 1 on", "for example 30")
    return int(text)


def _settings(pairs: list[str], image_size: int | None) -> dict[str, str]:
    settings = {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not equals or not key.strip():
            raise UsageError(f"--set {pair!r} is not KEY=VALUE", "write for example --set image_size=64")
        settings[key.strip()] = value.strip()
    if image_size is not None:
        settings["image_size"] = str(image_size)
    return settings


def _show(outcome: Outcome, fmt: Format) -> None:
    if outcome.role is not None:
        say(outcome.role)
        return
    if outcome.profile is None:
        points = [
            {"n_gpus": p.n_gpus, "local_batch": p.local_batch, "accum_steps": p.accum_steps,
             "sm_clock_mhz": p.sm_clock_mhz}
            for p in outcome.planned
        ]  # fmt: skip
        cells: Cells = {
            "n_gpus": ("GPUs", str), "local_batch": ("batch", str), "accum_steps": ("passes", str),
            "sm_clock_mhz": ("clock", format_clock),
        }  # fmt: skip
        emit(points, fmt, cells)
        say(_estimate_words(outcome))
        return
    rows = outcome.profile.rows()
    if fmt is not Format.table or len(rows) <= MOST_SHOWN:
        emit(rows, fmt, _CELLS)
    if fmt is Format.table:
        say_reasons(rows)
    say(_state(outcome, len(rows)))
    if outcome.failed:
        raise PartialSweepError(
            f"{outcome.failed} of {counted(len(rows), 'trial')} failed; all are in {outcome.path} with their reasons",
            "try them again with --retry-failed",
        )


def _state(outcome: Outcome, n_rows: int) -> str:
    asked = outcome.of_request
    ours = f", {asked} of this request" if asked is not None and asked != n_rows else ""
    state = "nothing was missing" if not outcome.new else f"{outcome.new} new"
    return f"{outcome.path}: {counted(n_rows, 'trial')}{ours}, {state}"


def _estimate_words(outcome: Outcome) -> str:
    said = counted(len(outcome.planned), "trial")
    if (guess := outcome.estimate) is not None:
        if guess.time_s:
            said += f", roughly {format_duration(guess.time_s)}"
        said += f", {format_energy(guess.energy_j)} {guess.basis}" if guess.energy_j is not None else f", {guess.basis}"
    return f"{said}; nothing was measured"


_CELLS: Cells = {
    "n_gpus": ("GPUs", str),
    "local_batch": ("batch", str),
    "accum_steps": ("passes", str),
    "requested_clock_mhz": ("clock", format_clock),
    "status": ("status", str),
    "step_time_s": ("step", format_duration),
    "step_time_std_s": ("±", format_duration),
    "power_w": ("power", format_power),
    "memory_peak_bytes": ("memory", format_bytes),
}
