"""``--exact``: the best fixed configurations by MILP, all jobs started at once, and the schedule they make."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from pfprofile.cluster.nodes import Cluster
from pfprofile.errors import InfeasibleError, UsageError
from pfprofile.plan.bounds import least_energy_j
from pfprofile.plan.bounds.static import StaticProblem, exact_choice, static_problem
from pfprofile.plan.feasibility import check_deadlines_alone, missed_deadline
from pfprofile.plan.oneshot import FixedPolicy
from pfprofile.plan.outcome import Outcome
from pfprofile.plan.planner import Bound, Limits, Plan, round_up
from pfprofile.plan.simulator import simulate
from pfprofile.plan.uncertainty import ModelDraws, spread_of
from pfprofile.policy.base import Choice, Job
from pfprofile.units import format_energy

#: shrinking the MILP's budget until idle GPUs and half-empty nodes fit in as well
MOST_TIGHTENINGS = 12


def exact_plan(jobs: Sequence[Job], cluster: Cluster, limits: Limits) -> Plan:
    """The optimum of the static problem.

    The MILP charges each job its share of its nodes. The schedule also pays for idle GPUs and for nodes that are half
    empty, so the MILP's budget is tightened until the schedule's total holds; the bound is the first MILP's.

    Raises:
        UsageError: jobs arrive over time, a power cap, or jobs under way.
        InfeasibleError: the jobs do not fit side by side, or not within the budget.
    """
    if limits.under_way:
        raise UsageError("--exact: cannot be combined with --running", "leave out --exact to replan jobs under way")
    if len({job.submit_s for job in jobs}) > 1:
        raise UsageError("--exact: jobs must all arrive at once", "leave out --exact, or the submit times")
    if limits.power_cap_w is not None:
        raise UsageError("--exact: cannot be combined with --power-cap", "leave out one of them")
    check_deadlines_alone(jobs, limits.start_s)
    capacity = [pool.n_gpus for pool in cluster.pools]
    problem = _in_time(static_problem(jobs, capacity, limits.budget_j), jobs)
    picks, bound_s = exact_choice(problem)
    draws = ModelDraws(limits.seed)
    budget_j = problem.budget_j
    least_j = math.inf
    for _ in range(MOST_TIGHTENINGS):
        outcome = _carry_out(jobs, cluster, limits, problem, picks)
        needed_j = outcome.energy_j
        if limits.confidence is not None:
            needed_j = max(needed_j, spread_of(outcome, draws).quantile_j(limits.confidence))
        least_j = min(least_j, needed_j)
        if needed_j <= budget_j and missed_deadline(outcome) is None:
            return Plan(
                outcome, jobs, cluster, limits, "static", None, spread_of(outcome, draws),
                Bound.of("static", bound_s, outcome.avg_jct_s), least_energy_j(jobs), least_j,
            )  # fmt: skip
        spent_j = float(sum(problem.energy_j[k] for k in picks))
        problem = replace(problem, budget_j=min(problem.budget_j, spent_j) * min(0.999, budget_j / needed_j))
        try:
            picks, _ = exact_choice(problem)
        except InfeasibleError:
            break
    raise InfeasibleError(
        f"no fixed configurations found within {format_energy(budget_j)}: least_energy_j={round_up(least_j)}, "
        f"lower_bound_j={least_energy_j(jobs):.3f}",
        "raise --budget, or plan without --exact",
        least_energy_j=round_up(least_j),
        lower_bound_j=least_energy_j(jobs),
    )


def _in_time(problem: StaticProblem, jobs: Sequence[Job]) -> StaticProblem:
    """Only options that meet their job's deadline."""
    keep = [
        k for k, i in enumerate(problem.owner.tolist())
        if jobs[i].submit_s + float(problem.time_s[k]) <= jobs[i].deadline_s
    ]  # fmt: skip
    return replace(
        problem, owner=problem.owner[keep], pool=problem.pool[keep], n=problem.n[keep], time_s=problem.time_s[keep],
        energy_j=problem.energy_j[keep], configs=[problem.configs[k] for k in keep],
    )  # fmt: skip


def _carry_out(
    jobs: Sequence[Job], cluster: Cluster, limits: Limits, problem: StaticProblem, picks: Sequence[int]
) -> Outcome:
    choices = {i: Choice(int(problem.pool[k]), problem.configs[k]) for i, k in enumerate(picks)}
    return simulate(jobs, cluster, FixedPolicy(choices), limits.options(record=True))
