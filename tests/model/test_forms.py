"""The equations: limits that must hold, and the analytic Jacobian against finite differences."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pfprofile.model.forms import evaluate
from pfprofile.model.terms import INDEX, PHI, TERMS, Design

from .conftest import truth


def design(n=(1, 2, 4, 8, 16, 32), k=(1, 1, 1, 1, 2, 4), b=32.0, s=1.0, phi=1.0) -> Design:
    arrays = np.broadcast_arrays(*(np.atleast_1d(np.asarray(a, dtype=float)) for a in (n, k, b, s, phi)))
    return Design(*(a.copy() for a in arrays))


POINTS = Design(
    np.array([1.0, 1, 2, 4, 8, 2, 16, 32, 6]), np.array([1.0, 1, 1, 1, 1, 2, 2, 4, 3]),
    np.array([1.0, 64, 8, 32, 128, 16, 16, 64, 5]), np.array([1.0, 1, 2, 1, 4, 1, 1, 2, 1]),
    np.array([1.0, 0.3, 0.5, 0.8, 1.0, 0.15, 0.9, 0.7, 0.6]),
)  # fmt: skip


def numeric(
    theta: np.ndarray, d: Design, cap: np.ndarray | None, j: int, h: float = 1e-6
) -> tuple[np.ndarray, np.ndarray]:
    step = h * max(abs(theta[j]), 1e-3)
    up, down = theta.copy(), theta.copy()
    up[j] += step
    down[j] -= step
    a, b = evaluate(up, d, cap), evaluate(down, d, cap)
    return np.log(a.time_s / b.time_s) / (2 * step), np.log(a.power_w / b.power_w) / (2 * step)


@pytest.mark.parametrize("term", TERMS, ids=lambda t: t.name)
def test_the_jacobian_equals_finite_differences(term):
    theta = truth()
    j = INDEX[term.name]
    values = evaluate(theta, POINTS, jacobian=True)
    time, power = numeric(theta, POINTS, None, j)
    np.testing.assert_allclose(values.d_log_time[:, j], time, rtol=2e-5, atol=1e-7)
    np.testing.assert_allclose(values.d_log_power[:, j], power, rtol=2e-5, atol=1e-7)


def test_the_derivative_by_the_clock_equals_finite_differences():
    theta, step = truth(), 1e-6
    values = evaluate(theta, POINTS, jacobian=True)
    up, down = (evaluate(theta, POINTS.at_clock(POINTS.phi + h)) for h in (step, -step))
    np.testing.assert_allclose(values.d_log_time[:, PHI], np.log(up.time_s / down.time_s) / (2 * step), rtol=1e-4)
    np.testing.assert_allclose(values.d_log_power[:, PHI], np.log(up.power_w / down.power_w) / (2 * step), rtol=1e-4)


@pytest.mark.parametrize("term", TERMS, ids=lambda t: t.name)
def test_under_a_cap_the_jacobian_follows_the_clock_that_gives_way(term):
    theta = truth(q=5.0, phi_min=0.25)
    cap = np.array([130.0, 70, 130, 130, 130, 40, 130, 130, 130])
    values = evaluate(theta, POINTS, cap, jacobian=True)
    assert values.capped.sum() >= 5
    j = INDEX[term.name]
    time, power = numeric(theta, POINTS, cap, j, 1e-4)
    np.testing.assert_allclose(values.d_log_time[:, j], time, rtol=5e-3, atol=5e-3 * np.abs(time).max() + 1e-3)
    np.testing.assert_allclose(values.d_log_power[:, j], power, rtol=5e-3, atol=5e-3 * np.abs(power).max() + 1e-3)


def test_one_gpu_computes_all_the_time():
    values = evaluate(truth(), design(n=1, k=1, b=[8, 64]))
    assert values.compute_share == pytest.approx([1.0, 1.0])


def test_at_the_highest_clock_only_the_batch_law_remains():
    theta = truth(p=1.0)
    values = evaluate(theta, design(n=1, k=1, b=50.0))
    assert values.time_s == pytest.approx([0.02 + (0.0008 + 0.0012) * 50])


def test_one_batch_is_static_power_plus_clock_and_voltage():
    theta = truth()
    at = evaluate(theta, design(n=1, k=1, phi=[1.0, 0.5]))
    dynamic = at.power_w[0] - 55.0
    volt = 1 / (1 + 1.0 * (1 - 0.75))
    assert at.power_w[1] == pytest.approx(55.0 + dynamic * 0.5 * volt**2)


def test_accumulation_adds_passes_without_synchronising():
    theta = truth()
    once, twice = evaluate(theta, design(s=1.0)), evaluate(theta, design(s=2.0))
    single = evaluate(truth(alpha_r=1e-9, beta_r=1e-9, alpha_n=1e-9, beta_n=1e-9, delta_n=1e-9), design(s=1.0))
    assert twice.time_s - once.time_s == pytest.approx(single.time_s, rel=1e-6)


def test_full_overlap_is_the_longer_of_both_and_none_is_the_sum():
    d = design(n=2, k=1)
    compute = evaluate(truth(alpha_r=1e-12), d).time_s
    assert evaluate(truth(gamma=1.0, alpha_r=0.05), d).time_s == pytest.approx(compute + 0.05)
    assert evaluate(truth(gamma=10.0, alpha_r=0.001), d).time_s == pytest.approx(compute, rel=1e-6)


def test_a_cap_holds_power_at_the_limit_and_slows_the_step():
    d, cap = design(), np.full(6, 180.0)
    free, held = evaluate(truth(), d), evaluate(truth(), d, cap)
    assert (free.power_w > 180).all()
    assert held.power_w == pytest.approx(0.99 * cap, rel=1e-3)
    assert (held.time_s > free.time_s).all()
    assert (held.phi < 1).all()


def test_a_cap_below_the_static_power_leaves_the_lowest_clock():
    held = evaluate(truth(phi_min=0.2), design(), np.full(6, 30.0))
    assert held.capped.all()
    assert held.phi == pytest.approx(np.full(6, 0.2), rel=1e-3)


def test_a_limit_far_above_the_power_changes_nothing():
    free, held = evaluate(truth(), design()), evaluate(truth(), design(), np.full(6, 5000.0))
    assert held.time_s.tolist() == free.time_s.tolist()
    assert not held.capped.any()


def test_a_swinging_load_feels_the_limit_before_its_mean_reaches_it():
    d = design(n=1, k=1)
    free = evaluate(truth(), d)
    limit = free.power_w * 1.05
    assert evaluate(truth(q=4.0), d, limit).power_w < 0.95 * free.power_w
    assert evaluate(truth(q=60.0), d, limit).power_w > 0.98 * free.power_w


@given(st.integers(1, 64), st.integers(1, 512), st.integers(1, 8), st.floats(0.1, 0.99), st.floats(0.0, 1.0))
def test_property_power_rises_with_the_clock(n, b, s, phi, rho):
    k = max(1, n // 8)
    low, high = (evaluate(truth(rho=rho), design(n=n, k=k, b=b, s=s, phi=f)) for f in (phi, min(phi * 1.05, 1.0)))
    assert high.power_w[0] >= low.power_w[0] * (1 - 1e-9)
    assert high.time_s[0] <= low.time_s[0] * (1 + 1e-9)
    assert 0 < low.compute_share[0] <= 1
