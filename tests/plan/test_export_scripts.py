"""What the exported scripts do to clocks and training, run for real with an nvidia-smi that writes down its calls."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import time
from pathlib import Path

import pytest

from pfprofile.plan.exports import EXPORTERS
from tests.plan.test_exports import facts, plan_of, segment

GPUS = ["n1:0", "n1:1"]


def expand(text: str, env: dict[str, str]) -> str:
    """As Kubernetes does: $$ is a dollar, $(NAME) a variable that is known, anything else stays."""
    return re.sub(r"\$\$|\$\((\w+)\)", lambda m: "$" if m[0] == "$$" else env.get(m[1], m[0]), text)


class Bench:
    """One target's script of a job on two GPUs, ready to run."""

    def __init__(self, target: str, folder: Path) -> None:
        self.target, self.folder = target, folder
        self.smi(":")
        (folder / "srun").write_text('#!/bin/bash\nwhile [[ "$1" == --* ]]; do shift; done\nexec "$@"\n')
        (folder / "srun").chmod(0o755)

    def smi(self, body: str) -> None:
        """What nvidia-smi does beside writing down its call."""
        path = self.folder / "nvidia-smi"
        path.write_text(f'#!/bin/bash\necho "$@" >> {self.folder}/smi.txt\n{body}\n')
        path.chmod(0o755)

    def start(self, command: str, clocks=((0.0, 1410.0),), **env: str) -> subprocess.Popen[str]:
        ends = [at for at, _ in clocks[1:]] + [50.0]
        rows = [segment("a", "run", at, end, GPUS, mhz) for (at, mhz), end in zip(clocks, ends, strict=True)]
        plan = plan_of(rows, a=facts("a", command=command))
        exporter = EXPORTERS[self.target]
        files = exporter.files(plan, exporter.options)
        base = {"PATH": f"{self.folder}:/usr/bin:/bin", "HOME": str(self.folder)}
        if self.target == "slurm":
            words = ["bash", "-c", files["001-a-s1.sbatch"]]
            given = {"CUDA_VISIBLE_DEVICES": "GPU-a,GPU-b"}
        else:
            spec = json.loads(files["pf-001-a-s1.json"])["items"][-1]["spec"]["template"]["spec"]["containers"][0]
            known: dict[str, str] = {}
            for entry in spec["env"]:
                known[entry["name"]] = expand(entry["value"], known)
            words = [expand(word, known) for word in spec["command"]]
            given = {**known, "NVIDIA_VISIBLE_DEVICES": "GPU-a,GPU-b"}
        return subprocess.Popen(
            words, env={**base, **given, **env}, cwd=self.folder, stderr=subprocess.PIPE, text=True,
            start_new_session=True,
        )  # fmt: skip

    def run(self, command: str, **given) -> tuple[int, str]:
        done = self.start(command, **given)
        _, said = done.communicate(timeout=60)
        return done.returncode, said

    @property
    def calls(self) -> list[str]:
        path = self.folder / "smi.txt"
        return path.read_text().splitlines() if path.exists() else []


@pytest.fixture(params=["slurm", "kubernetes"])
def bench(request, tmp_path):
    return Bench(request.param, tmp_path)


LOCKS = ["-i GPU-a -lgc 1410,1410", "-i GPU-b -lgc 1410,1410"]
RESETS = ["-i GPU-a -rgc", "-i GPU-b -rgc"]


def wait_for(path: Path) -> None:
    for _ in range(400):
        if path.exists():
            return
        time.sleep(0.02)
    raise AssertionError(f"{path.name} did not appear")


def test_own_gpus_are_locked_before_training_and_reset_after_it(bench) -> None:
    code, _ = bench.run(f"cp {bench.folder}/smi.txt {bench.folder}/before.txt; exit 5")
    assert code == 5
    assert (bench.folder / "before.txt").read_text().splitlines() == LOCKS
    assert bench.calls == LOCKS + RESETS


