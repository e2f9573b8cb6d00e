"""The frame of the command line: laziness, configuration, exit codes, one-line errors."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
from typer.testing import CliRunner

from pfprofile import errors
from pfprofile.cli import app
from pfprofile.cli._app import COMMANDS
from pfprofile.profile import write_profile

HEAVY = ("torch", "pandas", "numpy", "scipy", "sklearn", "pyarrow", "pydantic", "rich")


def test_help_loads_none_of_the_heavy_libraries():
    code = (
        "import sys\nfrom pfprofile.cli import app\n"
        "try:\n    app(['--help'])\nexcept SystemExit as e:\n    assert e.code == 0\n"
        f"print([m for m in {HEAVY[:-2]!r} if m in sys.modules], file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stderr.strip() == "[]"
    assert "plan" in done.stdout


@pytest.mark.parametrize("name", COMMANDS)
def test_each_command_shows_an_example(name):
    result = CliRunner().invoke(app, [name, "--help"])
    assert result.exit_code == 0
    assert "Example:" in result.output
    assert f"pfprofile {name}" in result.output


def test_version_and_no_arguments():
    assert CliRunner().invoke(app, ["--version"]).output.startswith("pfprofile 0.")
    assert CliRunner().invoke(app, []).exit_code == 2


@pytest.mark.parametrize(
    ("args", "code", "words"),
    [
        (["shwo", "x"], 2, "shwo"),
        (["show"], 2, "FILE"),
        (["show", "profiles", "--format", "xml"], 2, "xml"),
        (["show", "nowhere.parquet"], 3, "nowhere.parquet: no such file"),
        (["merge", "nowhere.parquet", "-o", "x.parquet"], 3, "no such file"),
        (["schema", "profil"], 2, "did you mean 'profile'"),
    ],
)
def test_errors_are_one_line_with_their_exit_code(cli, args, code, words):
    done = cli(*args)
    assert done.returncode == code
    assert done.stdout == ""
    assert len(done.stderr.strip().splitlines()) == 1
    assert words in done.stderr


def test_an_existing_output_is_refused_without_force(cli, tmp_path, make_profile):
    write_profile(make_profile(), tmp_path / "a.parquet")
    (tmp_path / "out.parquet").write_text("mine")
    done = cli("merge", "a.parquet", "-o", "out.parquet")
    assert (done.returncode, (tmp_path / "out.parquet").read_text()) == (2, "mine")
    assert cli("merge", "a.parquet", "-o", "out.parquet", "--force").returncode == 0


def test_json_on_stdout_parses_and_keeps_null(cli, tmp_path, make_profile):
    write_profile(make_profile(), tmp_path / "a.parquet")
    done = cli("show", "a.parquet", "--format", "json")
    rows = json.loads(done.stdout)
    assert len(rows) == 4
    assert rows[0]["energy_j"] is None


def test_csv_has_every_column(cli, tmp_path, make_profile):
    write_profile(make_profile(), tmp_path / "a.parquet")
    lines = cli("show", "a.parquet", "--format", "csv").stdout.splitlines()
    assert lines[0].startswith("trial_id,workload,device_name,n_gpus")
    assert len(lines) == 5


def test_tables_fit_80_columns(cli, tmp_path, make_profile):
    write_profile(make_profile(clocks=(1410.0,)), tmp_path / "a.parquet")
    assert max(map(len, cli("show", "a.parquet").stdout.splitlines())) <= 80


def test_flag_beats_environment_beats_file(cli, tmp_path, make_profile):
    write_profile(make_profile(), tmp_path / "a.parquet")
    (tmp_path / "pfprofile.toml").write_text('[show]\nformat = "json"\n')
    assert cli("show", "a.parquet").stdout.startswith("[")
    assert cli("show", "a.parquet", PFPROFILE_SHOW_FORMAT="csv").stdout.startswith("trial_id")
    assert "batch" in cli("show", "a.parquet", "--format", "table", PFPROFILE_SHOW_FORMAT="csv").stdout


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[shwo]\n", "unknown table [shwo]; did you mean 'show'"),
        ('[show]\nformt = "json"\n', "no key 'formt'; did you mean 'format'"),
        ("[show\n", "not valid TOML"),
        ("show = 1\n", "must be a table"),
    ],
)
def test_configuration_mistakes_are_named(cli, tmp_path, text, words):
    (tmp_path / "pfprofile.toml").write_text(text)
    done = cli("show", "profiles")
    assert done.returncode == 3
    assert words in done.stderr


def test_reader_that_closes_early_gets_no_traceback(tmp_path, make_profile):
    write_profile(make_profile(gpus=tuple(range(1, 400))), tmp_path / "a.parquet")
    for args in ("show a.parquet --format json", "show a.parquet --format csv", "show a.parquet", "--help"):
        command = f"set -o pipefail; {sys.executable} -m pfprofile {args} | head -1"
        done = subprocess.run(["bash", "-c", command], cwd=tmp_path, capture_output=True, text=True, check=False)
        assert (done.returncode, done.stdout.count("\n")) == (0, 1), args
        assert "Traceback" not in done.stderr
        assert "Broken" not in done.stderr


def test_tables_follow_columns(cli, tmp_path, make_profile):
    write_profile(make_profile(clocks=(1410.0,)), tmp_path / "a.parquet")
    assert max(map(len, cli("show", "a.parquet", COLUMNS="60").stdout.splitlines())) <= 60


def test_a_folder_is_no_output_even_with_force(cli, tmp_path, make_profile):
    write_profile(make_profile(), tmp_path / "a.parquet")
    done = cli("merge", "a.parquet", "-o", ".", "--force")
    assert done.returncode == 2
    assert "is a folder" in done.stderr


def test_import_writes_profiles_and_says_where(cli, tmp_path):
    (tmp_path / "runs.csv").write_text("net,t\na,0.5\nb,0.25\n")
    done = cli(
        "import", "table", "runs.csv", "--map", "step_time_s=t", "--map", "workload=net", "--set", "device_name=X 1"
    )
    assert done.returncode == 0
    assert (tmp_path / "profiles" / "x-1" / "a.parquet").exists()
    assert "profiles/x-1/b.parquet" in done.stderr
    refused = cli("import", "table", "runs.csv", "--map", "step_time_s=t", "--map", "workload=net", "-o", "one.parquet")
    assert refused.returncode == 2
    assert not (tmp_path / "one.parquet").exists()


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (errors.UsageError, 2),
        (errors.InputError, 3),
        (errors.HardwareError, 4),
        (errors.InfeasibleError, 5),
        (errors.QualityError, 6),
        (errors.PartialSweepError, 7),
        (errors.InterruptedSweepError, 130),
        (KeyboardInterrupt, 130),
    ],
)
def test_each_error_leaves_with_its_code(monkeypatch, error, code):
    def fail(*_: object) -> None:
        raise error("what is wrong", "what to do") if issubclass(error, errors.PfprofileError) else error

    monkeypatch.setattr("pfprofile.report.artifact.find_artifact", fail)
    result = CliRunner().invoke(app, ["show", "x"])
    assert result.exit_code == code
    if issubclass(error, errors.PfprofileError):
        assert result.stderr == "error: what is wrong (what to do)\n"


def test_a_defect_of_ours_keeps_its_traceback(monkeypatch):
    monkeypatch.setattr("pfprofile.report.artifact.find_artifact", lambda *_: 1 / 0)
    assert isinstance(CliRunner().invoke(app, ["show", "x"]).exception, ZeroDivisionError)
