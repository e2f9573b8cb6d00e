"""The best point for one job, and the limits it must keep."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pfprofile.errors import InfeasibleError, InputError
from pfprofile.model import Points, fit_profile, load_model
from pfprofile.model.pick import GUARD, Limits, candidates, clocks_given, pick

CLOCKS = (210.0, 600.0, 1005.0, 1410.0)


@pytest.fixture(scope="module")
def model():
    return load_model("a100-sxm4/resnet50")


def choose(model, objective="energy", gpus=None, batches=None, **limits):
    return pick(model, candidates(model, gpus, batches, None), objective, Limits(**limits))


def brute(model, objective):
    points = Points.of(1, 256, sm_clock_mhz=np.array(model.supported_clocks_mhz))
    p = model.predict(points)
    score = {"energy": p.energy_per_step_j, "time": p.step_time_s, "edp": p.energy_per_step_j * p.step_time_s}
    return points.sm_clock_mhz[np.argmin(score[objective])]


@pytest.mark.parametrize("objective", ["energy", "time", "edp"])
def test_the_least_is_chosen_among_all_clocks(model, objective):
    assert choose(model, objective).chosen.points.sm_clock_mhz == [brute(model, objective)]


def test_a_slowdown_limit_is_kept_with_one_percent_to_spare(model):
    choice = choose(model, max_slowdown=0.05)
    assert choice.time_added <= 0.05 - GUARD + 1e-9
    assert choice.energy_saved > 0
    assert choice.energy_saved_lo <= choice.energy_saved <= choice.energy_saved_hi
    assert choice.time_added_lo <= choice.time_added <= choice.time_added_hi


def test_no_slowdown_at_all_leaves_the_default_clock(model):
    assert choose(model, max_slowdown=0.0).chosen.points.sm_clock_mhz == [1410.0]


@given(st.floats(0.01, 0.5), st.sampled_from(["energy", "edp"]))
def test_property_a_looser_limit_never_costs_energy(limit, objective):
    model = load_model("a100-sxm4/resnet50")
    tight, loose = (choose(model, objective, max_slowdown=s) for s in (limit, limit + 0.1))
    name = "energy_per_step_j"
    score = [float(getattr(c.chosen, name)[0] * (c.chosen.step_time_s[0] if objective == "edp" else 1))
             for c in (tight, loose)]  # fmt: skip
    assert score[1] <= score[0] * (1 + 1e-12)


def test_a_power_cap_is_kept(model):
    assert choose(model, "time", power_cap_w=200.0).chosen.power_w[0] <= 200.0
    with pytest.raises(InfeasibleError, match="the least is"):
        choose(model, power_cap_w=20.0)


def test_a_deadline_needs_the_size_of_the_work(model):
    fast = choose(model, deadline_s=4000.0, gpus=[1, 8])
    work = model.facts.samples_per_epoch
    assert work / fast.chosen.throughput_per_s[0] <= 4000.0
    assert fast.chosen.points.n_gpus[0] == 1
    assert choose(model, deadline_s=1000.0, gpus=[1, 8]).chosen.points.n_gpus[0] == 8
    with pytest.raises(InfeasibleError, match="the fastest takes"):
        choose(model, deadline_s=1.0)


def test_points_of_other_batches_compare_by_the_sample(model):
    choice = choose(model, "energy", batches=[16, 256])
    per_sample = [float(model.predict(Points.of(1, b)).energy_per_step_j[0] / b) for b in (16, 256)]
    assert choice.chosen.points.local_batch[0] == (16, 256)[int(np.argmin(per_sample))]


def test_the_lowest_clock_as_the_best_is_said(simulated_profile):
    # Nothing depends on the clock but the power: the lowest is the best.
    model = fit_profile(simulated_profile(gpus=(1,), clocks=CLOCKS, c1=1e-7))
    choice = choose(model)
    assert choice.at_edge
    assert any("lowest clock" in text for text in choice.advice)
    assert any("verify" in text for text in choice.advice)


def test_a_model_without_clocks_or_power_says_what_is_missing(simulated_profile):
    model = fit_profile(simulated_profile(power=False))
    with pytest.raises(InputError, match="no power"):
        choose(model)
    assert np.isnan(choose(model, "time").chosen.points.sm_clock_mhz).all()
    assert np.isnan(clocks_given(model, [None, 1005.0])[0])
