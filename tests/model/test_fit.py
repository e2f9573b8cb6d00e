"""Fits recover a known truth, say what they cannot know, and refuse what cannot be."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pfprofile.errors import InputError
from pfprofile.model import Points, fit_profile
from pfprofile.model.fit import Context, document_of, fit_observations, parameters_of
from pfprofile.model.fitted import FittedModel
from pfprofile.model.fitting import frame_of, pose, solve
from pfprofile.model.intervals import t_quantile
from pfprofile.model.observations import from_columns
from pfprofile.model.residual_fit import fit_process
from pfprofile.model.saturation import inferred_cap_w
from pfprofile.model.terms import INDEX, TERMS
from pfprofile.model.validate import predict_rows
from pfprofile.profile import ProfileMetadata

from .conftest import TRUTH

CLOCKS = (210.0, 600.0, 1005.0, 1200.0, 1410.0)
EVERYWHERE = (1, 2, 4, 8, (2, 2), (8, 2), (16, 2), (32, 4))


def fitted(columns, starts=2):
    obs = from_columns(columns)
    return fit_observations(obs, frame_of(obs), "NVIDIA A100", None, starts)


def model_of(columns):
    fit = fitted(columns)
    context = Context(ProfileMetadata(source="measured"), "toy", "A100", "fp32", None, [], "", 1)
    return FittedModel(document_of(fit, context)), fit


def test_without_noise_the_truth_is_found(simulate):
    fit = fitted(simulate(gpus=EVERYWHERE, clocks=CLOCKS, noise=0.0))
    assert fit.solution.converged
    for j, term in enumerate(TERMS):
        if term.name not in fit.problem.frozen:
            assert fit.solution.theta[j] == pytest.approx(TRUTH[term.name], rel=0.1), term.name


def test_soft_l1_shrugs_off_a_wrong_row(simulate):
    columns = simulate(noise=0.0)
    columns["step_time_s"][3] *= 5
    clean = fitted(simulate(noise=0.0)).solution.values.time_s
    error = fitted(columns).solution.values.time_s / clean - 1
    assert np.abs(error).max() < 0.05


def test_few_points_stay_sane_thanks_to_the_ridge(simulate):
    columns = simulate(gpus=(1, 2, (16, 2)), batches=(32, 64), noise=0.02)
    model, _ = model_of(columns)
    truth = simulate(gpus=(4, 8, (32, 4)), batches=(32, 64), noise=0.0)["step_time_s"]
    points = Points.of(np.repeat([4, 8, 32], 2), [32, 64] * 3, n_nodes=np.repeat([1, 1, 4], 2))
    assert np.abs(model.predict(points).step_time_s / truth - 1).max() < 0.5


@pytest.mark.parametrize("seed", range(2))
def test_intervals_hold_what_they_promise(simulate, seed):
    inside = []
    for s in range(5):
        train = simulate(gpus=EVERYWHERE, clocks=CLOCKS[1:], noise=0.02, seed=100 * seed + s)
        fresh = from_columns(simulate(gpus=EVERYWHERE, clocks=CLOCKS[1:], noise=0.02, seed=100 * seed + s + 50))
        model, fit = model_of(train)
        held = predict_rows(model, fresh, fit.problem.frame, np.arange(len(fresh)))
        inside += [held.time_inside, held.power_inside]
    assert 0.85 <= np.mean(inside) <= 0.95


def test_intervals_are_wider_where_less_is_known(simulate):
    model, _ = model_of(simulate(gpus=(1, 2, 4, (16, 2), (32, 4))))
    p = model.predict(Points.of([4, 8], 64))
    width = np.log(p.step_time_hi_s / p.step_time_lo_s)
    assert width[1] > width[0]


def test_weak_and_bounded_parameters_are_named(simulate):
    fit = fitted(simulate(alpha_r=1e-6, beta_r=1e-6))
    assert "alpha_r" in fit.spread.weak
    theta = fit.solution.theta.copy()
    theta[INDEX["kappa"]] = 1e-4
    stopped = replace(fit, solution=replace(fit.solution, theta=theta))
    [kappa] = [p for p in parameters_of(stopped) if p.name == "kappa"]
    assert kappa.at_bound
    assert kappa.reason == "at its bound"
    [a0] = [p for p in parameters_of(stopped) if p.name == "a0"]
    assert not a0.at_bound


def test_power_limits_in_place_of_clocks_are_understood(simulate):
    columns = simulate(gpus=(1,), batches=(16, 32, 64, 128), limits=(90.0, 120.0, 150.0, 200.0, 250.0, 300.0),
                       noise=0.005, q=6.0, eta=0.97, phi_min=0.2)  # fmt: skip
    fit = fitted(columns)
    obs, values = fit.problem.obs, fit.solution.values
    assert np.mean(np.abs(values.time_s / obs.step_time_s - 1)) < 0.01
    assert np.mean(np.abs(values.power_w / obs.power_w - 1)) < 0.01


def test_a_plateau_without_a_recorded_limit_is_taken_for_one(simulate):
    clocks = tuple(float(f) for f in range(510, 1411, 15))
    columns = simulate(gpus=(1,), batches=(128,), clocks=clocks, cap_w=230.0, noise=0.002)
    columns["power_limit_w"] = [None] * len(columns["n_gpus"])
    obs = from_columns(columns)
    assert inferred_cap_w(obs) == pytest.approx(0.99 * 230, rel=0.01)
    fit = fitted(columns)
    assert np.abs(fit.solution.values.power_w / obs.power_w - 1).max() < 0.02
    free = from_columns(simulate(gpus=(1,), batches=(128,), clocks=clocks, noise=0.002))
    assert math.isnan(inferred_cap_w(free))


def test_the_residual_stage_is_kept_only_where_it_helps():
    rng = np.random.default_rng(0)
    x = np.column_stack(
        [np.repeat(np.arange(6) * 0.7, 10), np.zeros(60), np.tile(np.arange(10) * 0.5, 6), np.zeros(60)]
    )
    noise = 0.02 * rng.standard_normal(60)
    assert fit_process(x, noise) is None
    process = fit_process(x, 0.1 * np.sin(x[:, 0]) + noise)
    assert process is not None
    assert process.noise == pytest.approx(0.02, rel=0.4)
    assert fit_process(x[:5], noise[:5]) is None


def test_the_residual_stage_lowers_held_out_errors_and_stops_at_the_border(simulate):
    columns = simulate(gpus=EVERYWHERE, batches=(8, 12, 16, 24, 32, 48, 64, 96, 128), noise=0.003, power=False)
    # A bump that no term of the form has.
    bump = 1 + 0.15 * np.exp(-((np.log(np.array(columns["local_batch"]) / 32)) ** 2))
    columns["step_time_s"] = list(np.array(columns["step_time_s"]) * bump)
    model, fit = model_of(columns)
    assert model.document.residual is not None
    seen = predict_rows(model, fit.problem.obs, fit.problem.frame, np.arange(len(fit.problem.obs)))
    bare = np.mean(np.abs(fit.solution.values.time_s / fit.problem.obs.step_time_s - 1))
    assert np.mean(np.abs(seen.time_s / fit.problem.obs.step_time_s - 1)) < 0.7 * bare
    mean, variance = model._field.posterior(np.array([[0.0, 0.0, 3.0, 0.0]]), "time", np.array([True]))
    assert mean == [0.0]
    assert variance == [model.document.residual.time.amplitude**2]


def test_repeats_collapse_to_their_median(simulate):
    columns = simulate(repeats=3, noise=0.0)
    columns["step_time_s"][1] *= 10
    obs = from_columns(columns)
    assert len(obs) == len(columns["n_gpus"]) // 3
    assert (obs.repeats == 3).all()
    assert obs.step_time_s[0] == pytest.approx(columns["step_time_s"][0])


def test_the_achieved_clock_is_fitted_not_the_requested_one(simulate):
    columns = simulate(gpus=(1,), clocks=CLOCKS, noise=0.0)
    asked = dict(columns)
    asked["achieved_clock_mhz"] = columns["requested_clock_mhz"]
    asked["requested_clock_mhz"] = [f + 15 for f in columns["requested_clock_mhz"]]
    obs = from_columns(asked)
    assert obs.clock_mhz.tolist() == columns["requested_clock_mhz"]


def test_a_device_without_settable_clocks_has_no_clock_axis(simulated_profile):
    profile = simulated_profile()
    rows = [{**r, "achieved_clock_mhz": 2000.0 + 300 * (i % 3)} for i, r in enumerate(profile.rows())]
    model = fit_profile(type(profile).from_rows(rows, profile.metadata))
    assert model.supported_clocks_mhz == ()
    assert model.document.domain.clock_mhz == []


def spoil(row: int, **values):
    def change(columns):
        for name, value in values.items():
            columns.setdefault(name, [None] * len(columns["n_gpus"]))[row] = value

    return change


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (spoil(2, step_time_s=0.0), "row 2: step_time_s is 0"),
        (spoil(1, step_time_s=-1.0), "row 1: step_time_s is -1"),
        (spoil(0, step_time_s=math.inf), "row 0: step_time_s"),
        (spoil(0, power_w=-3.0), "power_w is -3"),
        (spoil(0, power_w=900.0, power_limit_w=400.0), "twice the limit"),
        (spoil(0, n_gpus=1, n_nodes=2), "2 nodes for 1 GPUs"),
        (lambda c: c.update(step_time_s=[None] * len(c["n_gpus"])), "no row has a step time"),
        (lambda c: c.update(status=["failed"] * len(c["n_gpus"])), "all trials failed"),
        (lambda c: [c.update({k: []}) for k in list(c)], "no rows"),
        (lambda c: c.pop("local_batch"), "'local_batch' is missing"),
    ],
)
def test_what_cannot_be_is_refused_in_one_line(simulate, change, words):
    columns = simulate()
    change(columns)
    with pytest.raises(InputError, match=words) as caught:
        from_columns(columns, "p.parquet")
    assert "p.parquet" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_rows_without_a_time_are_left_out_and_failed_ones_too(simulate):
    columns = simulate()
    columns["step_time_s"][0] = None
    columns["step_time_s"][1] = math.nan
    columns["status"] = ["ok"] * len(columns["n_gpus"])
    columns["status"][2] = "oom"
    assert len(from_columns(columns)) == len(columns["n_gpus"]) - 3


@pytest.mark.parametrize("column", ["workload", "device_name", "precision"])
def test_mixed_profiles_are_refused(simulated_profile, column):
    profile = simulated_profile()
    rows = profile.rows()
    rows[0][column] = "other"
    with pytest.raises(InputError, match=f"2 {column.removesuffix('_name')}s in one profile"):
        fit_profile(type(profile).from_rows(rows, profile.metadata))


def test_one_row_gives_a_model_that_speaks_of_that_point_alone(simulated_profile):
    model = fit_profile(simulated_profile(gpus=(1,), batches=(32,), noise=0.0))
    assert model.predict(Points.of(1, 32)).step_time_s == pytest.approx(0.0727, rel=0.05)
    with pytest.raises(InputError, match="only one local batch"):
        model.predict(Points.of(1, 64))


@given(
    rows=st.lists(
        st.tuples(st.sampled_from([1, 2, 4, 8, 16]), st.integers(1, 512), st.floats(1e-4, 100), st.floats(20, 500),
                  st.sampled_from([None, 500.0, 900.0, 1400.0])),
        min_size=1, max_size=12,
    )
)  # fmt: skip
@settings(max_examples=25, suppress_health_check=[HealthCheck.too_slow])
def test_property_any_positive_measurements_give_finite_predictions(rows):
    n, b, t, p, f = zip(*rows, strict=True)
    columns = {"n_gpus": n, "n_nodes": [max(1, i // 8) for i in n], "local_batch": b, "step_time_s": t, "power_w": p,
               "requested_clock_mhz": f}  # fmt: skip
    obs = from_columns(columns)
    problem = pose(obs, frame_of(obs))
    solution = solve(problem, starts=1)
    assert np.isfinite(solution.theta).all()
    assert np.isfinite(solution.values.time_s).all()
    assert (solution.values.power_w > 0).all()
    for j, term in enumerate(TERMS):
        if term.name not in problem.frozen:
            assert term.lower * 0.999 - 1e-9 <= solution.theta[j] <= term.upper * 1.001


@pytest.mark.parametrize(
    ("dof", "value"), [(1, 6.3138), (2, 2.92), (3, 2.3534), (5, 2.015), (10, 1.8125), (1000, 1.6464)]
)
def test_student_quantiles_match_the_tables(dof, value):
    assert t_quantile(0.9, dof) == pytest.approx(value, rel=0.01)
