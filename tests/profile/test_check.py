"""Each doubt is found, and names the command that helps; a clean profile has none."""

from __future__ import annotations

import pytest

from pfprofile.profile import Profile, ProfileMetadata
from pfprofile.profile.check import check_profile

CLOCKS = (200.0, 800.0, 1400.0)


def profile(change=lambda rows: rows, **metadata):
    rows = [
        {"workload": "toy", "device_name": "NVIDIA Toy", "n_gpus": n, "local_batch": b, "requested_clock_mhz": f,
         "achieved_clock_mhz": f, "limited_by": "none", "step_time_s": 0.01 * b / f * 1400, "step_time_std_s": 1e-5,
         "power_w": 100.0 + f / 20, "power_spread_w": 2.0, "power_limit_w": 300.0}
        for n in (1, 2, 4) for b in (8, 16) for f in CLOCKS
    ]  # fmt: skip
    changed = change(rows)
    rows = rows if changed is None else changed
    about = {"source": "measured", "supported_clocks_mhz": CLOCKS, **metadata}
    return Profile.from_rows(rows, ProfileMetadata(**about))


def every(**values):
    return lambda rows: [{**row, **values} for row in rows]


def first(**values):
    return lambda rows: rows[0].update(values)


def only(**wanted):
    return lambda rows: [row for row in rows if all(row[k] == v for k, v in wanted.items())]


def test_a_clean_profile_has_no_findings():
    assert check_profile(profile()) == []


@pytest.mark.parametrize(
    ("change", "metadata", "what", "command"),
    [
        (lambda rows: [], {}, "no rows", "pfprofile sweep"),
        (every(status="failed"), {}, "no trial ended well", "--retry-failed"),
        (first(status="timeout", error="hung"), {}, "1 of 18 trials failed", "--retry-failed"),
        (every(step_time_std_s=None), {}, "fewer than 3 trials", "--repeats 3"),
        (lambda rows: [*rows, {**rows[0], "step_time_s": rows[0]["step_time_s"] * 1.3}], {}, "step time differs",
         "--repeats"),
        (first(step_time_std_s=0.2), {}, "varies by more than 10% within", "--steps"),
        (first(power_spread_w=90.0), {}, "very different power", "doctor"),
        (first(limited_by="thermal"), {}, "throttled", "doctor"),
        (lambda rows: [{**r, **({"achieved_clock_mhz": 1100.0, "limited_by": "power"}
                                if r["requested_clock_mhz"] == 1400 else {})} for r in rows], {},
         "power limit kept the clock below", "--freqs 200,1100"),
        (first(achieved_clock_mhz=150.0), {}, "not reached, for no recorded reason", "doctor"),
        (lambda rows: [r for r in rows if r["requested_clock_mhz"] > 200], {}, "lowest clock (200 MHz) was not",
         "--freqs 200"),
        (lambda rows: [r for r in rows if r["requested_clock_mhz"] >= 800], {"supported_clocks_mhz": ()},
         "", ""),
        (only(requested_clock_mhz=1400.0), {}, "one clock only", "--freqs auto"),
        (only(n_gpus=2), {}, "one GPU count only (2)", "--gpus 2,4,8"),
        (only(local_batch=8), {}, "one batch only (8)", "--batch-sizes auto"),
        (every(power_w=None), {}, "no trial has power", "doctor"),
        (first(power_w=None), {}, "1 trials lack power", "doctor"),
        (first(power_w=400.0), {}, "power above the limit", "show"),
        (first(step_time_s=-1.0), {}, "not above zero", "show"),
        (first(requested_clock_mhz=777.0, achieved_clock_mhz=777.0), {}, "777 MHz is not a clock", "--freqs auto"),
        (first(workload="other"), {}, "2 values of workload", "--where workload="),
        (lambda rows: None, {"source": "synthetic"}, "synthetic", "sweep"),
        (only(local_batch=8), {"source": "imported"}, "one batch only (8)", "merge p.parquet ANOTHER-RUN.parquet"),
        (every(step_time_s=None), {"source": "imported"}, "no trial has a step time", "--steps COUNT -o p.parquet"),
    ],
)  # fmt: skip
def test_each_doubt_names_the_next_command(change, metadata, what, command):
    found = check_profile(profile(change, **metadata), "p.parquet")
    if not what:
        assert found == []
        return
    matching = [f for f in found if what in f.what]
    assert matching, found
    assert command in matching[0].next_command
    assert matching[0].where
    assert matching[0].next_command.startswith("pfprofile ")


def test_where_the_drivers_clocks_are_unknown_a_narrow_range_is_doubted():
    found = check_profile(profile(lambda rows: [r for r in rows if r["requested_clock_mhz"] >= 800] + [
        {**r, "requested_clock_mhz": 1000.0, "achieved_clock_mhz": 1000.0} for r in rows[:1]
    ], supported_clocks_mhz=()))  # fmt: skip
    assert found == []

    def lift(rows):
        return [{**r, "requested_clock_mhz": 1000.0 + r["requested_clock_mhz"] / 4, "achieved_clock_mhz": None}
                for r in rows]  # fmt: skip

    narrow = check_profile(profile(lift, supported_clocks_mhz=()))
    assert any("no clock below 60%" in f.what for f in narrow)


def test_the_next_command_is_the_line_that_made_the_profile(make_profile):
    profile = make_profile(gpus=(1,))
    argv = ("pfprofile", "sweep", "my/a.py:Ok", "--device", "cpu", "--set", "width=8", "--steps=3", "-o", "old.parquet")
    rows = [{**row, "status": "failed", "error": "hung"} if i == 0 else row for i, row in enumerate(profile.rows())]
    made = Profile.from_rows(rows, profile.metadata.with_(argv=argv, source="measured"))
    commands = {f.next_command for f in check_profile(made, "mine here.parquet")}
    careless = (*argv[:-2], "--fresh", "--force", "-oold.parquet")
    again = Profile.from_rows(rows, made.metadata.with_(argv=careless))
    assert {f.next_command for f in check_profile(again, "mine here.parquet")} == commands
    line = "pfprofile sweep my/a.py:Ok --device cpu --set width=8 --steps=3 --retry-failed -o 'mine here.parquet'"
    assert line in commands
    assert all("--device cpu" in c for c in commands if c.startswith("pfprofile sweep"))
