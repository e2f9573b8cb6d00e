"""Real sweeps: faults are rows, a kill costs one point, another identity is refused, clocks are let go."""

import os
import re
import signal
import subprocess
import sys
import time
from contextlib import nullcontext, suppress
from pathlib import Path

import pyarrow.parquet as pq
import pytest
import torch

from pfprofile.device.cpu import CpuDevice
from pfprofile.errors import HardwareError, InputError, UsageError
from pfprofile.profile import read_profile
from pfprofile.sweep import SweepRequest, run_live, subject, sweep
from pfprofile.sweep.journal import file_lock
from pfprofile.sweep.request import Reporter
from tests.support.fakes import FakeDevice

pytestmark = [pytest.mark.live, pytest.mark.xdist_group("live")]
FAULTY = str(Path(__file__).parent.parent / "support" / "faulty.py")
ROOT = Path(__file__).parent.parent.parent


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


@pytest.fixture(autouse=True)
def shared_host(monkeypatch, training_host):
    monkeypatch.setattr(subject, "Host", lambda threads: nullcontext(training_host))


def live(name="Tiny", reporter=None, **changes):
    given = {
        "workload": f"{FAULTY}:{name}", "device": "cpu", "gpus": (1,), "batch_sizes": (2,), "window_s": 0.1,
        "output": Path("p.parquet"), **changes,
    }  # fmt: skip
    return sweep(SweepRequest(**given), reporter)


def test_every_failure_is_one_row_and_the_rest_is_kept():
    outcome = live("Faulty", gpus=(2,), batch_sizes=(2, 3, 4, 5, 6, 8, 16), timeout_s=10.0)
    rows = {r["local_batch"]: r for r in outcome.profile.rows()}
    assert {b: r["status"] for b, r in rows.items() if b < 8} == {
        2: "ok", 3: "timeout", 4: "ok", 5: "failed", 6: "failed"
    }  # fmt: skip
    assert [r["status"] for b, r in rows.items() if b >= 8] in (["oom"], ["oom"] * 2)
    assert "SIGKILL" in rows[5]["error"]
    assert "the data is odd" in rows[6]["error"]
    assert "no result within the deadline (10 s)" in rows[3]["error"]
    assert rows[3]["step_time_s"] is None
    assert outcome.failed == outcome.profile.n_rows - 2
    assert read_profile(outcome.path).rows() == outcome.profile.rows()


def test_a_sweep_measures_what_was_asked_and_goes_on_where_it_stopped():
    first = live(gpus=(1, 2), repeats=2)
    assert first.new == 4
    metadata = first.profile.metadata
    assert metadata.source == "measured"
    assert metadata.settings == {"width": 8, "threads_per_rank": 1}
    assert metadata.sweep["finished"] is True
    assert metadata.gpu_name == CpuDevice().name
    for row in first.profile.rows():
        assert row["workload"] == "faulty.py:Tiny"
        assert row["step_time_s"] > 0
        assert row["memory_peak_bytes"] > 1 << 20
        assert row["requested_clock_mhz"] is None
        assert row["started_at"] is not None
    before = Path("p.parquet").read_bytes()
    assert live(gpus=(1, 2), repeats=2).new == 0
    assert Path("p.parquet").read_bytes() == before
    wider = live(gpus=(1, 2), batch_sizes=(2, 4), repeats=2)
    assert wider.new == 4
    assert wider.profile.rows()[:4] == first.profile.rows()


def test_failed_trials_are_tried_again_when_asked():
    first = live("Faulty", batch_sizes=(2, 6))
    assert first.failed == 1
    assert live("Faulty", batch_sizes=(2, 6)).new == 0
    again = live("Faulty", batch_sizes=(2, 6), retry_failed=True)
    assert again.new == 1
    assert again.profile.n_rows == 2


def test_another_sweep_in_the_file_is_refused():
    live()
    before = Path("p.parquet").read_bytes()
    with pytest.raises(InputError, match="setting width 8, not 16"):
        live(settings={"width": "16"})
    with pytest.raises(InputError, match="precision 'fp32', not 'bf16'"):
        live(precision="bf16")
    with file_lock(Path("p.parquet")), pytest.raises(UsageError, match="another sweep is writing"):
        live()
    assert Path("p.parquet").read_bytes() == before
    assert live(settings={"width": "16"}, fresh=True).new == 1


def test_no_time_means_nothing_new_and_an_unfinished_file():
    said = []
    outcome = live(max_time_s=0.0, reporter=Reporter(notice=said.append))
    assert not outcome.finished
    assert outcome.profile.n_rows == 0
    assert read_profile(Path("p.parquet")).metadata.sweep["finished"] is False
    assert any("1 trial left" in words for words in said)


@pytest.fixture
def gpu(monkeypatch):
    def install(**changes):
        device = FakeDevice(**changes)
        monkeypatch.setattr(run_live, "open_device", lambda kind: device)
        return device

    return install


