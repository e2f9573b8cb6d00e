"""``pfprofile plan``: models + jobs + cluster → schedule."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from pfprofile.cli._output import ForceOption, Format, FormatOption, notice, refuse_existing, say

HELP = "Plan jobs on a cluster: the least average JCT within an energy budget and a power cap."
EPILOG = "Example: pfprofile plan --budget 120kWh --jobs jobs.toml --cluster cluster.toml"


def command(
    budget: Annotated[str | None, typer.Option(help="Energy that may be used, e.g. 120kWh.")] = None,
    power_cap: Annotated[str | None, typer.Option("--power-cap", help="Power never to exceed, e.g. 20kW.")] = None,
    jobs: Annotated[Path | None, typer.Option(help="Jobs file (TOML, CSV, JSON); default: an epoch a model.")] = None,
    cluster: Annotated[Path | None, typer.Option(help="Cluster file; default: the profiled machine.")] = None,
    models: Annotated[Path, typer.Option(help="Folder of fitted models.")] = Path("models"),
    policy: Annotated[str, typer.Option(help="Who gets what.")] = "pfprofile",
    nodes_always_on: Annotated[bool, typer.Option("--nodes-always-on", help="Empty nodes stay on.")] = False,
    output: Annotated[Path | None, typer.Option("-o", "--output", help="Schedule file; default schedule.json.")] = None,
    force: ForceOption = False,
    fmt: FormatOption = Format.table,
) -> None:
    """See HELP."""
    from pfprofile.plan.inputs import load_inputs
    from pfprofile.plan.planner import make_plan
    from pfprofile.plan.schedule import schedule_body, write_schedule
    from pfprofile.policy.registry import check_policy

    refuse_existing(output, force)
    limits = _limits(budget, power_cap, nodes_always_on)
    check_policy(policy)
    inputs = load_inputs(jobs, cluster, models)
    for text in inputs.notices:
        notice(text)
    plan = make_plan(inputs.jobs, inputs.cluster, limits, policy)
    body = schedule_body(plan, inputs.provenance)
    path = output or Path("schedule.json")
    write_schedule(body, path)
    _show(body, fmt)
    say(f"schedule written to {path}")


def _limits(budget: str | None, power_cap: str | None, always_on: bool) -> Any:
    from pfprofile.errors import UsageError
    from pfprofile.plan.planner import Limits
    from pfprofile.units import is_power, parse_energy, parse_power

    if budget is not None and is_power(budget):
        raise UsageError(
            f"--budget: {budget!r} is a power, not an energy", f"for a limit on power: --power-cap {budget}"
        )
    budget_j = parse_energy(budget, what="--budget") if budget is not None else None
    cap_w = parse_power(power_cap, what="--power-cap") if power_cap is not None else None
    for name, value in (("--budget", budget_j), ("--power-cap", cap_w)):
        if value is not None and value <= 0:
            raise UsageError(f"{name}: must be above 0")
    return Limits(budget_j, cap_w, always_on)


def _show(body: dict[str, Any], fmt: Format) -> None:
    from pfprofile.cli._output import print_csv, print_json, print_table
    from pfprofile.plan.schedule import SEGMENT_COLUMNS, job_rows
    from pfprofile.plan.words import JOB_CELLS, summary

    if fmt is Format.json:
        print_json(body)
    elif fmt is Format.csv:
        print_csv([{**s, "gpus": " ".join(s["gpus"])} for s in body["segments"]], SEGMENT_COLUMNS)
    else:
        print_table(job_rows(body), JOB_CELLS)
        typer.echo(summary(body))
