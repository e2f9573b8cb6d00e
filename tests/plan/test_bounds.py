"""Bounds lie below every schedule, meet known optima, and the one-shot search comes close to the MILP."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pfprofile.cluster.nodes import NodeGroup, Pool, make_cluster
from pfprofile.cluster.speed_table import Config, SpeedTable
from pfprofile.errors import InfeasibleError, UsageError
from pfprofile.plan.bounds import least_energy_j, preemptive_bound_s
from pfprofile.plan.bounds import preemptive as preemptive_module
from pfprofile.plan.bounds.static import exact_choice, static_bound_s, static_problem
from pfprofile.plan.exact import exact_plan
from pfprofile.plan.oneshot import one_shot
from pfprofile.plan.outcome import Options
from pfprofile.plan.planner import Limits
from pfprofile.plan.simulator import simulate
from pfprofile.policy.base import Job
from pfprofile.policy.registry import make_policy
from tests.plan.cases import CLUSTER, make_jobs
from tests.plan.double import Double


def power_law_table(pool: Pool, p: float) -> SpeedTable:
    """Speed n^p at one clock, 100 W a GPU."""
    configs = []
    for k in range(pool.max_job_gpus.bit_length()):
        n = 1 << k
        configs.append(Config(k, n, pool.nodes_for(n), 1, 1, None, float(n) ** p, 100.0, 100.0 * n))
    return SpeedTable(Double(), 256, pool, tuple(configs), extrapolated=False)


def hesrpt_s(works: list[float], n_gpus: int, p: float) -> float:
    """Mean JCT of heSRPT (Berg, Vesilo, Harchol-Balter 2020), optimal for divisible GPUs and speed n^p."""
    left = sorted(works, reverse=True)
    total, now = 0.0, 0.0
    while left:
        m = len(left)
        shares = [(i / m) ** (1 / (1 - p)) - ((i - 1) / m) ** (1 / (1 - p)) for i in range(1, m + 1)]
        rates = [(share * n_gpus) ** p for share in shares]
        step = min(w / r for w, r in zip(left, rates, strict=True))
        left = [w - r * step for w, r in zip(left, rates, strict=True)]
        now += step
        done = [w for w in left if w <= 1e-9 * max(works)]
        total += now * len(done)
        left = [w for w in left if w > 1e-9 * max(works)]
    return total / len(works)


@settings(deadline=None, max_examples=25)
@given(st.lists(st.floats(1.0, 1000.0), min_size=1, max_size=20), st.sampled_from((0.3, 0.5, 0.8, 0.95)))
def test_the_bound_lies_below_the_optimum_of_divisible_gpus(works: list[float], p: float) -> None:
    pool = make_cluster([NodeGroup("n", "g", 4, 8, 0.0, 0.0)]).pools[0]
    table = power_law_table(pool, p)
    jobs = [Job(f"j{i}", 0.0, w, 1, 32, {0: table}) for i, w in enumerate(works)]
    bound = preemptive_bound_s(jobs, 32)
    # Configurations are powers of two: between them the optimum may mix, which a bound over their hull allows for.
    assert bound <= hesrpt_s(works, 32, p) * (1 + 1e-6)
    assert bound >= 0.4 * hesrpt_s(works, 32, p)


def test_the_rule_comes_close_to_hesrpt_where_that_is_optimal() -> None:
    pool = make_cluster([NodeGroup("n", "g", 8, 8, 0.0, 0.0)]).pools[0]
    cluster = make_cluster([NodeGroup("n", "g", 8, 8, 0.0, 0.0)])
    table = power_law_table(pool, 0.5)
    works = [3000.0 * 1.3**i for i in range(12)]
    jobs = [Job(f"j{i}", 0.0, w, 1, 64, {0: table}, rescale_s=0.0) for i, w in enumerate(works)]
    outcome = simulate(jobs, cluster, make_policy("pfprofile", reprice_fraction=0.0), Options())
    assert hesrpt_s(works, 64, 0.5) * 0.999 <= outcome.avg_jct_s <= hesrpt_s(works, 64, 0.5) * 1.15


def test_reallocating_beats_the_static_bound_and_not_the_preemptive_one() -> None:
    cluster = make_cluster([NodeGroup("n", "g", 1, 8, 0.0, 0.0)])
    table = power_law_table(cluster.pools[0], 0.9)
    jobs = [Job(f"j{i}", 0.0, w, 1, 8, {0: table}, rescale_s=0.0) for i, w in enumerate((10.0, 12.0))]
    static = static_bound_s(static_problem(jobs, [8], None))
    outcome = simulate(jobs, cluster, make_policy("pfprofile"), Options())
    assert preemptive_bound_s(jobs, 8) <= outcome.avg_jct_s < static


@settings(deadline=None, max_examples=15)
@given(st.integers(0, 10**6), st.integers(170, 260), st.sampled_from((0.0, 30.0)))
def test_the_bound_of_many_jobs_is_weaker_but_valid(seed: int, count: int, gap_s: float) -> None:
    jobs = make_jobs(seed, count, gap_s)
    coarse = preemptive_bound_s(jobs, 24)
    rows, preemptive_module.MOST_ROWS = preemptive_module.MOST_ROWS, 1000
    try:
        fine = preemptive_bound_s(jobs, 24)
    finally:
        preemptive_module.MOST_ROWS = rows
    assert 0.8 * fine <= coarse <= fine * (1 + 1e-9)


@settings(deadline=None, max_examples=10)
@given(st.integers(0, 10**6), st.integers(4, 14), st.floats(0.05, 0.95))
def test_one_shot_is_close_to_the_milp_and_never_overspends(seed: int, count: int, share: float) -> None:
    jobs = [replace(job, min_n=1) for job in make_jobs(seed, count, 0.0)]
    free = static_problem(jobs, [24], None)
    least = least_energy_j(jobs)
    picks, _ = exact_choice(free)
    budget_j = least + share * max(0.0, float(free.energy_j[picks].sum()) - least)
    problem = static_problem(jobs, [24], budget_j)
    try:
        best, proven_s = exact_choice(problem)
        mine = one_shot(problem)
    except InfeasibleError:
        return  # the least energy of all jobs at once does not fit the GPUs
    assert problem.energy_j[mine].sum() <= budget_j * (1 + 1e-12) and problem.n[mine].sum() <= 24
    assert sorted(problem.owner[mine]) == list(range(count))
    assert static_bound_s(problem) <= problem.time_s[best].mean() * (1 + 1e-6)
    assert proven_s <= problem.time_s[mine].mean() * (1 + 1e-6)
    assert problem.time_s[mine].mean() <= 1.15 * problem.time_s[best].mean()


def test_an_exact_plan_keeps_fixed_configurations_its_budget_and_its_bound() -> None:
    jobs = [replace(job, min_n=1) for job in make_jobs(4, 8, 0.0)]
    free = exact_plan(jobs, CLUSTER, Limits())
    budget_j = 0.9 * free.outcome.energy_j
    plan = exact_plan(jobs, CLUSTER, Limits(budget_j=budget_j))
    assert plan.outcome.energy_j <= budget_j and plan.bound.kind == "static" and plan.bound.gap >= 0
    assert len(plan.outcome.segments) == len(jobs) and plan.outcome.avg_jct_s >= free.outcome.avg_jct_s
    assert free.bound.gap < 1e-3
    with pytest.raises(InfeasibleError) as refused:
        exact_plan(jobs, CLUSTER, Limits(budget_j=0.99 * least_energy_j(jobs)))
    assert refused.value.exit_code == 5
    with pytest.raises(UsageError, match="arrive at once"):
        exact_plan(make_jobs(4, 8, 50.0), CLUSTER, Limits())


def test_energy_prices_the_bound() -> None:
    jobs = make_jobs(9, 12, 0.0)
    free = preemptive_bound_s(jobs, 24)
    tight = preemptive_bound_s(jobs, 24, least_energy_j(jobs) * 1.001)
    loose = preemptive_bound_s(jobs, 24, least_energy_j(jobs) * 100)
    assert math.isclose(loose, free, rel_tol=1e-6) and tight > free * 1.05
    assert np.isfinite(tight)
