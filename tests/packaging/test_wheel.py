"""The wheel, in an empty environment without torch and in an empty folder, runs the chain."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

REPO = Path(__file__).resolve().parents[2]
CHAIN = (
    ("sweep", "resnet50", "--freqs", "auto", "--replay", "a100-sxm4/resnet50"),
    ("fit",),
    ("plan", "--budget", "5kWh"),
)


def _run(*command: str | Path, cwd: Path, **env: str) -> subprocess.CompletedProcess[str]:
    clean = {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "PFPROFILE_"))}
    done = subprocess.run(
        list(map(str, command)), cwd=cwd, env={**clean, **env}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    return done


@pytest.fixture(scope="module")
def wheel(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("dist")
    _run(sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", folder, REPO, cwd=folder)
    return next(folder.glob("*.whl"))


def test_wheel_carries_zoo_profiles_models_and_typing_mark(wheel):
    names = zipfile.ZipFile(wheel).namelist()
    for wanted in (
        "models_zoo/resnet18.py", "models_zoo/resnet50.py", "pfprofile/py.typed",
        "pfprofile/_data/profiles/a100-sxm4/resnet50.parquet", "pfprofile/_data/profiles/a100-sxm4/resnet50.json",
    ):  # fmt: skip
        assert wanted in names
    assert not [n for n in names if n.startswith("tests/")]


@pytest.mark.fresh
def test_wheel_runs_the_chain_without_torch(wheel, tmp_path):
    venv, folder = tmp_path / "venv", tmp_path / "empty"
    folder.mkdir()
    _run(sys.executable, "-m", "venv", venv, cwd=tmp_path)
    _run(venv / "bin" / "pip", "install", "-q", "--no-compile", "-c", REPO / "constraints.txt", wheel, cwd=tmp_path)
    missing = subprocess.run([venv / "bin" / "python", "-c", "import torch"], capture_output=True, check=False)
    assert missing.returncode != 0
    for args in CHAIN:
        _run(venv / "bin" / "pfprofile", *args, cwd=folder)
    schedule = json.loads((folder / "schedule.json").read_text())
    assert 0 < schedule["totals"]["energy_j"] <= 5 * 3.6e6
    live = subprocess.run(
        [venv / "bin" / "pfprofile", "sweep", "resnet18", "--device", "cpu"],
        cwd=folder, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert live.returncode == 4
    assert "pfprofile[train]" in live.stderr
