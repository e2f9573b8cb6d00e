"""What a sweep will cost, and waiting until the GPUs are cool."""

from pathlib import Path
from types import SimpleNamespace

import pytest

from pfprofile.device.base import Reading
from pfprofile.model.fit import fit_profile
from pfprofile.model.store import save_model
from pfprofile.sweep import SweepRequest, sweep
from pfprofile.sweep.estimate import estimate
from pfprofile.sweep.settle import FLAT_S, MARGIN_C, MOST_S, Settling
from pfprofile.sweep.space import Point

RECORDING = Path(__file__).parent.parent / "fixtures" / "gpu_small.parquet"
POINTS = [Point(1, 8), Point(2, 16)]


def test_energy_comes_from_a_model_of_the_same_job_on_the_same_device(make_profile, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    model = fit_profile(make_profile(), dated=False)
    save_model(model, Path("models/toy/toy.json"))
    guess = estimate(POINTS, "toy", "NVIDIA Toy", 2.0, None, 3.0)
    assert guess.time_s == pytest.approx(10.0)
    assert guess.energy_j == pytest.approx(5 * (108 + 2 * 116), rel=0.05)
    assert "by the model toy/toy (measured)" in guess.basis
    longer = estimate(POINTS, "toy", "NVIDIA Toy", 2.0, 1000, 3.0)
    assert longer.time_s == pytest.approx(6 + 1000 * (0.018 + 0.026), rel=0.05)


def test_without_such_a_model_energy_is_unknown_not_zero(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    guess = estimate(POINTS, "toy", "NVIDIA Toy", 2.0, None, 3.0)
    assert (guess.time_s, guess.energy_j) == (10.0, None)
    assert "energy unknown" in guess.basis


def test_a_dry_replay_says_what_the_recording_took(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    outcome = sweep(SweepRequest(None, replay=str(RECORDING), gpus=(1,), batch_sizes=(8,), dry_run=True))
    assert outcome.estimate.energy_j is None or outcome.estimate.energy_j > 0
    assert outcome.profile is None


class Clocked:
    """A device that cools by a law, and the clock that it cools on."""

    count = 2

    def __init__(self, temperature):
        self.time_s, self.temperature = 0.0, temperature

    def read(self, index):
        return Reading(temperature_c=self.temperature(self.time_s))

    def settling(self):
        def sleep(s):
            self.time_s += s

        return Settling(self, now=lambda: self.time_s, sleep=sleep)


def test_the_first_trial_begins_at_once_and_later_ones_when_it_is_as_cool():
    device = Clocked(lambda t: 80.0 - 2 * t if t < 20 else 40.0)
    settling = device.settling()
    settling.coolest_c = 50.0
    assert settling.wait(2) == pytest.approx((80 - 50 - MARGIN_C) / 2, abs=0.5)
    assert Clocked(lambda t: 90.0).settling().wait(1) == 0.0


def test_waiting_ends_when_it_gets_no_cooler_or_takes_too_long():
    for law, most in ((lambda t: 80.0, FLAT_S), (lambda t: 200.0 - 2.5 * t, MOST_S)):
        settling = Clocked(law).settling()
        settling.coolest_c = 40.0
        assert settling.wait(1) == pytest.approx(most, abs=1.0)


def test_without_a_thermometer_nothing_waits():
    device = SimpleNamespace(count=1, read=lambda i: Reading())
    assert Settling(device).wait(1) < FLAT_S
