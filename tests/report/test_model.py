"""Pictures of a model: the shipped (synthetic) resnet50 on an A100, beside its profile and alone."""

from __future__ import annotations

import math

import numpy as np
import pytest

from pfprofile.model import FittedModel, Points, load_model
from pfprofile.model.document import Parameter
from pfprofile.model.pick import Limits, candidates, pick
from pfprofile.profile import Profile, read_profile
from pfprofile.profile.places import shipped
from pfprofile.report.artifact import Artifact, Kind
from pfprofile.report.asking import predict_under
from pfprofile.report.build import _profile_of
from pfprofile.report.curves import curves_of, cut_of_domain
from pfprofile.report.front import Work, front_group, pareto
from pfprofile.report.model import section
from pfprofile.report.residuals import residuals
from pfprofile.report.slices import cut, derived
from pfprofile.report.svg import drawing

NAME = "a100-sxm4/resnet50"


@pytest.fixture(scope="module")
def model():
    return load_model(shipped(".json")[NAME])


@pytest.fixture(scope="module")
def profile():
    return read_profile(shipped(".parquet")[NAME])


@pytest.fixture(scope="module")
def beside(model, profile):
    with drawing():
        return section(model, profile, "m.json", "s1")


@pytest.fixture(scope="module")
def alone(model):
    with drawing():
        return section(model, None, "m.json", "s1")


def group(part, title):
    return next(g for g in part.groups if g.title == title)


def without_power(model):
    document = model.document
    quality = document.quality.model_copy(update={"power": None})
    return FittedModel(document.model_copy(update={"forms": {**document.forms, "power": None}, "quality": quality}))


def test_curves_pass_where_the_model_says_and_lie_inside_their_interval(model, profile):
    part = cut([derived(row) for row in profile.rows()], "clock")
    for curve in curves_of(model, part):
        for value, low, high in curve.values.values():
            assert np.all((low < value) & (value < high))
        assert not curve.extrapolated.any()
        assert (curve.x[0], curve.x[-1]) == (210.0, 1410.0)


def test_the_fit_is_drawn_over_the_points(beside):
    for title in ("The fit against SM clock", "The fit against batch size", "The fit against GPU count"):
        panels = group(beside, title).panels
        assert len(panels) == 4
        for panel in panels:
            assert panel.svg.count("mark-interval") == panel.svg.count("mark-curve") == 3
            assert panel.svg.count("mark-ok") >= 3


def test_without_a_profile_there_are_curves_and_words_how_to_see_points(alone):
    assert any("pfprofile report PROFILE MODEL" in note for note in alone.notes)
    panels = group(alone, "The fit against SM clock").panels
    assert panels[0].svg.count("mark-curve") == 3
    assert "mark-ok" not in panels[0].svg
    assert group(alone, "Residuals").panels == ()
    assert "give the profile" in group(alone, "Residuals").intro


def test_the_reference_batch_and_one_gpu_are_held_without_a_profile(model):
    assert cut_of_domain(model, "gpus").intro == "Held fixed: batch 64."
    assert cut_of_domain(model, "batch").intro == "Held fixed: 1 GPU."


def test_residuals_are_measured_over_model(model, profile):
    row = derived(profile.rows()[0])
    time_part, power_part = residuals(model, [row, {**row, "step_time_s": 2 * row["step_time_s"], "power_w": None}])
    assert 1 + time_part.off[1] == pytest.approx(2 * (1 + time_part.off[0]))
    assert time_part.outside.tolist() == [False, True]
    assert math.isnan(power_part.off[1])
    assert not power_part.outside[1]


def test_residual_pictures_say_how_many_lie_inside(beside):
    panels = group(beside, "Residuals").panels
    assert "of 280 trials" in panels[0].description
    assert panels[0].svg.count("mark-residual") == 3
    numbers = group(beside, "Residuals").tables[0]
    assert len(numbers.rows) == 280


def test_pareto_keeps_what_no_other_point_beats():
    time_s = np.array([1.0, 2.0, 3.0, 2.0, 4.0])
    energy_j = np.array([9.0, 5.0, 6.0, 5.5, 5.0])
    assert pareto(time_s, energy_j).tolist() == [True, True, False, False, False]


def test_the_picked_point_is_the_one_that_pick_chooses(model, beside):
    choice = pick(model, candidates(model, None, None, None), "energy", Limits(max_slowdown=0.05))
    part = group(beside, "Time against energy")
    clock = f"{choice.chosen.points.sm_clock_mhz[0]:g} MHz"
    assert f"pick --max-slowdown 5% takes {clock} on 1 GPU" in part.panels[0].description
    assert part.panels[0].svg.count("mark-picked") == 2
    assert part.panels[0].svg.count("mark-front") == 1
    assert [row[0] for row in part.tables[0].rows] == ["pick", "pick --max-slowdown 5%"]
    assert "one epoch (1,281,167 images)" in part.intro


