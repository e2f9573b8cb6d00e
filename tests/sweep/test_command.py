"""Own commands: the hook, the log, every way to fail, and no process left behind."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from pfprofile.errors import UsageError
from pfprofile.profile import read_profile
from pfprofile.sweep import SweepRequest, sweep
from pfprofile.sweep.request import Reporter

pytestmark = [pytest.mark.live, pytest.mark.xdist_group("live")]
ROOT = Path(__file__).parent.parent.parent
OWN = ROOT / "tests" / "support" / "own.py"
RATE = r"([\d,.]+) samples/s"


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def own(words="{local_batch}", script=OWN, said=None, **changes):
    given = {
        "workload": None, "command": f"{sys.executable} {script} {words}", "device": "cpu", "gpus": (1,),
        "batch_sizes": (2,), "window_s": 0.2, "timeout_s": 30.0, "output": Path("p.parquet"), **changes,
    }  # fmt: skip
    return sweep(SweepRequest(**given), Reporter(notice=(said if said is not None else []).append))


def processes_of(script):
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = path.read_bytes().decode(errors="replace")
        except OSError:
            continue
        if str(script) in words or "signal.SIG_IGN" in words:
            found.append(words)
    return found


def test_the_example_with_the_hook_is_swept():
    outcome = own(script=ROOT / "examples" / "train_hook.py", batch_sizes=(4, 64))
    rows = {r["local_batch"]: r for r in outcome.profile.rows()}
    assert {r["status"] for r in rows.values()} == {"ok"}
    assert {r["workload"] for r in rows.values()} == {"train_hook.py"}
    assert all(r["steps"] >= 5 and r["step_time_s"] > 0 and r["power_w"] != 0 for r in rows.values())
    assert outcome.profile.metadata.settings["command"].endswith("{local_batch}")


def test_the_example_with_a_log_is_swept():
    outcome = own("--batch {local_batch}", ROOT / "examples" / "train_log.py", throughput_regex=RATE, workload="line",
                  batch_sizes=(4, 8), settings={"sample_unit": "token", "samples_per_epoch": "1000"})  # fmt: skip
    rows = outcome.profile.rows()
    assert [(r["workload"], r["status"]) for r in rows] == [("line", "ok")] * 2
    assert outcome.profile.metadata.workload.sample_unit == "token"
    assert outcome.profile.metadata.workload.samples_per_epoch == 1000
    assert own("--batch {local_batch}", ROOT / "examples" / "train_log.py", throughput_regex=RATE, workload="line",
               batch_sizes=(4, 8)).new == 0  # fmt: skip


def test_a_rate_becomes_the_time_of_a_step():
    (row,) = own(throughput_regex=RATE, batch_sizes=(2,), accum_steps=(3,)).profile.rows()
    assert row["step_time_s"] == pytest.approx(2 * 3 / (2 / 0.004))


def test_a_part_of_a_number_is_never_recorded():
    outcome = own(throughput_regex=r"(\d+)\.\d samples/s", batch_sizes=(16,), timeout_s=10.0)
    (row,) = outcome.profile.rows()
    assert row["status"] == "failed" and "takes '000' out of '4,000.0'" in row["error"]


def test_a_log_without_a_rate_says_which_way():
    (row,) = own("7", throughput_regex=r"speed (\S+)", batch_sizes=(2,)).profile.rows()
    assert row["error"].startswith("no line matched --throughput-regex before the command ended; its last words")
    (row,) = own("7", throughput_regex=r"(step) \d", batch_sizes=(2,), output=Path("b.parquet")).profile.rows()
    assert row["error"].startswith("--throughput-regex matched 'step' where a number")


def test_every_failure_is_one_row_with_its_reason_and_leaves_nothing_behind():
    outcome = own("{local_batch} child", batch_sizes=(2, 3, 4, 5, 6, 7, 8), timeout_s=3.0)
    rows = {r["local_batch"]: r for r in outcome.profile.rows()}
    assert rows[2]["status"] == "ok"
    failed = [r for b, r in rows.items() if b > 2]
    # Whatever is larger than a batch that ran out of memory may be left out.
    assert rows[3]["status"] == "oom"
    assert "CUDA out of memory" in rows[3]["error"]
    assert all(r["step_time_s"] is None for r in failed)
    assert processes_of(OWN) == []


@pytest.mark.parametrize(
    ("batch", "status", "words"),
    [
        (4, "timeout", "no whole window within the deadline (1 s) after 5 steps"),
        (5, "failed", "ended with signal 9"),
        (6, "failed", "exit code 3; its last words: ValueError: the data is odd"),
        (7, "failed", "ended after 5 steps, before a window was full"),
        (8, "timeout", "pfprofile.step() was not called within the deadline"),
        (9, "ok", None),
    ],
)
def test_a_fault_is_a_row_that_says_what_happened(batch, status, words):
    (row,) = own("{local_batch} child", batch_sizes=(batch,), timeout_s=1.0 if batch < 8 else 0.3).profile.rows()
    assert row["status"] == status
    assert words is None or words in row["error"]
    assert processes_of(OWN) == []


def test_failed_trials_of_a_command_are_tried_again_when_asked():
    assert own(batch_sizes=(2, 6)).failed == 1
    assert own(batch_sizes=(2, 6)).new == 0
    assert own(batch_sizes=(2, 6), retry_failed=True).new == 1


def test_a_command_that_cannot_be_started_says_so():
    (row,) = own(command="/nowhere/python {local_batch}").profile.rows()
    assert (row["status"], "/nowhere/python: No such file" in row["error"]) == ("failed", True)


def test_another_command_in_the_file_is_refused():
    own()
    with pytest.raises(Exception, match="setting command"):
        own("{local_batch} child")


def test_samples_that_are_not_those_asked_for_are_said():
    said = []
    own("{n_gpus}{n_nodes}{accum_steps} {local_batch}", said=said)
    assert [words for words in said if "counts 111 samples a step, the point asks for 2" in words]


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"command": "train.py {local_batsch}"}, r"unknown placeholder \{local_batsch\}; did you mean 'local_batch'"),
        ({"command": "train.py {0}"}, r"unknown placeholder \{0\}"),
        ({"command": "train.py {local_batch"}, "cannot be read"),
        ({"command": "train.py 'a"}, "cannot be read"),
        ({"command": " "}, "is empty"),
        ({"command": "train.py", "batch_sizes": (1, 2)}, r"does not use \{local_batch\}"),
        ({"throughput_regex": "("}, "no regular expression"),
        ({"throughput_regex": "samples"}, "has no group"),
        ({"command": None, "throughput_regex": "(.)"}, "give --command"),
        ({"settings": {"image_size": "3"}}, "only facts can be set"),
        ({"settings": {"samples_per_epoch": "x"}}, "expected a whole number"),
    ],
)
def test_wrong_flags_are_refused_before_anything_runs(changes, words):
    with pytest.raises(UsageError, match=words):
        own(**changes)
    assert not Path("p.parquet").exists()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_a_signal_ends_the_command_and_its_children(number):
    line = ["-m", "pfprofile", "sweep", "--command", f"{sys.executable} {OWN} {{local_batch}} child", "--device", "cpu",
            "--gpus", "1", "--batch-sizes", "2,10", "--steps", "100000", "-o", "p.parquet"]  # fmt: skip
    process = subprocess.Popen(
        [sys.executable, *line], env={**os.environ, "PYTHONPATH": str(ROOT)}, stderr=subprocess.PIPE
    )
    try:
        wait_until(lambda: len(processes_of(OWN)) >= 4)
        process.send_signal(number)
        _, said = process.communicate(timeout=60)
    finally:
        process.kill()
        process.wait()
    wait_until(lambda: not processes_of(OWN))
    assert process.returncode == (130 if number == signal.SIGINT else -9)
    assert b"Traceback" not in said
    assert not read_profile(Path("p.parquet")).n_rows if Path("p.parquet").exists() else True


def wait_until(condition):
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)