def test_clocks_are_held_recorded_and_let_go(gpu):
    device = gpu(cap_mhz=1300.0)
    outcome = live(device="auto", gpus=(1, 2), freqs="auto", window_s=1.0)
    rows = outcome.profile.rows()
    assert len(rows) == 6
    for row in rows:
        achieved = min(row["requested_clock_mhz"], 1300.0)
        assert row["achieved_clock_mhz"] == achieved
        assert row["limited_by"] == ("power" if achieved < row["requested_clock_mhz"] else "none")
        assert row["power_w"] == pytest.approx(100 + achieved / 10, rel=0.02)
        assert row["energy_j"] == pytest.approx(row["n_gpus"] * row["power_w"] * row["steps"] * row["step_time_s"],
                                                rel=0.2)  # fmt: skip
        assert row["energy_source"] == "counter"
        assert row["temperature_c"] == 50.0
        assert row["idle_power_w"] == pytest.approx(100 + 1300 / 10)
        assert row["error"] is None
    assert device.locked == {}
    assert device.audit[-1][0] == "reset"
    assert device.closed


def test_raw_samples_are_kept_beside_the_profile(gpu):
    gpu()
    outcome = live(device="auto", gpus=(2,), window_s=0.5, samples=True, output=Path("p.parquet"))
    table = pq.read_table("p.samples.parquet").to_pandas()
    (row,) = outcome.profile.rows()
    assert set(table["trial_id"]) == {row["trial_id"]}
    assert set(table["gpu"]) == {0, 1}
    assert table["power_w"].mean() == pytest.approx(row["power_w"], rel=0.01)
    span_s = table["time_s"].max() - table["time_s"].min()
    assert 0 < span_s <= row["steps"] * row["step_time_s"] + 0.01
    # A finished trial is not measured again, and its samples stay.
    live(device="auto", gpus=(2,), window_s=0.5, samples=True, batch_sizes=(2, 4), output=Path("p.parquet"))
    again = pq.read_table("p.samples.parquet").to_pandas()
    assert again["trial_id"].nunique() == 2
    assert again.iloc[: len(table)].equals(table)
    with pytest.raises(UsageError, match="no raw samples"):
        live(replay="p.parquet", samples=True)


def test_without_permission_it_runs_unlocked_and_says_so(gpu):
    device = gpu(refuse="no permission")
    said = []
    outcome = live(device="auto", freqs="600,1410", reporter=Reporter(notice=said.append))
    assert [r["requested_clock_mhz"] for r in outcome.profile.rows()] == [None]
    assert said[0] == "starting faulty.py:Tiny on NVIDIA Test GPU"
    assert "no permission: everything runs at the default clock" in said[1]
    assert device.audit == []
    with pytest.raises(HardwareError, match="no permission"):
        live(device="auto", freqs="600,1410", require_clocks=True, output=Path("q.parquet"))


def test_others_on_the_gpus_stop_a_sweep_unless_shared(gpu):
    gpu(busy=["process 7 on GPU 0"])
    with pytest.raises(HardwareError, match="process 7 on GPU 0"):
        live(device="auto")
    outcome = live(device="auto", shared=True)
    assert outcome.new == 1
    assert outcome.profile.rows()[0]["idle_power_w"] is None  # something else was running


def test_more_gpus_than_there_are(gpu):
    gpu()
    with pytest.raises(HardwareError, match="only 2 NVIDIA Test GPU"):
        live(device="auto", gpus=(4,))


def test_a_torch_without_cuda_cannot_train_on_a_gpu(gpu):
    device = gpu()
    if torch.version.cuda is not None:
        pytest.skip("this torch has CUDA")
    with pytest.raises(HardwareError, match="build without CUDA"):
        live(device="auto", workload="resnet18")
    assert device.closed


