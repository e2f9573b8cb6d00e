"""The pages that the code says are up to date, and the examples of the help texts run."""

from __future__ import annotations

import importlib.util
import re
import shlex
import shutil
from importlib import import_module
from pathlib import Path

import pytest
from typer.testing import CliRunner

from pfprofile.cli import app
from pfprofile.cli._app import COMMANDS

REPO = Path(__file__).resolve().parents[2]
FIXTURES = REPO / "tests" / "fixtures"


def _make():
    spec = importlib.util.spec_from_file_location("docs_make", REPO / "docs" / "make.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


MAKE = _make()


@pytest.mark.parametrize("name", ["cli.md", "formats.md"])
def test_the_page_is_what_the_code_says(name):
    assert (REPO / "docs" / name).read_text(encoding="utf-8") == MAKE.pages()[name], "run make docs"


def test_every_flag_that_help_shows_is_on_the_page():
    page = (REPO / "docs" / "cli.md").read_text(encoding="utf-8")
    for name in COMMANDS:
        section = page.split(f"\n## {name}\n")[1].split("\n## ")[0]
        shown = CliRunner().invoke(app, [name, "--help"], env={"COLUMNS": "200"}).output
        flags = set(re.findall(r"^\W*?(--[a-z-]+)", shown, re.MULTILINE)) - {"--help"}
        assert flags
        assert all(f"`{flag}`" in section for flag in flags), name


def _module(name):
    return f"pfprofile.cli.{name}_cmd"


@pytest.fixture(scope="module")
def workshop(tmp_path_factory):
    """A folder that holds what the examples name."""
    folder = tmp_path_factory.mktemp("examples")
    shutil.copytree(REPO / "profiles", folder / "profiles")  # examples write there
    shipped = REPO / "profiles" / "a100-sxm4"
    for name in ("jobs.toml", "cluster.toml"):
        shutil.copy(REPO / "examples" / name, folder)
    shutil.copy(REPO / "examples" / "trace.csv", folder / "cluster03.csv")
    shutil.copy(FIXTURES / "imports" / "nvidia-smi.csv", folder / "gpu.csv")
    (folder / "runs.csv").write_text("time,energy,local_batch\n0.1,25,32\n0.2,52,64\n")
    for name in ("monday", "tuesday"):
        shutil.copy(shipped / "resnet50.parquet", folder / f"{name}.parquet")
    return folder


EXAMPLES = [(name, line) for name in COMMANDS for line in MAKE._examples(import_module(_module(name)).EPILOG)]


@pytest.mark.parametrize(("name", "line"), EXAMPLES, ids=[name for name, _ in EXAMPLES])
def test_the_example_of_the_help_runs(name, line, workshop, monkeypatch):
    if name == "sweep":  # it trains for a while: the README's run of it counts
        assert f"$ {line}\n" in (REPO / "README.md").read_text(encoding="utf-8")
        return
    monkeypatch.chdir(workshop)
    if name == "report":
        CliRunner().invoke(app, ["plan", "--jobs", "jobs.toml", "--cluster", "cluster.toml", "--models", "models"])
    done = CliRunner().invoke(app, shlex.split(line)[1:])
    assert done.exit_code == 0, done.output
