"""The budget search: the grid, refinement where it is coarse, and that a larger budget never takes longer even then."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from pfprofile.errors import UsageError
from pfprofile.plan import grid, planner
from pfprofile.plan.bounds.static import static_problem
from pfprofile.plan.grid import between, price_grid
from pfprofile.plan.oneshot import one_shot
from pfprofile.plan.planner import Limits, make_plan
from pfprofile.policy.hulls import grid_index
from pfprofile.policy.registry import POLICIES, make_policy, takes
from tests.plan.cases import CLUSTER, make_jobs


def test_the_grid_depends_on_the_jobs_and_gets_coarser_with_many() -> None:
    few, many = price_grid(make_jobs(1, 40, 10.0)), price_grid(make_jobs(1, 1000, 10.0))
    assert few[0] == many[0] == 0.0 and few == sorted(few) and many == sorted(many)
    assert len(many) < len(few) / 3
    assert all(isinstance(grid_index(price), int) for price in few[1:])
    assert between(few, 2) == [] and len(between(many, 2)) == 3
    low, high = many[1], many[2]
    assert all(low < price < high for price in between(many, 2))


def test_a_coarse_grid_is_refined_and_still_monotone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(grid, "COARSER_ABOVE", (0, 0, 0, 9999))
    jobs = make_jobs(12, 20, 120.0)
    free = make_plan(jobs, CLUSTER, Limits()).outcome
    before, used = math.inf, []
    for share in (0.75, 0.8, 0.85, 0.9, 0.95, 1.0):
        plan = make_plan(jobs, CLUSTER, Limits(budget_j=share * free.energy_j))
        assert plan.outcome.avg_jct_s <= before and plan.outcome.energy_j <= share * free.energy_j
        before = plan.outcome.avg_jct_s
        used.append(plan.outcome.energy_j / (share * free.energy_j))
    assert sum(used) / len(used) > 0.93


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
