"""The budget search: the grid, and for many jobs the few prices of it that are simulated."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pfprofile.cluster.nodes import NodeGroup, make_cluster
from pfprofile.cluster.speed_table import build_table
from pfprofile.errors import InfeasibleError, UsageError
from pfprofile.plan import planner
from pfprofile.plan.bounds.static import static_problem
from pfprofile.plan.crossing import StaticEnergy, first_within
from pfprofile.plan.grid import price_grid
from pfprofile.plan.oneshot import one_shot
from pfprofile.plan.outcome import Options
from pfprofile.plan.planner import Limits, make_plan
from pfprofile.plan.simulator import simulate
from pfprofile.policy.base import Job
from pfprofile.policy.hulls import grid_index
from pfprofile.policy.pfprofile import PfprofilePolicy
from pfprofile.policy.registry import POLICIES, make_policy, takes
from tests.plan.cases import CLUSTER, make_jobs
from tests.plan.double import Double


def test_the_grid_depends_on_the_jobs_and_gets_coarser_with_many() -> None:
    few, many = price_grid(make_jobs(1, 40, 10.0)), price_grid(make_jobs(1, 1000, 10.0))
    assert few[0] == many[0] == 0.0 and few == sorted(few) and many == sorted(many)
    assert len(many) <= len(few) / 2 + 2
    assert all(isinstance(grid_index(price), int) for price in few[1:])


@pytest.mark.parametrize("gap_s", [0.0, 120.0])
def test_many_jobs_need_few_simulations_and_get_what_the_whole_grid_gives(
    monkeypatch: pytest.MonkeyPatch, gap_s: float
) -> None:
    jobs = make_jobs(12, 40, gap_s)
    prices = price_grid(jobs)
    runs = [planner._run(jobs, CLUSTER, Limits(), "pfprofile", price, record=False) for price in prices]
    energies, jcts = [run.energy_j for run in runs], [run.avg_jct_s for run in runs]
    monkeypatch.setattr(planner, "COARSER_ABOVE", 0)
    asked: list[float] = []
    run = planner._run

    def counted(*args: Any, **given: Any) -> Any:
        asked.append(args[4])
        return run(*args, **given)

    monkeypatch.setattr(planner, "_run", counted)
    before, counts = math.inf, []
    for share in (0.86, 0.9, 0.95, 1.0):
        budget_j = share * energies[0]
        asked.clear()
        plan = make_plan(jobs, CLUSTER, Limits(budget_j=budget_j))
        position = prices.index(plan.energy_price)
        assert plan.outcome.energy_j == energies[position] <= budget_j
        assert position == 0 or energies[position - 1] > budget_j
        assert plan.outcome.avg_jct_s == jcts[position] <= before
        assert [s.job for s in plan.outcome.segments]
        before = plan.outcome.avg_jct_s
        counts.append(len(asked))
    assert max(counts) <= 9 < len(prices) / 2


def test_many_jobs_without_enough_energy_are_told_the_least(monkeypatch: pytest.MonkeyPatch) -> None:
    jobs = make_jobs(12, 20, 120.0)
    with pytest.raises(InfeasibleError) as whole:
        make_plan(jobs, CLUSTER, Limits(budget_j=1e3))
    monkeypatch.setattr(planner, "COARSER_ABOVE", 0)
    with pytest.raises(InfeasibleError) as found:
        make_plan(jobs, CLUSTER, Limits(budget_j=1e3))
    assert found.value.message == whole.value.message


@given(
    st.lists(st.floats(1.0, 1e6), min_size=1, max_size=40),
    st.lists(st.floats(1.0, 1e6), min_size=40, max_size=40),
    st.floats(0.5, 2e6),
)
def test_the_crossing_of_falling_energies_is_found(
    energies: list[float], guesses: list[float], budget_j: float
) -> None:
    falling = sorted(energies, reverse=True)
    asked: list[int] = []

    def within(k: int) -> bool:
        asked.append(k)
        return falling[k] <= budget_j

    found = first_within(guesses.__getitem__, within, falling.__getitem__, budget_j, len(falling))
    assert found == next((k for k, energy in enumerate(falling) if energy <= budget_j), None)
    assert len(asked) == len(set(asked))


def test_the_guessed_energy_falls_with_its_price_as_the_simulated_does() -> None:
    jobs = make_jobs(3, 60, 0.0)
    static = StaticEnergy(jobs, [24])
    prices = price_grid(jobs)
    guessed = [static.at(price) for price in prices]
    assert all(b <= a * (1 + 1e-9) for a, b in pairwise(guessed))
    busy = [planner._run(jobs, CLUSTER, Limits(), "pfprofile", p, record=False).gpu_energy_j for p in prices]
    assert all(0.6 < g / b < 1.7 for g, b in zip(guessed, busy, strict=True))


def test_small_plans_price_everybody_at_every_event(monkeypatch: pytest.MonkeyPatch) -> None:
    jobs = make_jobs(2, 60, 20.0)
    fine = make_plan(jobs, CLUSTER, Limits()).outcome
    monkeypatch.setattr(planner, "SMALL", 0)
    thin = make_plan(jobs, CLUSTER, Limits()).outcome
    assert fine.avg_jct_s != thin.avg_jct_s
    assert thin.avg_jct_s == pytest.approx(fine.avg_jct_s, rel=0.15)


def test_policies_are_made_by_name() -> None:
    for name in POLICIES:
        assert make_policy(name).name == name
    assert takes("pfprofile", "energy_price") and not takes("fifo", "energy_price")
    with pytest.raises(UsageError, match="did you mean 'fifo'"):
        make_policy("fifi")


def test_short_jobs_are_not_reallocated() -> None:
    jobs = [replace(job, work=job.work / 200, min_n=1) for job in make_jobs(7, 10, 0.0)]
    problem = static_problem(jobs, [24], None)
    plan = make_plan(jobs, CLUSTER, Limits())
    fixed_s = float(problem.time_s[one_shot(problem)].mean())
    assert plan.outcome.avg_jct_s <= fixed_s * (1 + 1e-9)
    free_j = plan.outcome.energy_j
    assert make_plan(jobs, CLUSTER, Limits(budget_j=0.98 * free_j)).outcome.energy_j <= 0.98 * free_j


#: one node on which everything is as good as linear
NODE = make_cluster([NodeGroup("n", "a100-sxm4", 1, 8, 400.0, 55.0)])
LINEAR = build_table(Double(overhead_s=0.0, sync_s=1e-4), 512, NODE.pools[0])


def linear_jobs(count: int, **given: Any) -> list[Job]:
    whole = LINEAR.fastest(8).speed_per_s
    return [Job(f"j{i}", 0.0, (600.0 + i) * whole, 1, 8, {0: LINEAR}, **given) for i in range(count)]


def test_jobs_that_scale_linearly_run_one_after_another() -> None:
    plan = make_plan(linear_jobs(4), NODE, Limits())
    assert plan.outcome.avg_jct_s == pytest.approx((1 + 2 + 3 + 4) / 4 * 601.5, rel=0.01)
    assert plan.outcome.rescales == 0


@pytest.mark.parametrize(("crowding", "at_once"), [(1.0, 1), (2.0, 2), (math.inf, 6)])
def test_crowding_says_how_many_run_at_a_time(crowding: float, at_once: int) -> None:
    policy = PfprofilePolicy(crowding=crowding, reprice_fraction=0.0)
    outcome = simulate(linear_jobs(6), NODE, policy, Options(record=True))
    first = [s for s in outcome.segments if s.start_s == 0.0]
    assert len(first) == at_once


def test_a_deadline_is_not_kept_waiting_by_crowding() -> None:
    jobs = linear_jobs(6)
    jobs[5] = replace(jobs[5], deadline_s=4000.0)
    outcome = simulate(jobs, NODE, PfprofilePolicy(crowding=1.0, reprice_fraction=0.0), Options(record=True))
    assert outcome.jobs[5].started_s == 0.0
    assert outcome.jobs[5].finished_s <= 4000.0
