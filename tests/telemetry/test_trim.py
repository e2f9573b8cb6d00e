"""Busy spans, repeated readings, and counters that run backwards."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from pfprofile.telemetry.resets import counter_rates, pieced_counter_power, resets
from pfprofile.telemetry.trim import busy_span, distinct_readings


def test_the_busy_span_lies_between_the_idle_ends():
    power_w = np.array([60.0] * 10 + [300.0] * 20 + [61.0] * 15)
    span = busy_span(np.arange(45.0), power_w)
    assert (span.start_s, span.end_s) == (10.0, 29.0)
    assert span.idle_w == pytest.approx(60.6)
    assert span.busy_w == pytest.approx(300.0)
    assert span.idle_w < span.threshold_w < span.busy_w


def test_pauses_inside_and_single_spikes_outside_do_not_move_the_ends():
    power_w = np.array([60.0] * 10 + [300.0] * 10 + [60.0] * 3 + [300.0] * 10 + [60.0] * 10)
    power_w[3] = 300.0
    span = busy_span(np.arange(len(power_w), dtype=float), power_w)
    assert (span.start_s, span.end_s) == (10.0, 32.0)


@pytest.mark.parametrize("power_w", [[200.0] * 20, [200.0, 210.0] * 10, [60.0, 300.0], [np.nan] * 20, [0.5, 9.0] * 10])
def test_one_level_has_no_span(power_w):
    assert busy_span(np.arange(len(power_w), dtype=float), np.array(power_w)) is None


@given(arrays(np.float64, st.integers(0, 60), elements=st.one_of(st.floats(0, 1e4), st.just(float("nan")))))
def test_property_a_span_lies_inside_the_log(power_w):
    time_s = np.arange(len(power_w), dtype=float)
    span = busy_span(time_s, power_w)
    if span is not None:
        assert 0 <= span.start_s < span.end_s <= len(power_w) - 1
        assert span.busy_w > span.idle_w


def test_repeats_within_the_sensors_period_are_one_reading():
    time_s = np.arange(50) * 0.01
    power_w = np.repeat([100.0, 100.0, 120.0, 120.0, 120.0], 10)
    assert list(distinct_readings(time_s, power_w)) == [0, 10, 20, 30, 40, 49]
    slow = distinct_readings(np.arange(5.0), np.full(5, 100.0))  # a steady load, polled slowly
    assert list(slow) == [0, 1, 2, 3, 4]
    assert len(distinct_readings(np.array([]), np.array([]))) == 0


def test_a_reset_splits_the_window():
    time_s = np.arange(20.0)
    assert resets(250.0 * time_s) == 0
    counter = np.where(time_s < 10, 9000.0, 0.0) + 250.0 * time_s
    assert resets(counter) == 1
    assert pieced_counter_power(time_s, counter) == pytest.approx(250.0)
    assert pieced_counter_power(time_s, np.where(time_s % 3 == 0, 0.0, counter)) is None


def test_rates_of_a_counter_tell_busy_from_idle():
    counter = np.cumsum([60.0] * 10 + [300.0] * 10)
    counter[15:] -= 2000.0
    rates = counter_rates(np.arange(20.0), counter)
    assert rates[[0, 5, 12]] == pytest.approx([60, 60, 300])
    assert np.isnan(rates[15])
    assert len(counter_rates(np.zeros(1), np.zeros(1))) == 1


@given(st.lists(st.floats(0, 1e9), min_size=2, max_size=40))
def test_property_no_counter_gives_negative_power(counter):
    power_w = pieced_counter_power(np.arange(len(counter), dtype=float), np.array(counter))
    assert power_w is None or power_w >= 0
