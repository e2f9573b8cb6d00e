"""`show` and `check` speak about every artifact, in 80 columns, and in JSON."""

from __future__ import annotations

import json
import shlex

import pytest
from typer.testing import CliRunner

from pfprofile.cli import app
from pfprofile.profile import Profile, read_profile, write_profile


@pytest.fixture
def schedule(cli, tmp_path):
    done = cli(
        "plan", "--budget", "5kWh", "--jobs", _jobs(tmp_path), "--cluster", _cluster(tmp_path), "--format", "json"
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def _jobs(folder):
    path = folder / "jobs.toml"
    path.write_text('[[job]]\nname = "a"\nmodel = "resnet50"\nepochs = 1\nglobal_batch = 256\n')
    return path


def _cluster(folder):
    path = folder / "cluster.toml"
    path.write_text('[[nodes]]\nname = "n"\ngpu = "a100-sxm4"\ncount = 1\ngpus_per_node = 8\nnode_power_w = 500\n')
    return path


def test_schedule_shows_again_what_plan_showed(cli, schedule):
    table = cli("show", "schedule.json")
    assert "average JCT" in table.stdout
    assert max(map(len, table.stdout.splitlines())) <= 80
    assert json.loads(cli("show", "schedule.json", "--format", "json").stdout) == schedule
    assert cli("show", "schedule.json", "--format", "csv").stdout.startswith("job,")


def test_model_shows_its_parameters(cli):
    assert "phi_knee" in cli("show", _shipped_model()).stdout
    (report,) = json.loads(cli("show", _shipped_model(), "--format", "json").stdout)
    assert report["workload"] == "resnet50"
    assert cli("show", _shipped_model(), "--format", "csv").stdout.startswith("model_path,")


def _shipped_model() -> str:
    from pfprofile.profile.places import shipped

    return str(shipped(".json")["a100-sxm4/resnet50"])


def test_check_names_the_next_command(cli, tmp_path, make_profile):
    write_profile(make_profile(gpus=(1,)), tmp_path / "p.parquet")
    done = cli("check", "p.parquet", "--format", "json")
    assert done.returncode == 0
    commands = [row["next_command"] for row in json.loads(done.stdout)]
    assert any("--gpus 1,2,4" in c for c in commands)
    assert max(map(len, cli("check", "p.parquet").stdout.splitlines())) <= 80


def test_the_command_that_splits_a_profile_runs(tmp_path, make_profile, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rows = make_profile(clocks=(810.0, 1410.0)).rows()
    for row in rows[:3]:
        row["device_name"] = "NVIDIA Other Toy"
    write_profile(Profile.from_rows(rows, make_profile().metadata), tmp_path / "mixed.parquet")
    found = json.loads(CliRunner().invoke(app, ["check", "mixed.parquet", "--format", "json"]).stdout)
    command = next(row["next_command"] for row in found if "2 values of device_name" in row["what"])
    words = shlex.split(command)
    assert words[:1] == ["pfprofile"]
    assert CliRunner().invoke(app, [*words[1:], "-o", "part.parquet"]).exit_code == 0
    assert read_profile(tmp_path / "part.parquet").unique("device_name") == ["NVIDIA Other Toy"]


def test_check_of_a_sound_schedule_and_of_tampered_ones(cli, tmp_path, schedule):
    def wheres(body) -> list[str]:
        (tmp_path / "x.json").write_text(json.dumps(body))
        return [row["where"] for row in json.loads(cli("check", "x.json", "--format", "json").stdout)]

    assert wheres(schedule) == ["inputs"]  # synthetic, and said
    cheaper = {**schedule, "totals": {**schedule["totals"], "energy_j": schedule["totals"]["energy_j"] / 2}}
    assert "totals" in wheres(cheaper)
    over = {**schedule, "budget": {**schedule["budget"], "used_fraction": 1.2}}
    assert "budget" in wheres(over)
    twice = {**schedule, "segments": [*schedule["segments"], {**schedule["segments"][0], "job": "b", "energy_j": 0.0}]}
    assert "segments" in wheres(twice)


def test_a_comparison_of_the_bare_contract_is_shown_as_compare_shows_it(tmp_path):
    run = {"trace": "toy", "policy": "fifo", "clock_rule": "max", "knob": None, "seed": 0, "jobs": 3,
           "avg_jct_s": 7200.0, "p99_jct_s": 9000.0, "energy_j": 3.6e7, "utilisation": 0.5, "rescales": 0}  # fmt: skip
    body = {"runs": [run, {**run, "policy": "pfprofile", "clock_rule": None, "knob": 0.1, "avg_jct_s": 3600.0},
                     {**run, "policy": "lost", "energy_j": None}],
            "equal_energy": [{"baseline": "fifo", "policy": "pfprofile", "energy_j": 3.6e7, "jct_ratio": 2.0,
                              "clamped": False}]}  # fmt: skip
    path = tmp_path / "c.json"
    path.write_text(json.dumps(body))
    table = CliRunner().invoke(app, ["show", str(path)], env={"COLUMNS": "80"})
    assert table.exit_code == 0, table.output
    assert "toy: means over seeds" in table.stdout
    assert "2.00" in table.stdout
    assert "lost" not in table.stdout
    assert max(map(len, table.stdout.splitlines())) <= 80
    assert json.loads(CliRunner().invoke(app, ["show", str(path), "--format", "json"]).stdout) == body
    assert CliRunner().invoke(app, ["show", str(path), "--format", "csv"]).stdout.startswith("trace,policy,")


def test_unknown_files_are_named(cli, tmp_path):
    (tmp_path / "x.json").write_text('{"a": 1}')
    for command in ("show", "check"):
        done = cli(command, "x.json")
        assert done.returncode == 3
        assert "none of pfprofile's artifacts" in done.stderr


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ("epochs = 1e300", "key epochs"),
        ("epochs = 1\nmin_gpus = 99999999999999999999", "key min_gpus"),
        ('epochs = 1\nsubmit = "1e300"', "key submit"),
    ],
)
def test_numbers_beyond_any_job_are_refused_in_one_line(cli, tmp_path, change, words):
    (tmp_path / "jobs.toml").write_text(f'[[job]]\nname = "a"\nmodel = "resnet50"\nglobal_batch = 256\n{change}\n')
    done = cli("plan", "--jobs", "jobs.toml", "--budget", "6kWh")
    assert done.returncode == 3
    assert words in done.stderr
    assert "job 'a'" in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_an_unknown_model_names_the_job_with_and_without_a_cluster_file(cli, tmp_path):
    (tmp_path / "jobs.toml").write_text('[[job]]\nname = "a"\nmodel = "resnet5"\nglobal_batch = 256\nepochs = 1\n')
    for more in ((), ("--cluster", _cluster(tmp_path))):
        done = cli("plan", "--jobs", "jobs.toml", "--budget", "6kWh", *more)
        assert done.returncode == 3
        assert "jobs.toml: job 'a': key model" in done.stderr
        assert "did you mean" in done.stderr


def test_profile_and_model_taken_for_each_other_are_told_apart(cli, tmp_path, make_profile):
    write_profile(make_profile(), tmp_path / "p.parquet")
    done = cli("predict", "p.parquet")
    assert (done.returncode, "is it a profile? fit it first" in done.stderr) == (3, True)
    done = cli("fit", _shipped_model())
    assert (done.returncode, "a model or a schedule" in done.stderr) == (3, True)


def test_an_empty_list_is_not_no_list(cli):
    assert cli("predict", "a100-sxm4/resnet50", "--batch-sizes", "").returncode == 2
