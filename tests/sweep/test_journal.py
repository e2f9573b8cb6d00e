"""Whatever a sweep finds at its output, nothing that was measured is lost, and what differs is said."""

from __future__ import annotations

from pathlib import Path

import pytest

from pfprofile.errors import OutputError, UsageError
from pfprofile.profile import Profile, ProfileMetadata, read_profile
from pfprofile.sweep.journal import open_journal, refuse_output

ROW = {"workload": "toy", "device_name": "NVIDIA Toy", "n_gpus": 1, "local_batch": 8, "step_time_s": 0.1,
       "status": "ok"}  # fmt: skip


def about(precision="fp32", kind="live", seed=0, steps=None):
    sweep = {"identity": {"kind": kind, "precision": precision}, "finished": False,
             "window": {"steps": steps, "window_s": 2.0}}  # fmt: skip
    return ProfileMetadata(source="measured", seed=seed, sweep=sweep)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "toy.parquet"


def measured(path, finished=True, explicit=False, fresh=False, **changes):
    journal = open_journal(path, about(**changes), explicit=explicit, fresh=fresh)
    journal.add({**ROW, "precision": changes.get("precision", "fp32")})
    journal.write(finished=finished)
    return journal


def precisions(folder):
    return {p.name: read_profile(p).unique("precision") for p in folder.iterdir()}


def test_a_third_sweep_keeps_the_unfinished_second_one(path):
    measured(path)
    measured(path, finished=False, precision="bf16")
    journal = measured(path, precision="fp8")
    assert precisions(path.parent) == {
        "toy.parquet": ["fp8"], "toy.parquet.1": ["bf16"], "toy.parquet.2": ["fp32"]
    }  # fmt: skip
    assert [p in " ".join(journal.notices) for p in ("toy.parquet.1", "toy.parquet.2")] == [True, True]


def test_fresh_gives_up_its_own_sweep_only(path):
    measured(path)
    measured(path, fresh=True)
    assert set(precisions(path.parent)) == {"toy.parquet"}
    measured(path, finished=False, precision="bf16")
    measured(path, fresh=True, finished=False, precision="bf16")
    assert precisions(path.parent) == {"toy.parquet": ["fp32"], ".toy.parquet.unfinished": ["bf16"]}
    measured(path, fresh=True, precision="fp8")
    assert precisions(path.parent) == {
        "toy.parquet": ["fp8"], "toy.parquet.1": ["bf16"], "toy.parquet.2": ["fp32"]
    }  # fmt: skip


def test_going_on_in_another_way_is_said(path):
    measured(path, steps=5)
    assert open_journal(path, about(steps=5), explicit=True).notices == []
    words = open_journal(path, about(steps=None, seed=3), explicit=True).notices
    assert words == [
        "the trials that are kept were measured over 5 steps, the new ones over at least 2 s",
        "the trials that are kept were measured with --seed 0, not 3",
    ]


def test_a_wrong_output_is_refused_before_anything_is_prepared(tmp_path, monkeypatch):
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(UsageError, match="not the profile of a sweep"):
        refuse_output(tmp_path / "notes.txt", force=False)
    refuse_output(tmp_path / "notes.txt", force=True)
    with pytest.raises(UsageError, match="is a folder"):
        refuse_output(tmp_path, force=True)
    monkeypatch.setattr("pfprofile.sweep.journal.os.access", lambda *_: False)
    with pytest.raises(OutputError, match="read-only"):
        refuse_output(tmp_path / "p.parquet", force=False)


def test_a_profile_of_another_origin_is_no_sweep_to_go_on_with(path):
    from pfprofile.profile import write_profile

    write_profile(Profile.from_rows([{**ROW, "trial_id": "t0"}], ProfileMetadata(source="imported")), path)
    with pytest.raises(UsageError, match="not the profile of a sweep"):
        open_journal(path, about(), explicit=True)
    assert Path(path).exists()