def test_a_lock_that_fails_half_way_is_taken_back_and_training_goes_on_unlocked(bench) -> None:
    bench.smi('[[ "$*" == *GPU-b*-lgc* ]] && exit 4; exit 0')
    code, said = bench.run(f"touch {bench.folder}/trained")
    assert code == 0 and (bench.folder / "trained").exists()
    assert "clocks cannot be set; going on unlocked" in said
    assert bench.calls[-2:] == RESETS


def test_required_clocks_that_fail_stop_the_script(bench) -> None:
    bench.smi("exit 4")
    code, said = bench.run(f"touch {bench.folder}/trained", PFPROFILE_REQUIRE_CLOCKS="1")
    assert code == 4 and not (bench.folder / "trained").exists()
    assert "clocks cannot be set" in said


def test_without_nvidia_smi_training_goes_on(bench) -> None:
    (bench.folder / "nvidia-smi").unlink()
    code, said = bench.run(f"touch {bench.folder}/trained")
    assert code == 0 and (bench.folder / "trained").exists() and "unlocked" in said


def test_a_reset_that_one_gpu_refuses_goes_on_to_the_next(bench) -> None:
    bench.smi('[[ "$*" == *GPU-a*-rgc* ]] && exit 4; exit 0')
    _, said = bench.run("true")
    assert bench.calls[-1] == RESETS[1]
    assert "clocks could not be reset" in said


@pytest.mark.parametrize("given", ["all", "void", "none", ""])
def test_a_privileged_container_that_is_not_told_its_gpus_touches_none(tmp_path, given) -> None:
    bench = Bench("kubernetes", tmp_path)
    code, said = bench.run(f"touch {tmp_path}/trained", NVIDIA_VISIBLE_DEVICES=given)
    assert code == 0 and (tmp_path / "trained").exists()
    assert bench.calls == [] and "nothing says which GPUs are ours" in said


#: writes a checkpoint half a second after TERM
SLOW = (
    "python3 -c 'import signal, sys, time, pathlib; "
    'signal.signal(signal.SIGTERM, lambda *_: (time.sleep(0.5), pathlib.Path("saved").touch(), sys.exit(0))); '
    'pathlib.Path("began").touch(); time.sleep(60)\''
)


@pytest.mark.parametrize("command", [SLOW, f"cd . && {SLOW}; echo over > after"], ids=["simple", "compound"])
def test_told_to_stop_the_training_saves_first_and_clocks_come_back(bench, command) -> None:
    running = bench.start(command)
    wait_for(bench.folder / "began")
    # Slurm's srun passes the signal on to everything in the step; the stand-in is the command itself.
    running.send_signal(signal.SIGTERM)
    if bench.target == "slurm":
        for pid in _children_named(running.pid, "python3"):
            os.kill(pid, signal.SIGTERM)
    running.communicate(timeout=30)
    assert running.returncode == 143
    assert (bench.folder / "saved").exists()
    assert not (bench.folder / "after").exists()
    assert bench.calls == LOCKS + RESETS


def _children_named(session: int, name: str) -> list[int]:
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                words = (entry / "stat").read_text().rpartition(")")
                if int(words[2].split()[3]) == session and words[0].partition("(")[2].startswith(name):
                    found.append(int(entry.name))
            except (OSError, ValueError):
                continue
    return found


def test_a_change_of_the_clock_under_way_never_comes_after_the_reset(bench) -> None:
    bench.smi(f'[[ "$*" == *1200* ]] && {{ touch {bench.folder}/changing; sleep 0.7; }}; exit 0')
    running = bench.start("sleep 60", clocks=((0.0, 1410.0), (1.0, 1200.0)))
    wait_for(bench.folder / "changing")
    os.killpg(running.pid, signal.SIGTERM) if bench.target == "slurm" else running.send_signal(signal.SIGTERM)
    running.communicate(timeout=30)
    assert running.returncode == 143
    assert bench.calls[-2:] == RESETS
    assert "-i GPU-a -lgc 1200,1200" in bench.calls


def test_nothing_is_left_asleep_when_training_ends_before_a_change(bench) -> None:
    running = bench.start("true", clocks=((0.0, 1410.0), (49.0, 1200.0)))
    running.communicate(timeout=30)  # the pipe stays open as long as a process of it lives
    assert running.returncode == 0 and bench.calls == LOCKS + RESETS
