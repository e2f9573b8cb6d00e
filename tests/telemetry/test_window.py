"""Energy from a quantised counter, from samples; unknown stays unknown; what limited a clock."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pfprofile.telemetry import Samples, limited_by, window_power

NAN = float("nan")


def samples(power_w=NAN, energy=None, seconds=2.0, rate=20):
    times = np.arange(0, seconds, 1 / rate)
    rows = [(t, power_w, NAN if energy is None else energy(t), NAN, NAN) for t in times]
    return Samples.of(rows, 0.0, seconds)


@settings(deadline=None)
@given(power=st.floats(20, 700), period=st.floats(0.02, 0.15), offset=st.floats(0, 1e7))
def test_a_line_through_a_quantised_counter_gives_the_power(power, period, offset):
    found = window_power(samples(energy=lambda t: offset + power * np.floor(t / period) * period))
    assert found is not None
    assert found.source == "counter"
    assert found.power_w == pytest.approx(power, rel=0.06)


def test_without_a_counter_samples_are_averaged_over_time():
    rows = [(0.0, 100.0, NAN, NAN, NAN), (1.0, 200.0, NAN, NAN, NAN), (1.1, 200.0, NAN, NAN, NAN)]
    found = window_power(Samples.of(rows, 0.0, 2.0))
    assert found is not None
    assert found.source == "samples"
    assert found.power_w == pytest.approx((150.0 * 1.0 + 200.0 * 0.1) / 1.1)


def test_a_counter_that_hardly_moved_or_went_down_is_not_used():
    assert window_power(samples(energy=lambda t: 5.0)) is None
    assert window_power(samples(energy=lambda t: 100.0 if t < 1 else 0.0)) is None
    found = window_power(samples(power_w=90.0, energy=lambda t: 1000 - 10 * t))
    assert found is not None
    assert found.source == "samples"


def test_nothing_known_is_none_not_zero():
    assert window_power(samples()) is None
    assert window_power(Samples.of([], 0.0, 1.0)) is None


def test_only_the_window_counts():
    rows = [(t, 500.0 if t < 1 else 100.0, NAN, NAN, NAN) for t in np.arange(0, 3, 0.1)]
    found = window_power(Samples.of(rows, 1.0, 3.0))
    assert found is not None
    assert found.power_w == pytest.approx(100.0)


@pytest.mark.parametrize(
    ("requested", "achieved", "power", "seen", "expected"),
    [
        (1410.0, 1410.0, 200.0, {}, "none"),
        (1410.0, 1410.0, 200.0, {"hardware": 0.1}, "none"),
        (1410.0, 1200.0, 395.0, {}, "power"),
        (1410.0, 1200.0, 200.0, {"thermal": 0.8, "power": 0.1}, "thermal"),
        (1410.0, 1200.0, 200.0, {}, "unknown"),
        (None, 1410.0, 200.0, {"thermal": 0.2}, "none"),
        (None, 1300.0, 200.0, {"thermal": 0.9}, "thermal"),
        (None, None, None, {}, "unknown"),
    ],
)
def test_what_limited_the_clock(requested, achieved, power, seen, expected):
    assert limited_by(requested, achieved, power, 400.0, seen) == expected
