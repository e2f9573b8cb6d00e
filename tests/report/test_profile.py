"""Pictures of a profile: which trials are drawn, with which marks, and what is said where nothing can be."""

from __future__ import annotations

import pytest

from pfprofile.profile import Profile
from pfprofile.report.profile import section
from pfprofile.report.slices import cut, derived
from pfprofile.report.svg import drawing


def drawn(profile):
    with drawing():
        return section(profile, "p.parquet", "s1")


def group(part, title):
    return next(g for g in part.groups if g.title == title)


def rows_of(profile):
    return [derived(row) for row in profile.rows()]


def changed(profile, index, **values):
    rows = profile.rows()
    rows[index].update(values)
    return Profile.from_rows(rows, profile.metadata)


def test_throughput_and_energy_come_from_the_columns(make_profile):
    row = rows_of(make_profile(gpus=(2,), batches=(16,)))[0]
    assert row["throughput_per_s"] == pytest.approx(2 * 16 / 0.026)
    assert row["energy_per_sample_j"] == pytest.approx(116.0 * 0.026 / 16)
    unknown = derived({**row, "step_time_s": None, "power_w": None})
    assert (unknown["throughput_per_s"], unknown["energy_per_sample_j"]) == (None, None)


def test_a_cut_holds_the_fullest_value_and_draws_clocks_as_lines(make_profile):
    profile = make_profile(gpus=(1, 2), batches=(8, 16, 32), clocks=(705.0, 1410.0))
    part = cut(rows_of(profile), "batch")
    assert part.line_axis == "clock"
    assert [(item, len(rows)) for item, rows in part.lines] == [(705.0, 3), (1410.0, 3)]
    assert part.intro == "Held fixed: 1 GPU."


def test_no_more_than_five_lines_and_both_ends_among_them(make_profile):
    clocks = tuple(float(c) for c in range(600, 1500, 100))
    part = cut(rows_of(make_profile(clocks=clocks)), "batch")
    assert [item for item, _ in part.lines] == [600.0, 800.0, 1000.0, 1200.0, 1400.0]
    assert "5 of 9 SM clocks are drawn" in part.intro


def test_an_axis_with_one_value_says_what_to_sweep(make_profile):
    part = drawn(make_profile(gpus=(1,)))
    assert "Only one GPU count was measured (1 GPU)" in group(part, "Against GPU count").intro
    assert "neither locked nor recorded" in group(part, "Against SM clock").intro
    assert group(part, "Against SM clock").panels == ()
    assert len(group(part, "Against batch size").panels) == 4


def test_unknown_power_is_words_and_step_time_is_drawn(make_profile):
    profile = make_profile()
    rows = [{**row, "power_w": None} for row in profile.rows()]
    part = drawn(Profile.from_rows(rows, profile.metadata))
    shown = {p.title: p for p in group(part, "Against batch size").panels}
    assert shown["Power of one GPU"].svg == ""
    assert "unknown" in shown["Power of one GPU"].description
    assert shown["Step time"].svg.count("mark-ok") == 2
    assert "Power is unknown in all 4 finished trials." in part.notes


def test_throttled_and_failed_trials_are_told_by_shape(make_profile):
    profile = make_profile(gpus=(1,), batches=(8, 16), clocks=(705.0, 1000.0, 1410.0))
    profile = changed(profile, 2, limited_by="power", achieved_clock_mhz=1300.0)
    profile = changed(profile, 3, status="oom", step_time_s=None, power_w=None, error="out of memory")
    part = drawn(profile)
    against_clock = group(part, "Against SM clock")
    svg = against_clock.panels[0].svg
    for mark in ("mark-throttled", "mark-requested", "mark-failed"):
        assert svg.count(mark) == 1
    assert {"throttled", "failed", "requested"} <= {sign for sign, _ in against_clock.key}
    assert dict(part.facts)["Trials"] == "6, 1 failed"
    assert "1 of 5 trials did not hold the clock asked for (limit: power)." in part.notes


def test_spread_is_drawn_where_it_is_known(make_profile):
    profile = changed(make_profile(gpus=(1,)), 0, step_time_std_s=0.001)
    svg = group(drawn(profile), "Against batch size").panels[0].svg
    assert svg.count("mark-spread") == 1


def test_more_nodes_than_needed_are_marked(make_profile):
    profile = make_profile(gpus=(1, 2, 4), batches=(8,))
    spread = {**profile.rows()[2], "n_nodes": 2, "trial_id": "x"}
    profile = Profile.from_rows([*profile.rows(), spread], profile.metadata)
    against_gpus = group(drawn(profile), "Against GPU count")
    assert against_gpus.panels[0].svg.count("mark-wider") == 1
    assert "wider" in {sign for sign, _ in against_gpus.key}


def test_an_empty_profile_and_one_where_all_failed_are_words(make_profile):
    metadata = make_profile().metadata
    empty = drawn(Profile.from_rows([], metadata))
    assert empty.notes == ("The profile holds no trials.",)
    row = {**make_profile().rows()[0], "status": "failed", "step_time_s": None}
    failed = drawn(Profile.from_rows([row], metadata))
    assert "No trial ended well" in group(failed, "Against batch size").intro


def test_a_single_trial_tells_its_numbers_without_a_picture(make_profile):
    """An imported log is one trial: nothing can be drawn, and nothing has to be unfolded to read it."""
    facts = dict(drawn(make_profile(gpus=(2,), batches=(16,), clocks=(1410.0,), source="imported")).facts)
    assert facts["Trials"] == "1"
    assert (facts["Step time"], facts["Power of one GPU"], facts["Throughput"]) == ("26.0 ms", "116.0 W", "1231 /s")
    assert "Step time" not in dict(drawn(make_profile()).facts)
    untimed = changed(make_profile(gpus=(2,), batches=(16,)), 0, step_time_s=None)
    assert dict(drawn(untimed).facts)["Trials"] == "1, 1 without a step time"


def test_unlocked_lines_have_a_name_that_fits(make_profile):
    part = drawn(make_profile(batches=(8, 16), gpus=(1,)))
    assert "unlocked" in group(part, "Against batch size").panels[0].svg


def test_every_trial_stands_in_the_last_table(make_profile):
    part = drawn(make_profile(gpus=(1, 2, 4), batches=(8, 16)))
    assert len(part.groups[-1].tables[0].rows) == 6


def test_a_power_limit_is_an_axis_only_where_it_varies(make_profile):
    profile = make_profile(gpus=(1,))
    assert [g.title for g in drawn(profile).groups][:3] == [
        "Against SM clock", "Against batch size", "Against GPU count",
    ]  # fmt: skip
    rows = [{**row, "power_limit_w": limit} for limit in (100.0, 200.0) for row in profile.rows()]
    limited = Profile.from_rows(rows, profile.metadata)
    assert "Against power limit" in [g.title for g in drawn(limited).groups]
    by_batch = cut(rows_of(limited), "batch")
    assert by_batch.line_axis == "limit"
    assert [(item, len(trials)) for item, trials in by_batch.lines] == [(100.0, 2), (200.0, 2)]
    by_limit = cut(rows_of(limited), "limit")
    assert [item for item, _ in by_limit.lines] == [8, 16]


def test_only_the_gpu_cut_mixes_placements(make_profile):
    profile = make_profile(gpus=(2,), batches=(8, 16))
    spread = [{**row, "n_nodes": 2} for row in profile.rows()]
    mixed = Profile.from_rows([*profile.rows(), *spread], profile.metadata)
    ((_, trials),) = cut(rows_of(mixed), "batch").lines
    assert [row["n_nodes"] for row in trials] == [1, 1]
