"""``pfprofile plan``: models + jobs + cluster → schedule."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from pfprofile.cli._output import ForceOption, Format, FormatOption, notice, refuse_existing, say
from pfprofile.cli._schedule import print_progress, print_schedule

HELP = "Plan jobs on a cluster: the least average JCT within an energy budget and a power cap."
EPILOG = "Example: pfprofile plan --budget 120kWh --jobs jobs.toml --cluster cluster.toml"


def command(
    budget: Annotated[str | None, typer.Option(help="Energy that may be used, e.g. 120kWh.")] = None,
    power_cap: Annotated[str | None, typer.Option("--power-cap", help="Power never to exceed, e.g. 20kW.")] = None,
    jobs: Annotated[Path | None, typer.Option(help="Jobs file (TOML, CSV, JSON); default: an epoch a model.")] = None,
    cluster: Annotated[Path | None, typer.Option(help="Cluster file; default: the profiled machine.")] = None,
    models: Annotated[Path, typer.Option(help="Fitted models: a folder, or one model file.")] = Path("models"),
    policy: Annotated[str, typer.Option(help="Who gets what.")] = "pfprofile",
    confidence: Annotated[str | None, typer.Option(help="Hold the budget with this probability, e.g. 0.95.")] = None,
    exact: Annotated[bool, typer.Option("--exact", help="Fixed configurations, optimal by MILP.")] = False,
    running: Annotated[
        Path | None, typer.Option(help="Jobs under way: a state file, an earlier schedule, sacct's or squeue's output.")
    ] = None,
    manifest: Annotated[Path | None, typer.Option(help="manifest.json of the Slurm export, for --running.")] = None,
    now: Annotated[str | None, typer.Option(help="The time now, for --running, e.g. 2h.")] = None,
    expected_work: Annotated[
        str | None, typer.Option("--expected-work", help="Keep the budget online: forecast of the work's least energy.")
    ] = None,
    nodes_always_on: Annotated[bool, typer.Option("--nodes-always-on", help="Empty nodes stay on.")] = False,
    pue: Annotated[float | None, typer.Option(help="Facility energy for each unit of IT energy.")] = None,
    price: Annotated[float | None, typer.Option(help="Money a kWh.")] = None,
    carbon: Annotated[float | None, typer.Option(help="g CO2e a kWh.")] = None,
    placement: Annotated[bool, typer.Option("--placement", help="Show who sits where when most is busy.")] = False,
    export: Annotated[
        list[str] | None,
        typer.Option(
            "--export", help="Write it for slurm:DIR, kubernetes:DIR or csv:DIR (or file.py:Class:DIR); repeatable."
        ),
    ] = None,
    seed: Annotated[int, typer.Option(help="Seed of the draws of the models' errors.")] = 0,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", help="Schedule file; default schedule.json, replaced.")
    ] = None,
    force: ForceOption = False,
    fmt: FormatOption = Format.table,
) -> None:
    """See HELP."""
    from pfprofile.plan import words
    from pfprofile.plan.derived import Rates
    from pfprofile.plan.limits import parse_limits
    from pfprofile.plan.run import Request, run_plan
    from pfprofile.plan.schedule import write_schedule
    from pfprofile.policy.registry import check_policy
    from pfprofile.units import parse_duration, parse_energy

    refuse_existing(output, force)
    if export:
        from pfprofile.plan.exports import check_targets

        check_targets(export, force)
    check_policy(policy)
    request = Request(
        jobs, cluster, models, parse_limits(budget, power_cap, confidence, always_on=nodes_always_on, seed=seed),
        policy, exact, running, parse_duration(now, what="--now") if now else None, manifest,
        parse_energy(expected_work, what="--expected-work") if expected_work else None, Rates(pue, price, carbon),
    )  # fmt: skip
    answer = run_plan(request)
    if answer.progress:
        print_progress(answer.progress)
    for text in answer.notices:
        notice(text)
    body: dict[str, Any] = answer.body
    path = output or Path("schedule.json")
    exported = []
    if export:
        from pfprofile.plan import exports

        plan = answer.export_plan()
        exported = [exports.export(plan, target) for target in export]
    write_schedule(body, path)
    print_schedule(body, fmt)
    if placement and fmt is Format.table:
        typer.echo(words.placement_view(body, answer.cluster))
    say(f"schedule written to {path}")
    for folder in exported:
        say(f"exported to {folder}: read {folder / 'README.md'}" if (folder / "README.md").exists()
            else f"exported to {folder}")  # fmt: skip
