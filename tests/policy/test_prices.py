"""Ladders, weights and shares: what prices must do whatever the table."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pfprofile.policy.base import JobState
from pfprofile.policy.hulls import grid_index, grid_price, ladder
from pfprofile.policy.prices import Claim, rank_weights, share, unit_cost
from tests.plan.cases import make_jobs, table


@settings(deadline=None, max_examples=60)
@given(st.integers(0, 2), st.sampled_from((64, 256, 1024)), st.integers(80, 340), st.floats(1e-6, 1e6))
def test_a_ladder_gives_the_least_cost_at_every_price(model: int, batch: int, index: int, m: float) -> None:
    speeds = table(model, batch)
    steps = ladder(speeds, index, 1, 16)
    rho = grid_price(index)
    chosen = steps.rungs[steps.rung_at(m)]
    least = min(unit_cost(c, 1.0, rho, m) for c in speeds.configs if c.n <= 16)
    assert unit_cost(chosen, 1.0, rho, m) == pytest.approx(least, rel=1e-9)
    assert steps.best is steps.rungs[-1] and list(steps.worth) == sorted(steps.worth, reverse=True)
    assert steps.rungs[0].n == min(c.n for c in speeds.configs)


@given(st.integers(1, 200), st.floats(0.0, 1.0))
def test_weights_have_mean_one_and_rise_towards_the_shortest(count: int, theta: float) -> None:
    weights = rank_weights(count, theta)
    assert math.fsum(weights) == pytest.approx(count) and weights == sorted(weights)


@settings(deadline=None, max_examples=60)
@given(st.integers(0, 10**6), st.integers(1, 24), st.integers(24, 400), st.sampled_from((0.0, 2.0**-10, 2.0**-6)))
def test_shares_fit_and_nothing_worth_having_is_left(seed: int, count: int, capacity: int, price: float) -> None:
    jobs = make_jobs(seed, count, 0.0)
    claims = [
        Claim(JobState(job, i, job.work, 0.0), ladder(job.tables[0], grid_index(price), 1, 16), 1.0, price)
        for i, job in enumerate(jobs)
    ]
    found = share(claims, capacity)
    used = sum(c.config.n for c in claims)
    assert used <= max(capacity, count)
    assert found.gpu_price >= 0
    for claim in claims:
        if claim.rung + 1 < len(claim.ladder.rungs):
            step = claim.ladder.rungs[claim.rung + 1].n - claim.config.n
            worth = claim.weight * claim.ladder.worth[claim.rung]
            # A next step that was refused costs more than its worth at μ, or does not fit.
            assert worth <= found.gpu_price * (1 + 1e-9) or used + step > capacity


def test_prices_on_the_grid_are_kept() -> None:
    for k in (0, 8, 130, 301):
        assert grid_index(grid_price(k)) == k
    assert grid_index(0.0) is None and grid_price(None) == 0.0
