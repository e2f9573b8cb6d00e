"""``pfprofile compare``: policies on the same trace, and their JCT at equal energy."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from pfprofile.cli._output import ForceOption, Format, FormatOption, notice, refuse_existing, say

HELP = "Compare policies on a trace: JCT and energy, and the ratio of JCTs at equal energy."
EPILOG = "Example: pfprofile compare --trace cluster03.csv --policies tiresias,afs,powerflow,pfprofile --seeds 0,1,2"


def command(
    trace: Annotated[list[Path], typer.Option(help="Trace (CSV): ITP, fig10, or any with --map. Repeatable.")],
    policies: Annotated[
        str, typer.Option(help="Comma-separated; NAME+RULE for a clock rule of its own; file.py:Class for your own.")
    ] = "tiresias,afs,powerflow,pfprofile",
    clock_rules: Annotated[
        str, typer.Option("--clock-rules", help="For policies of fixed clocks: max, zeus, zeus:0.5, energy-optimal.")
    ] = "max",
    knob: Annotated[
        list[str] | None, typer.Option(help="POLICY.PARAMETER=V1,V2: values to try, e.g. edf.max_gpus=16,64.")
    ] = None,
    seeds: Annotated[str, typer.Option(help="Of the draws of models: 0,1,2 or 0:3.")] = "0",
    mapping: Annotated[
        list[str] | None, typer.Option("--map", help="FIELD=COLUMN: submit, duration, gpus, name, model, …")
    ] = None,
    cluster: Annotated[Path | None, typer.Option(help="Cluster file; default: 16 nodes of 8 A100.")] = None,
    models: Annotated[Path | None, typer.Option(help="Folder of fitted models; default: the shipped ones.")] = None,
    first: Annotated[int | None, typer.Option(help="Only the trace's first N jobs.")] = None,
    load: Annotated[float | None, typer.Option(help="Stretch arrivals to this offered load, e.g. 0.8.")] = None,
    fixed_batch: Annotated[
        bool, typer.Option("--fixed-batch", help="Global batch of one reference batch, whatever a job asked for.")
    ] = False,
    deadlines: Annotated[
        bool, typer.Option("--deadlines", help="Show the trace's deadlines to every policy, not to edf & co. alone.")
    ] = False,
    nodes_always_on: Annotated[bool, typer.Option("--nodes-always-on", help="Empty nodes stay on.")] = False,
    engine: Annotated[str, typer.Option(help="Where to compute: local, dask or ray.")] = "local",
    processes: Annotated[int, typer.Option("-j", "--processes", help="Processes on this machine.")] = 1,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", help="Also write the comparison: .json, .csv or .parquet.")
    ] = None,
    force: ForceOption = False,
    fmt: FormatOption = Format.table,
) -> None:
    """See HELP."""
    from pfprofile.cli._comparison import print_comparison
    from pfprofile.plan.compare import Request, compare, write_comparison
    from pfprofile.plan.compare.output import check_suffix

    check_suffix(output)
    refuse_existing(output, force)
    request = Request(
        trace, policies, clock_rules, knob or [], seeds, mapping or [], cluster, models, first, load, fixed_batch,
        deadlines, nodes_always_on, engine, processes,
    )  # fmt: skip

    def tell(done: int, total: int) -> None:
        if done == total or done * 10 // total > (done - 1) * 10 // total:
            say(f"[{done}/{total}] runs")

    body = compare(request, tell, notice)
    print_comparison(body, fmt)
    if output is not None:
        write_comparison(body, output)
        say(f"comparison written to {output}")