def test_work_without_an_epoch_is_a_million_samples(model):
    facts = model.document.facts.model_copy(update={"samples_per_epoch": None})
    work = Work.of(FittedModel(model.document.model_copy(update={"facts": facts})))
    assert (work.samples, work.words) == (1e6, "a million images")


def test_a_model_without_power_says_so_and_draws_time(model):
    with drawing():
        part = section(without_power(model), None, "m.json", "s1")
    shown = {panel.title: panel for panel in group(part, "The fit against SM clock").panels}
    assert shown["Step time"].svg
    assert shown["Power of one GPU"].svg == ""
    assert "unknown" in shown["Power of one GPU"].description
    assert "Energy is unknown" in group(part, "Time against energy").intro
    assert dict(part.facts)["Power error"] == "unknown: no power was measured"


def test_synthetic_and_the_warnings_stand_at_the_top(beside):
    assert beside.sources == ("synthetic",)
    assert "fitted to a synthetic profile: nothing about accuracy follows from it" in beside.notes
    assert "synthetic" in group(beside, "How good it is").intro


def test_errors_and_parameters_are_the_documents(model, beside):
    errors = group(beside, "How good it is").tables[0]
    assert errors.rows[0][:3] == ("throughput", "the fitted points", "0.80 %")
    assert [row[0] for row in group(beside, "Parameters").tables[0].rows] == [p.name for p in model.document.parameters]


def test_the_profile_of_the_fit_comes_before_a_like_one(model, profile, tmp_path):
    other = Profile.from_rows(profile.rows()[:40], profile.metadata)
    alien = Profile.from_rows([{**row, "workload": "bert"} for row in profile.rows()[:2]], profile.metadata)

    def given(*profiles):
        return [Artifact(Kind.profile, tmp_path, p) for p in profiles]

    assert _profile_of(model, given(alien, other, profile)) is profile
    assert _profile_of(model, given(alien, other)) is other
    assert _profile_of(model, given(alien)) is None
    with drawing():
        assert any("not the one this model was fitted on" in note for note in section(model, other, "m", "s1").notes)


@pytest.fixture(scope="module")
def capped_model(model):
    """The model with a sharp power cap, whatever the shipped file says of its sharpness."""
    cap = {"eta": 0.99, "q": 40.0, "phi_min": 0.15}
    kept = [p for p in model.document.parameters if p.name not in cap]
    added = [Parameter(name=name, unit="", value=v, stderr=None, frozen=True) for name, v in cap.items()]
    return FittedModel(model.document.model_copy(update={"parameters": [*kept, *added]}))


def test_predictions_under_a_limit_are_the_models(capped_model):
    model = capped_model
    points = Points.of([1, 1, 1], [256, 256, 256], sm_clock_mhz=[1410.0, 1410.0, 1410.0])
    found = predict_under(model, points, np.array([math.nan, 200.0, 400.0]))
    assert found.power_w[0] == found.power_w[2] == model.predict(points).power_w[0]
    assert found.power_w[1] == model.predict(points, power_limit_w=200.0).power_w[1]
    assert found.power_w[1] <= 200.0 < found.power_w[0]
    assert found.step_time_s[1] > found.step_time_s[0]


def test_residuals_ask_under_the_limit_of_the_trial(capped_model, profile):
    model = capped_model
    row = next(r for r in profile.rows() if r["status"] == "ok" and r["requested_clock_mhz"] == 1410.0)
    points = Points.of(row["n_gpus"], row["local_batch"], n_nodes=row["n_nodes"], sm_clock_mhz=1410.0)
    expected = row["step_time_s"] / model.predict(points, power_limit_w=150.0).step_time_s[0] - 1
    time_part, _ = residuals(model, [derived({**row, "power_limit_w": 150.0})])
    assert time_part.off[0] == pytest.approx(expected)
    assert time_part.off[0] < -0.05


def test_one_gpu_count_and_one_clock_leave_nothing_to_choose(model):
    domain = model.document.domain.model_copy(update={"n_gpus": [1], "clock_mhz": [1410.0]})
    with drawing():
        only = front_group(FittedModel(model.document.model_copy(update={"domain": domain})), "s1")
    assert only.panels == ()
    assert "nothing to choose" in only.intro
