"""One run: a policy on a trace under a seed, and what is kept of it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from pfprofile.plan.compare.entries import Entry
from pfprofile.plan.compare.source import Source, cluster_of, jobs_of
from pfprofile.plan.outcome import Options, Outcome
from pfprofile.plan.simulator import simulate
from pfprofile.plan.workload import offered_load
from pfprofile.policy.base import Decision, Policy, State
from pfprofile.policy.clock_rules import with_rule
from pfprofile.policy.registry import load_policy, takes


@dataclass(frozen=True, slots=True)
class Task:
    """What one process is asked for; small, so that it travels."""

    source: Source
    seed: int
    entry: Entry
    always_on: bool = False


class Watched:
    """A policy, and how long jobs waited under it."""

    def __init__(self, policy: Policy) -> None:
        self.policy, self.name = policy, policy.name
        self.waited_s = 0.0
        self._seen_s = 0.0

    def decide(self, state: State) -> Decision:
        """Whoever waits now and has not just come has waited since the last decision."""
        waiting = len(state.waiting) - len(state.arrived)
        self.waited_s += waiting * (state.now_s - self._seen_s)
        self._seen_s = state.now_s
        return self.policy.decide(state)


def run_task(task: Task) -> dict[str, Any]:
    """Simulate, and sum up. Raises what `jobs_of` and `simulate` raise."""
    entry, source = task.entry, task.source
    cluster = cluster_of(source.cluster)
    jobs = list(jobs_of(source, task.seed, source.deadlines or entry.needs_deadlines))
    load = offered_load(jobs, cluster)
    if entry.rule is not None:
        jobs = with_rule(jobs, entry.rule)
    policy = Watched(load_policy(entry.policy)(**_parameters(entry)))
    outcome = simulate(jobs, cluster, policy, Options(always_on=task.always_on, record=False))
    return {
        "trace": source.name,
        "policy": entry.policy,
        "clock_rule": entry.rule.name if entry.rule is not None else None,
        "knob": entry.value,
        "seed": task.seed,
        "jobs": len(jobs),
        "offered_load": load if math.isfinite(load) else None,
        **_figures(outcome, cluster.n_gpus),
        "queueing_s": policy.waited_s / len(jobs),
        "nodes_on": _nodes_on(outcome, cluster.pools[0].node_w),
    }


def _parameters(entry: Entry) -> dict[str, Any]:
    """Keyword arguments of the policy; a whole number is handed on as one."""
    parameters: dict[str, Any] = {}
    if takes(entry.policy, "reprice_fraction"):
        parameters["reprice_fraction"] = 0.0  # as good as it can, for time of ours
    if entry.parameter is not None and entry.knob is not None:
        parameters[entry.parameter] = int(entry.knob) if entry.knob.is_integer() else entry.knob
    return parameters


def _figures(outcome: Outcome, n_gpus: int) -> dict[str, Any]:
    jct_s = np.array([job.finished_s - job.job.submit_s for job in outcome.jobs])
    held = math.fsum(job.attained_gpu_s for job in outcome.jobs)
    return {
        "avg_jct_s": outcome.avg_jct_s,
        "median_jct_s": float(np.median(jct_s)),
        "p99_jct_s": float(np.percentile(jct_s, 99)),
        "makespan_s": outcome.makespan_s,
        "energy_j": outcome.energy_j,
        "gpu_energy_j": outcome.gpu_energy_j,
        "node_energy_j": outcome.node_energy_j,
        "utilisation": held / (n_gpus * outcome.makespan_s),
        "rescales": outcome.rescales,
        "migrations": outcome.migrations,
        "idle_energy_j": outcome.idle_energy_j,
    }


def _nodes_on(outcome: Outcome, node_w: float) -> float | None:
    return outcome.node_energy_j / (node_w * outcome.makespan_s) if node_w > 0 else None
