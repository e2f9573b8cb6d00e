"""``compare`` as one call: traces, policies, knobs and seeds in, the comparison's body out."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pfprofile._version import __version__
from pfprofile.cluster.traces import parse_mapping
from pfprofile.errors import UsageError
from pfprofile.plan.compare.engine import Tell, check_engine, run_all
from pfprofile.plan.compare.entries import Entry, parse_entries
from pfprofile.plan.compare.equal_energy import equal_energy
from pfprofile.plan.compare.runs import Task
from pfprofile.plan.compare.source import DEFAULT_WORDS, Source, cluster_of, describe, jobs_of, models_of, prices_for
from pfprofile.plan.workload import offered_load


@dataclass(frozen=True, slots=True)
class Request:
    """What ``compare`` was asked for; see the command's flags."""

    traces: Sequence[Path]
    policies: str
    clock_rules: str = "max"
    knobs: Sequence[str] = ()
    seeds: str = "0"
    mapping: Sequence[str] = ()
    cluster: Path | None = None
    models: Path | None = None
    first: int | None = None
    load: float | None = None
    fixed_batch: bool = False
    deadlines: bool = False
    always_on: bool = False
    engine: str = "local"
    processes: int = 1


def compare(
    request: Request, tell: Tell = lambda done, total: None, say: Callable[[str], None] = lambda text: None
) -> dict[str, Any]:
    """Run everything.

    Args:
        request: what to run.
        tell: progress.
        say: what the person should know, before the runs start.

    Raises:
        UsageError: see `parse_entries`, `parse_seeds`, `parse_mapping`, `check_engine`.
        InputError: see `jobs_of`.
        InfeasibleError: a policy leaves jobs that never start.
    """
    check_engine(request.engine, request.processes)
    seeds = parse_seeds(request.seeds)
    entries = parse_entries(request.policies, request.clock_rules, request.knobs)
    mapping = tuple(parse_mapping(list(request.mapping)).items())
    if request.first is not None and request.first < 1:
        raise UsageError(f"--first {request.first}: at least 1")
    sources = [
        Source(trace, mapping, request.cluster, request.models, request.first, request.load, request.fixed_batch,
               request.deadlines)
        for trace in request.traces
    ]  # fmt: skip
    if len({source.name for source in sources}) < len(sources):
        raise UsageError("--trace: two traces have the same file name", "rename one")
    tasks: list[Task] = []
    for source in sources:
        for entry in _spread(entries, source, seeds[0]):
            tasks += [Task(source, seed, entry, request.always_on) for seed in seeds]
    _note(request, sources, seeds[0], say)
    # Jobs are made anew for each (trace, seed): tasks that share them follow one another.
    order = sorted(range(len(tasks)), key=lambda i: (sources.index(tasks[i].source), tasks[i].seed, i))
    found = run_all([tasks[i] for i in order], request.engine, request.processes, tell)
    runs = [run for _, run in sorted(zip(order, found, strict=True), key=lambda pair: pair[0])]
    return {
        "runs": runs,
        "equal_energy": equal_energy([task.entry for task in tasks], runs),
        "inputs": {"tool_version": __version__, "seeds": seeds, **describe(sources)},
    }


def parse_seeds(text: str) -> list[int]:
    """``0,1,2`` or ``0:5`` (five of them). Raises UsageError."""
    try:
        if ":" in text:
            low, high = (int(part) for part in text.split(":"))
            seeds = list(range(low, high))
        else:
            seeds = list(dict.fromkeys(int(part) for part in text.split(",")))
    except ValueError:
        raise UsageError(f"--seeds {text!r}: not whole numbers", "write 0,1,2 or 0:3") from None
    if not seeds or min(seeds) < 0:
        raise UsageError(f"--seeds {text!r}: none, or below 0", "write 0,1,2 or 0:3")
    return seeds


def _spread(entries: Sequence[Entry], source: Source, seed: int) -> list[Entry]:
    """Every value of every knob; prices fit the jobs of the first seed, so that seeds share them."""
    out: list[Entry] = []
    for entry in entries:
        if entry.parameter == "energy_price" and entry.knob is None:
            prices = prices_for(jobs_of(source, seed, False))
            out += [replace(entry, knob=price) for price in prices]
        else:
            out.append(entry)
    return out


def _note(request: Request, sources: Sequence[Source], seed: int, say: Callable[[str], None]) -> None:
    cluster = cluster_of(request.cluster)
    if request.cluster is None:
        say(f"no --cluster: {DEFAULT_WORDS}")
    for what in cluster.unknown:
        say(f"{what} is not known; it counts as 0 W")
    models = models_of(request.models, cluster.pools[0].gpu)
    for kind in sorted({m.source for m in models.values()}):
        names = ", ".join(name for name, m in sorted(models.items()) if m.source == kind)
        say(f"{'synthetic, not measured' if kind == 'synthetic' else kind}: the models of {names}")
    for source in sources:
        jobs = jobs_of(source, seed, False)
        load = offered_load(jobs, cluster)
        words = f"offered load {load:.2f}" if math.isfinite(load) else "all arrive at once"
        over = ", more than the cluster can do: JCTs grow with the trace's length" if 1 < load < math.inf else ""
        say(f"{source.name}: {len(jobs)} jobs on {cluster.n_gpus} GPUs, {words}{over}")
