"""Held-out errors, baselines beside them, and advice on what to measure next."""

from __future__ import annotations

import numpy as np
import pytest

from pfprofile.errors import InputError, QualityError
from pfprofile.model import fit_profile
from pfprofile.model import validate as v
from pfprofile.model.advise import correlations
from pfprofile.model.baselines import BASELINES, predict
from pfprofile.model.judge import require, validate_profile
from pfprofile.model.observations import from_columns

CLOCKS = (210.0, 600.0, 1005.0, 1410.0)


def test_what_is_left_out_was_not_seen(simulate):
    obs = from_columns(simulate(gpus=(1, 2, 4), noise=0.0, power=False))
    seen = []

    def fitter(train):
        seen.append(set(train.local_batch))
        return model

    from pfprofile.model.fitting import frame_of

    frame = frame_of(obs)
    model = v.model_of(obs, frame, context())
    held = list(v.leave_one_out(obs, frame, fitter, "batch"))
    assert [set(obs.local_batch[h.rows]) for h in held] == [{16.0}, {32.0}, {64.0}, {128.0}]
    assert all(not set(obs.local_batch[h.rows]) & s for h, s in zip(held, seen, strict=True))
    assert [bool(h.interior.all()) for h in held] == [False, True, True, False]


def context():
    from pfprofile.model.fit import Context
    from pfprofile.profile import ProfileMetadata

    return Context(ProfileMetadata(source="measured"), "toy", "A100", "fp32", None, [], "", 1)


def test_folds_are_thinned_evenly_and_two_values_cannot_be_judged():
    assert v.groups(np.arange(10.0), 4) == [0.0, 3.0, 6.0, 9.0]
    assert v.groups(np.array([1.0, 2.0, 1.0]), None) == []


@pytest.mark.parametrize("name", BASELINES)
def test_baselines_learn_a_power_law_but_not_the_unseen(simulate, name):
    columns = simulate(gpus=(1, 2, 4, 8), power=False)
    columns["step_time_s"] = [0.01 * b**0.5 for b in columns["local_batch"]]
    obs = from_columns(columns)
    assert predict(name, obs, obs) == pytest.approx(obs.step_time_s, rel=0.05)
    assert np.isnan(predict(name, obs, obs, power=True)).all()


def test_a_report_says_where_a_baseline_is_better(simulated_profile):
    profile = simulated_profile(gpus=(1, 2, 4), batches=(16, 32, 64, 128), noise=0.0, power=False)
    # A law that is a straight line in the logarithms, and no sum of times.
    rows = [{**r, "step_time_s": 0.01 * r["local_batch"] ** 1.4 * r["n_gpus"] ** 0.3} for r in profile.rows()]
    model = fit_profile(type(profile).from_rows(rows, profile.metadata))
    quality = model.document.quality.throughput
    assert quality.baselines["log_linear"]["batch"] < quality.cv["batch"]
    assert any("log linear errs by" in w for w in model.document.warnings)


def test_the_form_beats_the_baselines_on_data_it_describes(simulated_profile):
    profile = simulated_profile(gpus=(1, 2, 4, 8, (16, 2), (32, 4)), noise=0.01)
    quality = fit_profile(profile).document.quality
    for part in (quality.throughput, quality.power):
        for axis, error in part.cv.items():
            assert error < 0.05
            assert all(error < by_axis[axis] for by_axis in part.baselines.values())


def test_advice_starts_with_lone_axes_and_repeats_nothing_measured(simulated_profile):
    lone = fit_profile(
        simulated_profile({"supported_clocks_mhz": (210.0, 1410.0)}, gpus=(1,), batches=(64,), clocks=(1410.0,))
    )
    assert [p.reason for p in lone.document.advice.next_points] == [
        "only one clock was measured", "only one batch was measured", "only one GPU count was measured",
    ]  # fmt: skip
    assert lone.document.advice.next_points[0].sm_clock_mhz == 210.0
    rich = fit_profile(simulated_profile(gpus=(1, 2, 4), clocks=CLOCKS))
    points = [(p.n_gpus, p.local_batch, p.sm_clock_mhz) for p in rich.document.advice.next_points]
    assert len(set(points)) == 3
    measured = {(n, b, f) for n in (1, 2, 4) for b in (16, 32, 64, 128) for f in CLOCKS}
    assert not measured & set(points)


def test_the_worst_row_is_the_one_that_was_spoilt(simulated_profile):
    profile = simulated_profile(gpus=(1, 2, 4), noise=0.001)
    rows = profile.rows()
    rows[5]["step_time_s"] *= 2
    worst = fit_profile(type(profile).from_rows(rows, profile.metadata)).document.advice.worst[0]
    assert (worst.n_gpus, worst.local_batch, worst.part) == (rows[5]["n_gpus"], rows[5]["local_batch"], "time")
    assert worst.error == pytest.approx(-0.5, abs=0.1)


def test_correlations_name_pairs_that_only_go_together():
    from pfprofile.model import load_model

    pairs = correlations(load_model("a100-sxm4/resnet50").document, least=0.8)
    assert all(0.8 <= abs(p["correlation"]) <= 1 for p in pairs)
    assert {"a0", "p"} in [{p["a"], p["b"]} for p in pairs]


def test_validate_judges_every_axis_and_says_what_it_cannot(simulated_profile):
    rows = validate_profile(simulated_profile(gpus=(1, 2, 4), clocks=CLOCKS), "p")
    assert [(r["part"], r["axis"]) for r in rows] == [
        (part, axis) for part in ("throughput", "power") for axis in ("batch", "n_gpus", "clock")
    ]
    assert all(r["mape"] < 0.06 and 0.5 <= r["coverage"] <= 1 for r in rows)
    assert all(r["log_linear"] is not None for r in rows)
    two = validate_profile(simulated_profile(gpus=(1, 2), power=False), "p")
    assert [(r["axis"], r["mape"] is None) for r in two] == [("batch", False), ("n_gpus", True), ("clock", True)]
    require(rows, 0.06)
    with pytest.raises(QualityError, match="above 0"):
        require(rows, 0.0)


def test_estimators_speak_scikit_learn(simulate):
    import pandas as pd
    from sklearn.base import clone
    from sklearn.exceptions import NotFittedError
    from sklearn.model_selection import GroupKFold, cross_val_score

    from pfprofile.model.estimators import PowerModel, ThroughputModel

    frame = pd.DataFrame(simulate(gpus=(1, 2, 4, 8), noise=0.005))
    x, y = frame.drop(columns=["step_time_s", "power_w"]), frame["step_time_s"]
    model = ThroughputModel(starts=1)
    with pytest.raises(NotFittedError):
        model.predict(x)
    assert model.fit(x, y) is model
    assert model.predict(x) == pytest.approx(y, rel=0.05)
    assert model.parameters_["a0"] > 0
    assert clone(model).get_params() == {"device_name": "", "starts": 1}
    assert model.score(x, y) > 0.99
    assert cross_val_score(ThroughputModel(starts=1), x, y, groups=frame["local_batch"], cv=GroupKFold(4)).min() > 0.8
    power = PowerModel(starts=1).fit(frame)
    assert power.predict(x) == pytest.approx(frame["power_w"], rel=0.05)
    with pytest.raises(InputError, match="power_w"):
        PowerModel().fit(frame.drop(columns="power_w"))
