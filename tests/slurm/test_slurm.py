"""The Slurm export against a real Slurm: accepted, run in the planned order, clocks reset when cancelled or killed."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest
from typer.testing import CliRunner

from pfprofile.cli import app

pytestmark = pytest.mark.xdist_group("live")
HERE = Path(__file__).parent
NEEDED = ("unshare", "slurmctld", "slurmd", "sbatch", "munged")

CLUSTER = "".join(
    f'[[nodes]]\nname = "{name}"\ngpu = "a100-sxm4"\ncount = 1\ngpus_per_node = 8\n' for name in ("n1", "n2")
)
#: two nodes wide, so that they must follow each other; then one node each, side by side
JOBS = (("wide", 16, 16), ("second wide", 16, 16), ("left", 8, 8), ("right; $(touch hurt)", 8, 8), ("small", 1, 2))
NOTE = (
    "echo begun $PFPROFILE_JOB $(date +%s%N) $SLURM_NODEID {n_gpus} {local_batch} {steps} >> {{folder}}/events.txt; "
    "sleep {{nap}}; echo ended $PFPROFILE_JOB $(date +%s%N) >> {{folder}}/events.txt"
)


def job(name, low, high, folder, nap, steps=40):
    command = NOTE.replace("{{folder}}", str(folder)).replace("{{nap}}", str(nap))
    return "".join(
        f"{key} = {json.dumps(value)}\n" if key != "[[job]]" else "[[job]]\n"
        for key, value in {
            "[[job]]": None, "name": name, "model": "a100-sxm4/resnet50", "steps": steps, "global_batch": 512,
            "min_gpus": low, "max_gpus": high, "command": command, "partition": "main",
        }.items()
    )  # fmt: skip


def plan(folder, name, text):
    (folder / f"{name}.toml").write_text(text)
    done = CliRunner().invoke(
        app,
        ["plan", "--jobs", str(folder / f"{name}.toml"), "--cluster", str(folder / "cluster.toml"), "-o",
         str(folder / f"{name}.json"), "--export", f"slurm:{folder / name},gpu=a100"],
    )  # fmt: skip
    assert done.exit_code == 0, done.output
    return json.loads((folder / name / "manifest.json").read_text())["stretches"]


@pytest.fixture(scope="module")
def ran(tmp_path_factory):
    missing = [name for name in NEEDED if shutil.which(name, path="/usr/sbin:/usr/bin:/sbin:/bin") is None]
    if missing or os.geteuid() != 0:
        pytest.skip(f"a Slurm of our own needs root and {', '.join(missing) or 'nothing else'}")
    if subprocess.run(["unshare", "-m", "-p", "-f", "--mount-proc", "true"], check=False).returncode:
        pytest.skip("namespaces are not allowed here")
    folder = tmp_path_factory.mktemp("slurm")
    (folder / "cluster.toml").write_text(CLUSTER)
    (folder / "bin").mkdir()
    fake = folder / "bin" / "nvidia-smi"
    fake.write_text(f'#!/bin/bash\necho "${{SLURM_JOB_NAME:-epilog}} $*" >> {folder}/nvidia-smi.txt\n')
    fake.chmod(0o755)
    (folder / "nvidia-smi.txt").touch()
    zoo = '[[job]]\nname = "zoo"\nmodel = "a100-sxm4/resnet50"\nsteps = 40\nmax_gpus = 16\n'
    plan(folder, "plan", "".join(job(*j, folder, 0) for j in JOBS) + zoo)
    stretches = plan(folder, "run", "".join(job(*j, folder, 0.2) for j in JOBS))
    plan(folder, "long", job("victim", 2, 2, folder, 600, 10**7))
    # Slurm gives an epilog no PATH to speak of.
    (folder / "site-epilog.sh").write_text(f"#!/bin/bash\nPATH=$PATH:{folder}/bin exec {folder}/run/epilog.sh\n")
    done = subprocess.run(
        ["unshare", "-m", "-p", "-f", "--kill-child", "--mount-proc", "bash", HERE / "cluster.sh", HERE / "driver.sh",
         folder],
        capture_output=True, text=True, check=False, timeout=170,
    )  # fmt: skip
    (folder / "cluster.log").write_text(done.stdout + done.stderr)
    return folder, stretches


def test_every_script_is_accepted(ran):
    folder, _ = ran
    codes = dict(line.split() for line in (folder / "accepted.txt").read_text().splitlines())
    assert len(codes) == len(list((folder / "plan").glob("*.sbatch"))) >= 6
    assert set(codes.values()) == {"0"}, (folder / "accepted.log").read_text()


def test_they_run_in_the_planned_order_with_their_numbers(ran):
    folder, stretches = ran
    assert (folder / "finished.txt").exists(), (folder / "cluster.log").read_text()
    submitted = (folder / "submitted.txt").read_text().splitlines()
    assert [line.split()[0] for line in submitted] == [s["job_name"] for s in stretches]
    logs = "".join(path.read_text() for path in (folder / "run" / "logs").glob("*.log"))
    assert "unlocked" not in logs and "error" not in logs.lower(), logs
    began, ended = {}, {}
    for line in (folder / "nvidia-smi-run.txt").read_text().splitlines():
        name, _, words = line.partition(" ")
        began.setdefault(name, []).append(words)
    for s in stretches:
        n_gpus = sum(map(len, s["gpus"].values()))
        clock = f"{s['clocks_mhz'][0]['sm_clock_mhz']:g}"
        locks = [w for w in began[s["job_name"]] if f"-lgc {clock},{clock}" in w]
        resets = [w for w in began[s["job_name"]] if w.endswith("-rgc")]
        assert len(locks) == len(resets) == n_gpus
    times = (folder / "run-events.txt").read_text().splitlines()
    for line in times:
        kind, name, rest = line.split(" ", 1)[0], *_named(line)
        (began if kind == "begun" else ended).setdefault(name, []).append(int(rest.split()[0]))
    by_script = {s["job_name"]: s for s in stretches}
    for s in stretches:
        assert len(ended[s["job"]]) == len(s["gpus"])
        for before in s["after"]:
            assert min(began[s["job"]]) >= max(ended[by_script[before]["job"]])
    assert not list(folder.rglob("hurt"))


def _named(line):
    words = line.split(" ", 1)[1]
    name = next(j[0] for j in JOBS if words.startswith(j[0] + " "))
    return name, words[len(name) + 1 :]


@pytest.mark.parametrize(("how", "who"), [("cancel", "001-victim-s1"), ("kill", "epilog")])
def test_no_clock_outlives_its_job(ran, how, who):
    """Cancelled: the script's own trap resets. Killed at once: the site's epilog does."""
    folder, _ = ran
    lines = (folder / f"nvidia-smi-{how}.txt").read_text().splitlines()
    locked = {line.split()[2] for line in lines if "-lgc" in line}
    assert len(locked) == 2
    assert {line.split()[2] for line in lines if line.startswith(f"{who} ") and line.endswith("-rgc")} >= locked
