"""Each rule of the freeze table, and none where the data can tell."""

from __future__ import annotations

import numpy as np
import pytest

from pfprofile.model.facts import facts_of
from pfprofile.model.fitting import frame_of, pose
from pfprofile.model.freeze import RULES
from pfprofile.model.observations import from_columns
from pfprofile.model.terms import TERMS

EVERYWHERE = (1, 2, 4, 8, (2, 2), (8, 2), (16, 2), (32, 4))
MANY = (210.0, 600.0, 1005.0, 1200.0, 1410.0)


def frozen(columns):
    obs = from_columns(columns)
    return pose(obs, frame_of(obs)).frozen


#: a power limit that never bites tells nothing of how one bites
CAP = {"eta", "q", "phi_min"}


def test_every_rule_that_terms_name_exists_and_is_used():
    assert {rule for t in TERMS for rule in t.freezes} == set(RULES)


def test_rich_data_freeze_nothing(simulate):
    assert set(frozen(simulate(gpus=EVERYWHERE, clocks=MANY))) == CAP


@pytest.mark.parametrize(
    ("options", "names"),
    [
        ({"clocks": MANY, "batches": (64,)}, {"a1", "e0"}),
        ({"clocks": MANY[:3], "batches": (64,)}, {"a0", "p", "e0"}),
        ({"clocks": MANY, "batches": (64,), "gpus": (1, 2, 4)}, {"a1", "e0", "kappa", "alpha_n", "beta_n", "delta_n"}),
        ({"clocks": (None,)}, {"c1", "v", "phi_knee"}),
        ({"gpus": (1,), "clocks": MANY},
         {"kappa", "alpha_r", "beta_r", "alpha_n", "beta_n", "delta_n", "gamma", "rho"}),
        ({"gpus": (1, 2), "clocks": MANY}, {"kappa", "gamma", "beta_r", "alpha_n", "beta_n", "delta_n"}),
        ({"gpus": (1, 2, 4), "clocks": MANY}, {"alpha_n", "beta_n", "delta_n"}),
        ({"gpus": (1, (2, 2), (8, 4), (16, 4)), "clocks": MANY}, {"alpha_r", "beta_r"}),
        ({"gpus": (1, 4, 8, (2, 2), (16, 2)), "clocks": MANY}, {"delta_n"}),
        ({"gpus": (1, 4, 8, (16, 2), (32, 4)), "clocks": MANY}, {"beta_n"}),
        ({"gpus": EVERYWHERE, "clocks": MANY, "power": False}, {"P0", "e0", "e1", "rho", "v", "phi_knee"}),
    ],
)  # fmt: skip
def test_what_the_data_cannot_tell_is_frozen(simulate, options, names):
    options = {"gpus": EVERYWHERE, **options}
    found = frozen(simulate(**options))
    assert set(found) - CAP == names
    assert all(f.reason for f in found.values())


def test_guesses_that_extrapolate_are_never_zero(simulate):
    found = frozen(simulate(gpus=(1, 4, 8, (16, 2)), clocks=MANY))
    assert found["beta_n"].value > 0
    assert found["delta_n"].value > 0
    assert found["beta_n"].unknown
    assert found["delta_n"].unknown


def test_half_the_computing_time_is_the_floor_of_a_single_batch_at_few_clocks(simulate):
    columns = simulate(gpus=(1,), batches=(64,), clocks=(1410.0, 705.0), noise=0.0)
    found = frozen(columns)
    assert found["a0"].value == pytest.approx(0.5 * min(columns["step_time_s"]))
    assert found["p"].value == 1.0


def test_power_limits_stand_for_clocks_where_the_clock_is_not_recorded(simulate):
    columns = simulate(gpus=(1,), limits=(100.0, 150.0, 200.0, 250.0))
    assert not {"c1", "v", "phi_knee", *CAP} & set(frozen(columns))


def test_how_a_limit_bites_is_fitted_where_rows_lie_at_it(simulate):
    columns = simulate(gpus=(1,), clocks=(*MANY, 1305.0, 1365.0), cap_w=200.0)
    assert CAP & set(frozen(columns)) == {"phi_min"}


def test_priors_follow_what_is_known_of_the_gpu_and_its_idle_power(simulate):
    obs = from_columns(simulate())
    phi = np.ones(len(obs))
    assert facts_of(obs, phi, "NVIDIA A100-SXM4-80GB").voltage_knee == pytest.approx(0.78)
    assert facts_of(obs, phi, "NVIDIA Unheard-Of").voltage_knee == pytest.approx(0.65)
    assert facts_of(obs, phi, "NVIDIA A100", idle_power_w=40.0).static_power_w == pytest.approx(50.0)
