from __future__ import annotations

import pytest

from pfprofile.telemetry import plausibility as p


@pytest.mark.parametrize(
    ("doubt", "words"),
    [
        (p.power(300_000), "300,000 W for one GPU: milliwatts?"),
        (p.power(250e6), "microwatts?"),
        (p.power(0.3), "kilowatts?"),
        (p.power(0), "leave unknown power empty"),
        (p.power(900, power_limit_w=400), "900 W"),
        (p.clock(1_410_000), "kHz?"),
        (p.clock(1.41e9), "Hz?"),
        (p.clock(1.41), "GHz?"),
        (p.step_time(-1), "a step time of -1 s"),
        (p.step_time(350_000), "milliseconds"),
        (p.temperature(320), "kelvin"),
        (p.window_energy(3e5, 300, 1, 1), "millijoules"),
        (p.window_energy(0.3, 300, 1, 1), "kilojoules"),
        (p.window_energy(0, None, None, 1), "leave unknown energy empty"),
    ],
)
def test_suspicion_is_named(doubt, words):
    assert words in str(doubt)


@pytest.mark.parametrize(
    "doubt",
    [
        p.power(300), p.power(1400), p.power(500, power_limit_w=400), p.clock(210), p.clock(2_800), p.step_time(0.35),
        p.step_time(900), p.temperature(95), p.window_energy(310, 300, 1, 1), p.window_energy(2400, 300, 1, 8),
    ],
)  # fmt: skip
def test_true_values_are_let_through(doubt):
    assert doubt is None
