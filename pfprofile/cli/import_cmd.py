"""``pfprofile import``: what users already hold → profile."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from pfprofile.cli._output import ForceOption, notice, refuse_existing, say
from pfprofile.units import counted

HELP = "Turn measurements and logs that you already hold into a profile (sacct: into a jobs file)."
EPILOG = (
    "Example: pfprofile import nvidia-smi gpu.csv --trim --steps 500 --set workload=resnet50 --set local_batch=64. "
    "Example: pfprofile import table runs.csv --map step_time_s=time --map 'power_w=energy/time' "
    "--set n_gpus=1 --set workload=resnet50 --set device_name='NVIDIA A40'"
)
#: as the registry has them, which is not loaded for a help text (a test holds the two together)
FORMATS = (
    "table",
    "nvidia-smi",
    "nvidia-smi-dmon",
    "dcgmi-dmon",
    "dcgm-exporter",
    "zeus",
    "codecarbon",
    "mlperf",
    "sacct",
)


def _formats(incomplete: str) -> list[str]:
    return [name for name in FORMATS if name.startswith(incomplete)]


def command(
    format_name: Annotated[
        str,
        typer.Argument(
            metavar="FORMAT", help=f"The files' format: {' '.join(FORMATS)}; or file.py:Class.", autocompletion=_formats
        ),
    ],
    files: Annotated[list[Path], typer.Argument(metavar="FILE...", help="Files to read, as parts of one.")],
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
    columns: Annotated[
        str | None, typer.Option("--columns", help="Columns of a CSV without a header, as --query-gpu named them.")
    ] = None,
    interval: Annotated[
        str | None, typer.Option("--interval", help="Time between readings that carry no timestamp, e.g. 1s.")
    ] = None,
    start: Annotated[
        str | None,
        typer.Option("--from", help="Where training starts: a time, 12s after the start, or a marker line's text."),
    ] = None,
    end: Annotated[str | None, typer.Option("--to", help="Where training ends, as --from.")] = None,
    trim: Annotated[bool, typer.Option("--trim", help="Leave out the idle head and tail of a log.")] = False,
    steps: Annotated[int | None, typer.Option("--steps", min=1, help="Optimizer steps in the window or run.")] = None,
    log: Annotated[Path | None, typer.Option("--log", help="The training's own log, for step times.")] = None,
    log_regex: Annotated[
        str | None,
        typer.Option("--log-regex", help="What to read in it, by named groups: step, time, step_time_s, rate."),
    ] = None,
    gpu_ids: Annotated[
        str | None, typer.Option("--gpu-ids", help="The GPUs that trained, by index or UUID, e.g. 0,1.")
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", help="What to write; default profiles/<device>/<workload>.parquet, jobs.toml."),
    ] = None,
    force: ForceOption = False,
) -> None:
    """Import files; writes one profile for each (device, workload, precision) found."""
    refuse_existing(output, force)
    from pfprofile.profile.importers import ImportOptions, importer, refuse_foreign_options
    from pfprofile.profile.store import store_imported
    from pfprofile.units import parse_duration

    interval_s = parse_duration(interval, what="--interval") if interval is not None else None
    options = ImportOptions(
        tuple(mapping or ()), tuple(constants or ()), tuple(where or ()), unpivot, columns, interval_s, start, end,
        trim, steps, log, log_regex, gpu_ids,
    )  # fmt: skip
    chosen = importer(format_name)
    refuse_foreign_options(chosen, options)
    imported = chosen.read(files, options)
    for line in imported.notices:
        notice(line)
    if imported.jobs:
        from pfprofile.cluster.accounting import store_jobs

        path, said = store_jobs(imported.jobs, options.constants, output)
        for line in said:
            notice(line)
        say(f"wrote {path}: {len(imported.jobs)} jobs")
    for path, profile in store_imported(imported.profiles, output):
        say(f"wrote {path}: {counted(profile.n_rows, 'trial')}")