def test_without_torch_the_extra_is_named(monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(HardwareError, match=r"pip install 'pfprofile\[train\]'"):
        live()


LINE = ["-m", "pfprofile", "sweep", f"{FAULTY}:Slow", "--device", "cpu", "--gpus", "1,2", "--batch-sizes", "1,2",
        "--steps", "3", "-o", "p.parquet"]  # fmt: skip


@pytest.fixture
def begin():
    begun = []

    def start():
        environment = {**os.environ, "PYTHONPATH": str(ROOT)}
        pipe = subprocess.PIPE
        begun.append(subprocess.Popen([sys.executable, *LINE], env=environment, stderr=pipe, stdout=pipe))
        return begun[-1]

    yield start
    for process in begun:
        process.kill()
        process.communicate()


def wait_for_trials(process, least):
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline:
        if Path("p.parquet").exists() and read_profile(Path("p.parquet")).n_rows >= least:
            return
        assert process.poll() is None, process.communicate()
        time.sleep(0.05)
    raise AssertionError("the sweep wrote nothing")


def descendants(pid):
    found = []
    # A rank may end between being listed and being looked at.
    with suppress(FileNotFoundError, ProcessLookupError):
        for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split():
            found += [int(child), *descendants(int(child))]
    return found


def gone(pids):
    def alive(pid):
        status = Path(f"/proc/{pid}/stat")
        try:
            return status.read_text().rpartition(")")[2].split()[0] != "Z"
        except (FileNotFoundError, ProcessLookupError):
            return False

    deadline = time.monotonic() + 30
    while any(map(alive, pids)) and time.monotonic() < deadline:
        time.sleep(0.05)
    return not any(map(alive, pids))


def test_kill_9_costs_one_point_and_leaves_no_process(begin):
    process = begin()
    wait_for_trials(process, 1)
    pids = descendants(process.pid)
    assert pids
    process.kill()
    process.communicate()
    assert gone(pids)
    kept = read_profile(Path("p.parquet"))
    assert kept.metadata.sweep["finished"] is False
    process = begin()
    output, _ = process.communicate()
    assert process.returncode == 0, output
    whole = read_profile(Path("p.parquet"))
    assert whole.rows()[: kept.n_rows] == kept.rows()
    assert whole.n_rows == 4
    assert len({(r["n_gpus"], r["local_batch"]) for r in whole.rows()}) == 4
    assert whole.metadata.sweep["finished"] is True


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_in_order_with_130(begin, number):
    process = begin()
    wait_for_trials(process, 1)
    pids = descendants(process.pid)
    process.send_signal(number)
    _, said = process.communicate()
    assert process.returncode == 130
    assert number.name in said.decode()
    assert "Traceback" not in said.decode()
    assert gone(pids)
    assert 1 <= read_profile(Path("p.parquet")).n_rows < 4
    assert [p.name for p in Path().iterdir()] == ["p.parquet"]


def test_another_sweep_in_the_default_output_is_kept_beside_the_new_one():
    first = live(output=None)
    before = first.path.read_bytes()
    begun = live(output=None, precision="bf16", max_time_s=0.0)
    assert begun.path != first.path
    assert first.path.read_bytes() == before
    said = []
    whole = live(output=None, precision="bf16", reporter=Reporter(notice=said.append))
    assert whole.path == first.path
    assert [r["precision"] for r in read_profile(first.path).rows()] == ["bf16"]
    aside = first.path.with_name(first.path.name + ".1")
    assert aside.read_bytes() == before and any(str(aside) in text for text in said)
    assert {p.name for p in first.path.parent.iterdir()} == {first.path.name, aside.name}
    live(output=None, precision="bf16", fresh=True)  # asked for: nothing more is set aside
    assert {p.name for p in first.path.parent.iterdir()} == {first.path.name, aside.name}


def test_the_same_line_again_measures_nothing_and_other_points_are_added():
    first = live(output=None)
    again = live(output=None)
    assert (again.path, again.new, again.profile.n_rows) == (first.path, 0, 1)
    more = live(output=None, batch_sizes=(4,))
    assert more.new == 1 and [r["local_batch"] for r in more.profile.rows()] == [2, 4]


def test_a_loss_that_is_no_number_is_kept_and_said():
    (row,) = live("Overflowing").profile.rows()
    assert row["status"] == "ok" and "the loss is not finite" in row["error"]
    (row,) = live("Tiny", output=Path("fine.parquet")).profile.rows()
    assert row["error"] is None


def test_a_failure_names_the_line_of_the_workload():
    (row,) = live("Faulty", batch_sizes=(6,)).profile.rows()
    assert re.fullmatch(r"rank 0: faulty\.py:\d+: ValueError: the data is odd", row["error"])


def test_rows_of_other_points_are_counted_apart():
    assert live(batch_sizes=(2, 4)).of_request == 2
    again = live(batch_sizes=(4,))
    assert (again.of_request, again.profile.n_rows, again.new) == (1, 2, 0)


def test_the_batch_search_measures_until_its_limit(monkeypatch):
    monkeypatch.setattr(run_live, "available_bytes", lambda: 0.0)
    outcome = live(batch_sizes=None)
    assert [(r["local_batch"], r["status"]) for r in outcome.profile.rows()] == [(1, "ok")]
    assert outcome.finished


def test_the_batch_search_finds_what_fits():
    said = []
    reporter = Reporter(notice=lambda words: said.append(words) if "auto" in words and "batch" in words else None)
    outcome = live("Faulty", batch_sizes=None, output=Path("auto.parquet"), reporter=reporter)
    rows = {r["local_batch"]: r["status"] for r in outcome.profile.rows()}
    assert said == ["--batch-sizes auto: 1 GPU: 4 is the largest that fits; 6 failed"]
    assert rows == {1: "ok", 2: "ok", 4: "ok", 8: "oom", 6: "failed"}
    assert outcome.failed == 1


def test_the_example_of_an_own_workload_trains():
    outcome = live(workload=f"{ROOT / 'examples' / 'workload.py'}:Mlp", settings={"width": "16"}, precision="bf16")
    (row,) = outcome.profile.rows()
    assert (row["workload"], row["precision"], row["status"]) == ("workload.py:Mlp", "bf16", "ok")
    metadata = outcome.profile.metadata
    assert metadata.settings["width"] == 16
    assert metadata.workload.sample_unit == "vector"
    assert metadata.workload.samples_per_epoch == 50_000
