"""What ships is what the scripts of this repository make, and says what it is."""

from __future__ import annotations

import runpy

import numpy as np
import pytest

from pfprofile.model.store import load_model
from pfprofile.model.terms import NAMES, TERMS
from pfprofile.profile import read_profile
from pfprofile.profile.places import shipped, shipped_root

PROFILES, MODELS = shipped(".parquet"), shipped(".json")
SYNTHETIC = [name for name in PROFILES if name.startswith("a100-sxm4/")]


@pytest.fixture(scope="module")
def make():
    """The generator's `make`: it is a script beside the profiles, not part of the package."""
    return runpy.run_path(str(shipped_root() / "make_synthetic.py"), run_name="make_synthetic")["make"]


def test_every_profile_has_its_model_beside_it():
    assert set(PROFILES) == set(MODELS)
    assert len(SYNTHETIC) == 6


@pytest.mark.parametrize("name", SYNTHETIC)
def test_synthetic_profiles_are_what_the_script_makes(name, make):
    profile, made = read_profile(PROFILES[name]), make(name.partition("/")[2])
    assert profile.metadata == made.metadata
    for kept, new in zip(profile.rows(), made.rows(), strict=True):
        for column in ("step_time_s", "power_w"):
            # The generator's powers and roots may differ in the last digits on another processor.
            assert np.isclose(kept.pop(column) or 0, new.pop(column) or 0, rtol=1e-9)
        for column in ("energy_j", "step_time_std_s", "power_spread_w"):
            assert np.isclose(kept.pop(column) or 0, new.pop(column) or 0, rtol=1e-9)
        assert kept == new


@pytest.mark.parametrize("name", list(MODELS))
def test_models_are_of_their_profile_and_of_todays_terms(name):
    model, profile = load_model(MODELS[name]), read_profile(PROFILES[name])
    assert model.document.provenance.profile_digest == profile.digest()
    assert model.source == profile.metadata.source
    power = {t.name for t in TERMS if t.part == "power"}
    wanted = set(NAMES) if model.has_power else set(NAMES) - power
    assert {p.name for p in model.document.parameters} >= wanted


@pytest.mark.parametrize("name", list(PROFILES))
def test_nothing_of_the_machine_that_made_it_leaks(name):
    metadata = read_profile(PROFILES[name]).metadata
    assert metadata.host is None
    assert not any(word.startswith("/") for word in metadata.argv)
