"""`schema` prints what the commands really print; `--version` and shell completion."""

from __future__ import annotations

import json
import tomllib
from importlib.metadata import version
from pathlib import Path

import jsonschema
import pytest
from typer.testing import CliRunner

from pfprofile.cli import app
from pfprofile.cli.import_cmd import FORMATS
from pfprofile.cli.schema_cmd import CONTRACTS
from pfprofile.profile import write_profile
from pfprofile.profile.importers import IMPORTERS

ROOT = Path(__file__).parents[2]


def run(*args, **env):
    return CliRunner().invoke(app, list(map(str, args)), env=env or None)


def printed(*args):
    done = run(*args)
    assert done.exit_code == 0, done.output
    return json.loads(done.stdout)


def names(contract, key="column"):
    return [row[key] for row in printed("schema", contract, "--format", "json")]


def fields(contract):
    return [line.split(",")[0] for line in run("schema", contract, "--format", "csv").stdout.splitlines()[1:]]


@pytest.mark.parametrize("name", CONTRACTS)
def test_every_contract_is_a_table_in_80_columns(name):
    done = run("schema", name, COLUMNS="80")
    assert done.exit_code == 0, done.output
    lines = done.stdout.splitlines()
    assert len(lines) > 4
    assert max(map(len, lines)) <= 80
    assert run("schema", name, "--format", "csv").stdout.count("\n") > 3


def test_predictions_and_points_are_what_predict_prints_and_reads(tmp_path):
    (tmp_path / "points.csv").write_text(",".join(names("points")) + "\n2,1,32,1,810\n")
    (row,) = printed("predict", "a100-sxm4/resnet50", "--points", tmp_path / "points.csv", "--format", "json")
    assert list(row) == names("predictions")
    kinds = {r["column"]: r["type"] for r in printed("schema", "predictions", "--format", "json")}
    assert {name: type(v).__name__ for name, v in row.items()} == kinds


def test_the_fit_report_is_what_fit_prints():
    (report,) = printed("show", "a100-sxm4/resnet50.json", "--format", "json")
    told = names("fit-report")
    assert list(report) == [name for name in told if "." not in name]
    for path in told:
        parts = path.split(".")
        found = report
        for part in parts[:-1]:
            found = next(iter(found.values())) if part == "*" else found[part]
        assert parts[-1] in found, path
    quality = {f"quality.{part}.{name}" for part in ("throughput", "power") for name in report["quality"][part]}
    assert quality <= set(told)
    assert {f"parameters.*.{k}" for k in next(iter(report["parameters"].values()))} <= set(told)


def test_findings_are_what_check_prints(tmp_path, make_profile):
    write_profile(make_profile(gpus=(1,)), tmp_path / "p.parquet")
    found = printed("check", tmp_path / "p.parquet", "--format", "json")
    assert found
    assert all(list(row) == names("findings") for row in found)


def valid(contract, body):
    jsonschema.Draft202012Validator(printed("schema", contract, "--format", "json")).validate(body)


def test_the_planners_schemas_hold_for_what_is_read_and_printed(tmp_path):
    files = {name: ROOT / "examples" / f"{name}.toml" for name in ("jobs", "cluster")}
    for name, path in files.items():
        body = tomllib.loads(path.read_text())
        valid(name, body)
        entries = next(iter(body.values()))
        with pytest.raises(jsonschema.ValidationError):
            valid(name, {**body, next(iter(body)): [{**entries[0], "gpuss": 1}]})
    jobs = tomllib.loads(files["jobs"].read_text())["job"]
    for wrong in ({"steps": 5}, {"epochs": -1}, {"submit": -1}):
        with pytest.raises(jsonschema.ValidationError):
            valid("jobs", {"job": [{**jobs[0], **wrong}]})
    out = tmp_path / "s.json"
    schedule = printed("plan", "--jobs", files["jobs"], "--cluster", files["cluster"], "-o", out, "--format", "json")
    valid("schedule", schedule)
    assert set(printed("schema", "schedule", "--format", "json")["properties"]) == set(schedule)
    for part in ("segments", "jobs", "totals", "budget", "bound"):
        rows = schedule[part] if isinstance(schedule[part], list) else [schedule[part]]
        told = {f.partition(".")[2] for f in fields("schedule") if f.startswith(part + ".")}
        assert all(set(row) == told for row in rows), part
    valid("state", {"now": "2h", "spent": 3, "running": [{"job": "paper", "done_fraction": 0.4}]})
    with pytest.raises(jsonschema.ValidationError):
        valid("state", {"now": "2h", "running": [{"done_fraction": 1.4, "job": "paper"}]})


def test_the_version_tells_the_environment():
    lines = run("--version").stdout.splitlines()
    assert lines[0] == f"pfprofile {version('pfprofile')}"
    assert lines[1].startswith("Python 3.")
    assert f"numpy {version('numpy')}" in lines
    assert any(line.startswith("torch ") for line in lines)


def test_completion_scripts_are_printed_and_installed(cli, tmp_path):
    for shell, words in (
        ("bash", "complete -o default -F"),
        ("zsh", "#compdef pfprofile"),
        ("fish", "complete --command"),
    ):
        done = cli("--show-completion", shell, _TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION="1")
        assert done.returncode == 0, done.stderr
        assert words in done.stdout
    done = cli("--install-completion", "bash", HOME=str(tmp_path), _TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION="1")
    assert done.returncode == 0, done.stderr
    assert "pfprofile" in (tmp_path / ".bash_completions" / "pfprofile.sh").read_text()


@pytest.mark.parametrize(
    ("typed", "offered"),
    [
        ("import dcg", {"dcgmi-dmon", "dcgm-exporter"}),
        ("import nvidia-smi --int", {"--interval"}),
    ],
)
def test_the_shell_is_offered_commands_formats_and_flags(cli, typed, offered):
    words = f"pfprofile {typed}"
    done = cli(_PFPROFILE_COMPLETE="complete_bash", COMP_WORDS=words, COMP_CWORD=str(len(typed.split())))
    assert set(done.stdout.split()) >= offered
    assert all(word.startswith(typed.split()[-1]) for word in done.stdout.split())


def test_formats_of_the_help_are_those_of_the_registry():
    assert list(IMPORTERS) == list(FORMATS)
