"""Predictions: the contract's columns, refused axes, flags, the file round trip, and what is loaded for them."""

from __future__ import annotations

import json
import math
import subprocess
import sys

import numpy as np
import pytest

from pfprofile.errors import InputError
from pfprofile.model import Points, fit_profile, load_model, save_model
from pfprofile.model.document import from_json
from pfprofile.model.fitted import FittedModel

CLOCKS = (210.0, 810.0, 1200.0, 1410.0)


@pytest.fixture(scope="module")
def model() -> FittedModel:
    return load_model("a100-sxm4/resnet50")


def test_power_and_energy_are_of_one_gpu_and_of_all(model):
    p = model.predict(Points.of([1, 8], 64, n_nodes=1))
    assert p.energy_per_step_j == pytest.approx(p.points.n_gpus * p.power_w * p.step_time_s)
    assert p.throughput_per_s == pytest.approx(p.points.n_gpus * 64 / p.step_time_s)
    assert (p.step_time_lo_s < p.step_time_s).all()
    assert (p.step_time_s < p.step_time_hi_s).all()


def test_an_unlocked_clock_is_the_default_one(model):
    a, b = model.predict(Points.of(4, 64)), model.predict(Points.of(4, 64, sm_clock_mhz=model.default_clock_mhz))
    assert a.step_time_s == pytest.approx(b.step_time_s)
    assert a.power_w == pytest.approx(b.power_w)


def test_outside_the_measured_ranges_is_flagged_and_wider(model):
    p = model.predict(Points.of([64, 128], 64, n_nodes=[8, 16]))
    assert p.extrapolated.tolist() == [False, True]
    width = np.log(p.step_time_hi_s / p.step_time_lo_s)
    assert width[1] >= 2 * width[0]
    assert model.predict(Points.of(1, [8, 16, 257])).extrapolated.tolist() == [True, False, True]


def test_a_wider_level_gives_a_wider_interval(model):
    narrow, wide = (model.predict(Points.of(1, 64), level) for level in (0.5, 0.99))
    assert narrow.step_time_hi_s < wide.step_time_hi_s


def test_round_trip_is_exact_to_the_last_digit(model, tmp_path):
    path = tmp_path / "m.json"
    save_model(model, path)
    again = load_model(path)
    assert again.document == model.document
    assert again.digest == model.digest
    points = Points.of([1, 16], 32, n_nodes=[1, 2], sm_clock_mhz=1005)
    assert again.predict(points).power_hi_w.tolist() == model.predict(points).power_hi_w.tolist()


def test_throughput_only_says_so_and_predicts_null_power(simulated_profile):
    model = fit_profile(simulated_profile(power=False))
    assert not model.has_power
    assert any("throughput only" in w for w in model.document.warnings)
    row = next(model.predict(Points.of(1, 32)).rows())
    assert row["power_w"] is None
    assert row["energy_per_step_j"] is None
    assert row["step_time_s"] > 0
    time, power = model.draws(Points.of(1, 32), 3, seed=1)
    assert time.shape == (3, 1)
    assert np.isnan(power).all()


@pytest.mark.parametrize(
    ("options", "points", "words"),
    [
        ({"gpus": (1,)}, Points.of(2, 32), "--gpus 1,2"),
        ({"gpus": (1, 2, 4)}, Points.of(16, 32, n_nodes=2), "span 2 nodes"),
        ({"batches": (32,)}, Points.of(1, 64), "--batch-sizes 32,64"),
        ({"clocks": (1410.0,)}, Points.of(1, 32, sm_clock_mhz=1005), "--freqs auto"),
        ({"clocks": (None,)}, Points.of(1, 32, sm_clock_mhz=1005), "no clock was recorded"),
    ],
)
def test_an_axis_with_one_value_is_refused_and_says_what_to_measure(simulated_profile, options, points, words):
    model = fit_profile(simulated_profile(**options))
    with pytest.raises(InputError, match=words):
        model.predict(points)
    with pytest.raises(InputError, match=words):
        model.draws(points, 2, seed=0)


