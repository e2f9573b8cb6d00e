from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from pfprofile.errors import InputError
from pfprofile.profile import Profile
from pfprofile.profile.merge import merge


def _timed(profile: Profile, hour: int) -> Profile:
    start = datetime(2026, 1, 1, hour, tzinfo=UTC)
    rows = [{**row, "started_at": start + timedelta(minutes=i)} for i, row in enumerate(profile.rows())]
    return Profile.from_rows(rows, profile.metadata)


def test_joins_trials_and_renumbers_them(make_profile):
    a, b = _timed(make_profile(gpus=(1,)), 1), _timed(make_profile(gpus=(2,)), 2)
    merged = merge([a, b], ["a", "b"])
    assert merged.n_rows == a.n_rows + b.n_rows
    assert len(merged.unique("trial_id")) == merged.n_rows
    assert merged.unique("n_gpus") == [1, 2]


def test_the_same_trial_twice_is_kept_once(make_profile):
    a = _timed(make_profile(), 1)
    assert merge([a, a], ["a", "a"]).n_rows == a.n_rows


def test_unknown_agrees_with_anything(make_profile):
    a, b = make_profile(driver_version=None), make_profile(driver_version="555.1")
    assert merge([a, b], ["a", "b"]).metadata.driver_version == "555.1"


@pytest.mark.parametrize("changes", [{"driver_version": "1"}, {"source": "synthetic"}, {"power_limit_w": 250.0}])
def test_disagreement_names_key_files_and_values(make_profile, changes):
    a = make_profile(driver_version="2", power_limit_w=300.0)
    b = make_profile(**{"driver_version": "2", "power_limit_w": 300.0, **changes})
    with pytest.raises(InputError) as caught:
        merge([a, b], ["a.parquet", "b.parquet"])
    (key,) = changes
    assert key in str(caught.value)
    assert "a.parquet" in str(caught.value)
    assert "b.parquet" in str(caught.value)


def test_two_workloads_are_refused(make_profile):
    a = make_profile()
    b = Profile.from_rows([{**row, "workload": "other"} for row in a.rows()], a.metadata)
    with pytest.raises(InputError, match="workload is 'toy' in a and 'other' in b"):
        merge([a, b], ["a", "b"])


def test_different_facts_are_refused(make_profile):
    a = make_profile()
    b = make_profile(workload=type(a.metadata.workload)("image", 2000, 16, 32))
    with pytest.raises(InputError, match=r"workload\.samples_per_epoch is 1000 in a and 2000 in b"):
        merge([a, b], ["a", "b"])
