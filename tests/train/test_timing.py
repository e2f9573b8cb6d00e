"""Step counts, windows and synchronisation time on a stepper whose clock the test turns."""

import pytest

from pfprofile.train import timing


class FakeStepper:
    """Each step takes the next of ``times`` (the last for ever); without synchronisation it takes ``local``."""

    def __init__(self, clock, times, local=None):
        self.clock, self.times, self.local = clock, list(times), local
        self.steps = 0

    def step(self, synchronise=True):
        self.steps += 1
        taken = self.times.pop(0) if len(self.times) > 1 else self.times[0]
        self.clock.now += taken if synchronise or self.local is None else self.local

    def wait(self):
        self.clock.now += 0.0

    def barrier(self):
        self.clock.now += 0.0

    def agree(self, value):
        return value

    def slowest(self, values):
        return values


class Clock:
    now = 0.0

    def perf_counter(self):
        return self.now

    monotonic = perf_counter


@pytest.fixture
def clock(monkeypatch):
    clock = Clock()
    monkeypatch.setattr(timing, "time", clock)
    return clock


def test_warm_up_goes_on_until_two_windows_agree(clock):
    stepper = FakeStepper(clock, [1.0] * 3 + [0.5] + [0.1] * 20)
    settled, steps = timing.warm_up(stepper, window_s=1.0)
    assert settled == pytest.approx(0.1)
    assert steps == stepper.steps
    assert steps >= timing.LEAST_WARMUP_STEPS


def test_a_window_is_long_enough_and_its_mean_is_right(clock):
    result = timing.measure(FakeStepper(clock, [0.03]), window_s=1.0, steps=None, distributed=False)
    assert result.step_time_s == pytest.approx(0.03)
    assert result.step_time_std_s == pytest.approx(0.0, abs=1e-12)
    assert result.ended_s - result.started_s >= 1.0
    assert result.sync_time_s is None


@pytest.mark.parametrize("steps", [1, 3, 5, 12])
def test_asked_for_steps_are_made(clock, steps):
    result = timing.measure(FakeStepper(clock, [0.5]), window_s=1.0, steps=steps, distributed=False)
    assert result.steps == steps
    assert result.step_time_s == pytest.approx(0.5)
    assert (result.step_time_std_s is None) == (steps == 1)


def test_synchronisation_is_what_a_local_step_saves(clock):
    result = timing.measure(FakeStepper(clock, [0.5], local=0.4), window_s=1.0, steps=10, distributed=True)
    assert result.sync_time_s == pytest.approx(0.1)


def test_synchronisation_that_drowns_in_noise_is_unknown(clock):
    stepper = FakeStepper(clock, [0.5] * 8 + [0.1, 0.9] * 20 + [0.5], local=0.49)
    result = timing.measure(stepper, window_s=1.0, steps=5, distributed=True)
    assert result.sync_time_s is None