def test_what_was_measured_on_a_single_valued_axis_is_answered(simulated_profile):
    model = fit_profile(simulated_profile(clocks=(1410.0,), batches=(32,), gpus=(1,)))
    assert not model.predict(Points.of(1, 32, sm_clock_mhz=[1410, np.nan])).extrapolated.any()


def test_draws_agree_with_the_intervals_and_repeat_under_a_seed(model):
    points = Points.of([1, 8, 64], 64, n_nodes=[1, 1, 8], sm_clock_mhz=[1410, 1005, 510])
    time, power = model.draws(points, 4000, seed=3)
    p = model.predict(points)
    assert np.median(time, axis=0) == pytest.approx(p.step_time_s, rel=5e-3)
    low, high = np.quantile(time, [0.05, 0.95], axis=0)
    assert np.log(high / low) == pytest.approx(np.log(p.step_time_hi_s / p.step_time_lo_s), rel=0.15)
    assert power.shape == (4000, 3)
    again, _ = model.draws(points, 4000, seed=3)
    assert (again == time).all()
    assert not (model.draws(points, 4000, seed=4)[0] == time).all()


def test_one_draw_is_one_truth_for_neighbouring_points(model):
    time, _ = model.draws(Points.of(8, 64, sm_clock_mhz=[1410, 1395]), 500, seed=0)
    error = np.log(time / time.mean(axis=0))
    assert np.corrcoef(error.T)[0, 1] > 0.95


def test_the_same_seed_gives_the_same_truth_at_other_points(model):
    alone, _ = model.draws(Points.of(8, 64), 5, seed=9)
    among, _ = model.draws(Points.of([1, 8], 64), 5, seed=9)
    assert among[:, 1] == pytest.approx(alone[:, 0])


def test_predicting_loads_numpy_only():
    code = (
        "import sys; from pfprofile.model import load_model, Points;"
        "m = load_model('a100-sxm4/resnet50'); m.predict(Points.of(8, 64)); m.draws(Points.of(8, 64), 2, 0);"
        "print([n for n in ('scipy', 'sklearn', 'pandas', 'pyarrow', 'torch') if n in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda b: b.update(kind="other"), "not a pfprofile model"),
        (lambda b: b.update(format_version=99), "format version 99"),
        (lambda b: b.update(surprise=1), "surprise"),
        (lambda b: b.pop("domain"), "domain"),
        (lambda b: b["noise"].update(time=-1.0), "noise.time"),
    ],
)
def test_a_damaged_model_file_is_refused_by_key(model, change, words):
    body = json.loads(model.document.to_json())
    change(body)
    with pytest.raises(InputError, match=words):
        from_json(json.dumps(body), "m.json")


def test_unknown_models_name_the_nearest():
    with pytest.raises(InputError, match="resnet50"):
        load_model("resnet5")


def test_a_model_of_ones_own_comes_before_the_shipped_one(model, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    save_model(
        FittedModel(model.document.model_copy(update={"device_name": "mine"})), tmp_path / "models/x/resnet50.json"
    )
    assert load_model("resnet50").device_name == "mine"
    assert load_model("a100-sxm4/resnet50").device_name == "NVIDIA A100-SXM4"


def test_supported_clocks_are_empty_where_clocks_cannot_be_chosen(simulated_profile):
    assert fit_profile(simulated_profile()).supported_clocks_mhz == ()
    assert fit_profile(simulated_profile(clocks=CLOCKS)).supported_clocks_mhz == CLOCKS


def test_facts_and_memory_travel_with_the_model(model):
    assert model.facts.samples_per_epoch == 1_281_167
    assert model.max_local_batch == 256
    assert model.document.domain.oom_local_batch == 512
    assert model.source == "synthetic"
    assert model.gpus_per_node == 8
    assert math.isclose(model.idle_power_w, 42.0, abs_tol=1.0)
