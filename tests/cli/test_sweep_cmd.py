"""The command line of `sweep`: exit codes, streams, formats."""

import json
import subprocess
import sys
from contextlib import nullcontext
from pathlib import Path

import pytest

from pfprofile.cli import app
from pfprofile.device import nvml
from pfprofile.errors import HardwareError
from pfprofile.sweep import subject

RECORDING = str(Path(__file__).parent.parent / "fixtures" / "gpu_small.parquet")
FAULTY = str(Path(__file__).parent.parent / "support" / "faulty.py")


@pytest.fixture
def shared_host(monkeypatch, training_host):
    monkeypatch.setattr(subject, "Host", lambda threads: nullcontext(training_host))


@pytest.fixture
def run(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)

    def call(*arguments):
        with pytest.raises(SystemExit) as ended:
            app(list(arguments), prog_name="pfprofile")
        streams = capsys.readouterr()
        return ended.value.code, streams.out, streams.err

    return call


def test_help_has_an_example(run):
    code, out, _ = run("sweep", "--help")
    assert code == 0
    assert "Example: pfprofile sweep resnet18 --device cpu" in " ".join(out.split())


def test_json_on_stdout_parses_and_nothing_else_is_there(run):
    code, out, err = run("sweep", "resnet50", "--replay", RECORDING, "--gpus", "1", "--freqs", "600", "--format",
                         "json")  # fmt: skip
    assert code == 0
    rows = json.loads(out)
    assert {(r["n_gpus"], r["requested_clock_mhz"]) for r in rows} == {(1, 600.0)}
    assert "profiles/v100-sxm2-16gb/resnet50.parquet: 6 trials, 6 new" in err


def test_a_dry_run_prints_the_points(run):
    code, out, err = run("sweep", "--replay", RECORDING, "--gpus", "1", "--freqs", "600", "--repeats", "1",
                         "--dry-run", "--format", "csv")  # fmt: skip
    assert code == 0
    assert out.splitlines() == ["n_gpus,local_batch,accum_steps,sm_clock_mhz", "1,8,1,600.0", "1,16,1,600.0",
                                "1,32,1,600.0"]  # fmt: skip
    assert "nothing was measured" in err


def test_a_long_table_is_left_to_show(run):
    code, out, err = run("sweep", "--replay", RECORDING, "-o", "all.parquet")
    assert (code, out) == (0, "")
    assert "all.parquet: 163 trials" in err


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        ((), 2, "WORKLOAD is missing"),
        (("resnet51", "--device", "cpu"), 2, "did you mean 'resnet50'"),
        (("resnet50", "--gpus", "1,x"), 2, "--gpus: 'x' is not a whole number"),
        (("resnet50", "--set", "image_size"), 2, "not KEY=VALUE"),
        (("resnet50", "--precision", "fp8"), 2, "'fp8' is unknown"),
        (("resnet50", "--max-time", "5"), 2, "--max-time: '5' has no unit"),
        (("resnet50", "--device", "gpu0"), 2, "--device 'gpu0' is unknown"),
        (("nowhere.py:Net", "--device", "cpu"), 3, "nowhere.py: no such file"),
        (("resnet50", "--replay", RECORDING, "--gpus", "3"), 3, "lacks 1 of the points asked for: 3 GPU"),
        (("resnet50", "--replay", "nothing"), 3, "neither a profile file nor a shipped profile"),
    ],
)
def test_expected_errors_are_one_line_with_their_code(run, arguments, code, words):
    got, out, err = run("sweep", *arguments)
    assert got == code
    assert words in err
    assert err.count("\n") == 1
    assert out == ""


def test_no_gpu_is_exit_4_and_names_the_ways_out(run, monkeypatch):
    def no_driver(self):
        raise HardwareError("no NVIDIA driver answers", "check: nvidia-smi")

    monkeypatch.setattr(nvml.NvmlDevice, "__init__", no_driver)
    code, _, err = run("sweep", "resnet50")
    assert code == 4
    assert "--device cpu" in err
    assert "--replay" in err


@pytest.mark.live
@pytest.mark.xdist_group("live")
def test_failed_points_are_exit_7_and_kept(run, shared_host):
    line = ("sweep", f"{FAULTY}:Faulty", "--device", "cpu", "--gpus", "1", "--batch-sizes", "2,6", "--steps", "3",
            "-o", "p.parquet", "--format", "json")  # fmt: skip
    code, out, err = run(*line)
    assert code == 7
    assert sorted(r["status"] for r in json.loads(out)) == ["failed", "ok"]
    assert "--retry-failed" in err
    assert "Traceback" not in err
    code, out, err = run(*line[:-2], "--accum-steps", "1,2", "--batch-sizes", "2,6")
    assert "4 trials" in err and "ValueError: the data is odd" in err.split("] ")[-1]
    assert "× 2 passes" in err and "passes" in out
    code, out, err = run("show", "p.parquet")
    assert "failed: rank 0: faulty.py:" in err and "ValueError: the data is odd" in err


@pytest.mark.live
@pytest.mark.xdist_group("live")
def test_resnet18_trains_for_real_on_two_processes(run, shared_host):
    code, out, _ = run("sweep", "resnet18", "--device", "cpu", "--gpus", "1,2", "--batch-sizes", "1", "--image-size",
                       "32", "--set", "classes=10", "--steps", "2", "-o", "p.parquet", "--format", "json")  # fmt: skip
    assert code == 0
    rows = json.loads(out)
    assert sorted(r["n_gpus"] for r in rows) == [1, 2]
    assert all(r["status"] == "ok" and r["step_time_s"] > 0 and r["power_w"] != 0 for r in rows)


def test_the_parent_never_imports_torch():
    code = (
        "import sys, pfprofile.sweep.run_live, pfprofile.sweep.run_replay, pfprofile.cli.sweep_cmd\n"
        "print(*{'torch', 'pydantic', 'pandas', 'scipy', 'sklearn', 'pynvml'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout.strip()) == (0, ""), done.stderr
