"""Replanning from what Slurm says of an exported schedule."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from pfprofile.cli import app
from pfprofile.errors import InputError
from pfprofile.plan.actual import LONG, STATES, _seconds, looks_like_slurm, slurm_state

ROOT = Path(__file__).parents[2]
ASK = ["plan", "--jobs", str(ROOT / "examples/jobs.toml"), "--cluster", str(ROOT / "examples/cluster.toml"), "--force"]


def run(*args):
    return CliRunner().invoke(app, [*ASK, *map(str, args)])


@pytest.fixture(scope="module")
def exported(tmp_path_factory):
    folder = tmp_path_factory.mktemp("slurm")
    assert run("-o", folder / "s.json", "--export", f"slurm:{folder / 'jobs'}").exit_code == 0
    manifest = folder / "jobs" / "manifest.json"
    return folder, manifest, json.loads(manifest.read_text())["stretches"]


def test_what_slurm_says_becomes_a_state(exported, tmp_path) -> None:
    _, manifest, (nightly, first, second, paper) = exported
    text = (
        "JobID|JobName|State|ElapsedRaw\n"
        f"7|{nightly['job_name']}|RUNNING|300\n7.batch|batch|RUNNING|300\n"
        f"8|{first['job_name']}|COMPLETED|470\n9|{second['job_name']}|FAILED|12\n10|other|RUNNING|9\n"
    )
    state, rows = slurm_state(text, tmp_path / "x", manifest, 480.0)
    share = 300 / (nightly["end_s"] - nightly["start_s"])
    assert state["finished"] == [first["job"]]
    (row,) = state["running"]
    assert row["job"] == "nightly" and row["done_steps"] == pytest.approx(share * nightly["last_step"])
    assert row["gpus"] == [f"{n}:{i}" for n, indices in nightly["gpus"].items() for i in indices]
    failed_j = second["energy_j"] * 12 / (second["end_s"] - second["start_s"])
    assert state["spent"] == pytest.approx(first["energy_j"] + share * nightly["energy_j"] + failed_j)
    by_script = {row.script: row for row in rows}
    assert (by_script[nightly["job_name"]].state, by_script[nightly["job_name"]].done) == ("running", share)
    assert by_script[nightly["job_name"]].behind_s == pytest.approx(180.0)
    assert by_script[first["job_name"]].done == 1.0 and paper["job_name"] not in by_script


def test_a_plan_goes_on_from_sacct_and_squeue(exported, tmp_path) -> None:
    _, manifest, (nightly, first, _, _) = exported
    (tmp_path / "squeue.txt").write_text(
        f"NAME|STATE|TIME\n{nightly['job_name']}|RUNNING|8:00\n{first['job_name']}|COMPLETED|8:00\n"
    )
    flags = ["--running", tmp_path / "squeue.txt", "-o", tmp_path / "s.json", "--format", "json"]
    done = run(*flags, "--now", "8min", "--manifest", manifest)
    assert done.exit_code == 0, done.output
    body = json.loads(done.stdout)
    assert [job["name"] for job in body["jobs"]] == ["nightly", "sweep-b", "paper"]
    assert min(s["start_s"] for s in body["segments"]) >= 480.0
    (row,) = [line for line in done.stderr.splitlines() if nightly["job_name"] in line]
    assert "0 s to" in row and " running " in row and row.count("%") == 2
    table = done.stderr.partition("note: ")[0].splitlines()
    assert len(table) >= 4 and max(map(len, table)) <= 80
    missing = run(*flags)
    assert missing.exit_code == 2 and "needs --now TIME and --manifest FILE" in missing.output


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("JobName|State\nx|RUNNING\n", "no column elapsedraw"),
        ("JobName|State|Elapsed\nNAME|PUZZLED|1\n", "line 2: NAME: unknown state 'PUZZLED'"),
        ("JobName|State|Elapsed\nNAME|RUNNING|soon\n", "'soon' is no time"),
    ],
)
def test_what_cannot_be_read_is_named(exported, tmp_path, text, words) -> None:
    _, manifest, stretches = exported
    name = stretches[0]["job_name"]
    with pytest.raises(InputError) as error:
        slurm_state(text.replace("NAME", name), tmp_path / "x", manifest, 1.0)
    assert words.replace("NAME", name) in str(error.value)
    with pytest.raises(InputError, match="not a manifest"):
        slurm_state(text, tmp_path / "x", ROOT / "pyproject.toml", 1.0)


def test_every_state_of_slurm_is_known_long_and_short(exported, tmp_path) -> None:
    _, manifest, (nightly, *_) = exported
    assert len(STATES) == 24 == len(LONG)
    for state, (short, _) in STATES.items():
        for word in (state, short, f"{state} by 1000", f"{state}+"):
            text = f"NAME|ST|TIME\n{nightly['job_name']}|{word}|1:40\n"
            _, rows = slurm_state(text, tmp_path / "x", manifest, 10.0)
            assert rows[0].state == state.lower()


def test_what_has_not_begun_has_no_time(exported, tmp_path) -> None:
    _, manifest, (nightly, *_) = exported
    for time in ("", "INVALID", "UNLIMITED", "N/A"):
        text = f"NAME|ST|TIME\n{nightly['job_name']}|PD|{time}\n"
        state, rows = slurm_state(text, tmp_path / "x", manifest, 10.0)
        assert rows[0].done == 0.0 and state["running"] == []


def test_squeues_own_layout_is_refused_with_what_to_run(exported, tmp_path) -> None:
    _, manifest, _ = exported
    path = tmp_path / "now.txt"
    path.write_text("  JOBID PARTITION     NAME     USER ST       TIME  NODES NODELIST(REASON)\n 1 a b c R 1 1 n\n")
    done = run("--running", path, "--now", "8min", "--manifest", manifest, "-o", tmp_path / "s.json")
    assert done.exit_code == 3 and 'squeue -a -o "%j|%T|%M"' in done.output


def test_times_and_kinds_of_text() -> None:
    assert [_seconds(t, "") for t in ("90", "1:30", "01:01:30", "1-01:01:30")] == [90, 90, 3690, 90090]
    assert looks_like_slurm("JobID|JobName|State\n") and looks_like_slurm("NAME|ST|TIME\n")
    assert not looks_like_slurm('now = "2h"\n') and not looks_like_slurm('{"segments": []}')
