"""Replay answers exactly what a recording holds, keeps what it says of itself, and names what it lacks."""

from pathlib import Path

import pytest

from pfprofile.errors import InputError, UsageError
from pfprofile.profile import read_profile
from pfprofile.sweep import SweepRequest, sweep
from pfprofile.sweep.request import Reporter

RECORDING = Path(__file__).parent.parent / "fixtures" / "gpu_small.parquet"


@pytest.fixture
def recorded():
    return read_profile(RECORDING)


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def replay(**changes):
    given = {"workload": "resnet50", "replay": str(RECORDING), "output": Path("out.parquet"), **changes}
    return sweep(SweepRequest(**given))


def test_everything_is_answered_exactly(recorded):
    outcome = replay()
    written = read_profile(outcome.path)
    assert written.table.equals(recorded.table)
    assert outcome.new == recorded.n_rows


def test_what_the_recording_says_of_itself_is_kept(recorded):
    metadata = read_profile(replay().path).metadata
    assert metadata.source == "synthetic"
    assert metadata.replayed_from == {"name": "gpu_small.parquet", "digest": recorded.digest()}
    for key in ("gpu_name", "supported_clocks_mhz", "gpus_per_node", "workload", "notes", "power_limit_w"):
        assert getattr(metadata, key) == getattr(recorded.metadata, key)
    assert metadata.sweep["finished"] is True


def test_a_request_is_a_filter(recorded):
    outcome = replay(gpus=(1, 2), batch_sizes=(16,), freqs="1372,600")
    rows = outcome.profile.rows()
    assert rows == [
        r for r in recorded.rows()
        if r["n_gpus"] in (1, 2) and r["local_batch"] == 16 and r["requested_clock_mhz"] in (1372.0, 600.0)
    ]  # fmt: skip
    assert len(rows) == 8


def test_clocks_match_with_tolerance():
    rows = replay(gpus=(1,), batch_sizes=(8,), freqs="1372.5MHz,1.0GHz").profile.rows()
    assert {r["requested_clock_mhz"] for r in rows} == {1372.0, 1005.0}


def test_auto_picks_a_spread_of_recorded_clocks():
    clocks = {r["requested_clock_mhz"] for r in replay(freqs="auto").profile.rows()}
    assert {600.0, 1380.0} <= clocks
    assert 3 <= len(clocks) <= 6


def test_default_is_the_recorded_default_clock():
    assert {r["requested_clock_mhz"] for r in replay(freqs="default").profile.rows()} == {1380.0}


def test_a_range_takes_recorded_clocks():
    rows = replay(batch_sizes=(8,), freqs="600:1020:200").profile.rows()
    assert {r["requested_clock_mhz"] for r in rows} == {600.0, 810.0, 1005.0}


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"gpus": (1, 3)}, "lacks 1 of the points asked for: 3 GPU"),
        ({"gpus": (2,), "batch_sizes": (512,)}, "2 GPU batch 512"),
        ({"freqs": "700"}, "@ 700 MHz"),
        ({"accum_steps": (4,)}, "4 passes"),
        ({"gpus": (1,), "batch_sizes": (512,), "freqs": "600"}, "1 GPU batch 512 @ 600 MHz"),
        ({"repeats": 3}, "fewer than 3 trials"),
        ({"workload": "resnet18"}, "a recording of resnet50, not of resnet18"),
        ({"precision": "bf16"}, "recorded in fp32, not in bf16"),
        ({"replay": "a100-sxm4/resnot"}, "neither a profile file nor a shipped profile"),
    ],
)
def test_what_is_lacking_is_named_and_nothing_written(changes, words):
    with pytest.raises(InputError) as caught:
        replay(**changes)
    assert words in str(caught.value)
    assert not Path("out.parquet").exists()


def test_fewer_repeats():
    assert len(replay(gpus=(1,), batch_sizes=(8,), freqs="600", repeats=1).profile.rows()) == 1


def test_max_points_keeps_the_corners():
    rows = replay(batch_sizes=(8, 16, 32), repeats=1, max_points=8).profile.rows()
    corners = {(r["n_gpus"], r["local_batch"], r["requested_clock_mhz"]) for r in rows}
    assert corners == {(n, b, c) for n in (1, 4) for b in (8, 32) for c in (600.0, 1380.0)}


@pytest.mark.parametrize("changes", [{"steps": 3}, {"settings": {"a": "1"}}, {"retry_failed": True}])
def test_flags_that_mean_nothing_are_refused(changes):
    with pytest.raises(UsageError, match="means nothing with --replay"):
        replay(**changes)


def test_the_same_line_again_answers_nothing_twice():
    replay(gpus=(1,))
    again = replay(gpus=(1,))
    assert again.new == 0
    wider = replay(gpus=(1, 2))
    assert wider.new == 54
    assert len({r["trial_id"] for r in wider.profile.rows()}) == wider.profile.n_rows


def test_another_recording_in_the_output_is_refused(recorded):
    replay(gpus=(1,))
    part = read_profile(Path("out.parquet"))
    assert part.n_rows < recorded.n_rows
    with pytest.raises(InputError, match="holds another sweep"):
        replay(replay="out.parquet", output=_copy("out.parquet", "other.parquet"))


def _copy(source, target):
    replay(gpus=(2,), output=Path(target))
    return Path(target)


def test_a_foreign_output_is_kept_without_force():
    Path("out.parquet").write_text("mine")
    with pytest.raises(UsageError, match="--force"):
        replay()
    assert Path("out.parquet").read_text() == "mine"
    assert replay(force=True).new > 0


def test_the_default_output_is_replaced():
    first = replay(output=None, gpus=(1,))
    assert first.path == Path("profiles/v100-sxm2-16gb/resnet50.parquet")
    second = replay(output=None, gpus=(2,))
    assert {r["n_gpus"] for r in second.profile.rows()} == {2}
    assert list(first.path.parent.iterdir()) == [first.path]


def test_the_recording_itself_is_never_overwritten():
    first = replay(output=None)
    before = first.path.read_bytes()
    said = []
    outcome = sweep(SweepRequest(workload="resnet50", replay=str(first.path), gpus=(1,)), Reporter(notice=said.append))
    assert first.path.read_bytes() == before
    assert outcome.new == 0
    assert "is the recording itself" in said[0]


def test_a_dry_run_plans_and_writes_nothing():
    outcome = replay(dry_run=True, gpus=(1,), batch_sizes=(8,))
    assert len(outcome.planned) == 18
    assert not Path("out.parquet").exists()
