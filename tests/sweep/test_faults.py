"""What a driver that fails makes of a sweep: never a traceback, always a row or an exit 4 that says why."""

import json
import subprocess
import sys
import threading

import pytest

from pfprofile.device.locks import journal_for
from pfprofile.device.nvml import NvmlDevice
from tests.support.matrix import FAULTS, Lane, measure, on_page, table


@pytest.fixture
def lane(fake_nvml_library, tmp_path):
    lane = Lane(tmp_path / "lane", fake_nvml_library)
    yield lane
    lane.close()


def test_every_call_and_every_fault(fake_nvml_library, tmp_path):
    found = measure(tmp_path, fake_nvml_library)
    for function, by_fault in found.items():
        assert set(by_fault) == set(FAULTS)
        for fault, what in by_fault.items():
            if "exit" in what:
                assert what["exit"] == 4, (function, fault, what)
                assert what["words"]
            elif what["status"] != "ok" or "power_w" in what["empty"]:
                assert what["words"], (function, fault, what)
    assert on_page() == table(found), "run: python -m tests.support.matrix"


def test_a_gpu_lost_on_the_way_is_said_in_the_row(lane):
    lane.fake.fail("nvmlDeviceGetTotalEnergyConsumption", "GPU_IS_LOST", after=4)
    told = lane.sweep("default")
    assert told["status"] == "ok"
    assert "sensors stopped answering" in told["words"]


def test_a_permission_lost_on_the_way_fails_that_trial_only(lane):
    # Locked once to see whether that is possible, and anew at every point.
    lane.fake.fail("nvmlDeviceSetGpuLockedClocks", "NO_PERMISSION", after=2)
    told = lane.sweep("two")
    statuses = [(told["status"], told["words"]), *map(tuple, told["more"])]
    assert sorted(s for s, _ in statuses) == ["failed", "ok"]
    assert any("CAP_SYS_ADMIN" in (words or "") for _, words in statuses)
    assert lane.fake.lock_of(0) is None


def test_a_counter_that_starts_again_is_said_and_not_subtracted(lane):

    def reset_when_busy():
        lane.fake.wait_until(lambda truth: truth.power_w > 100)
        threading.Event().wait(0.15)
        lane.fake.reset_energy(0)

    again = threading.Thread(target=reset_when_busy)
    again.start()
    told = lane.sweep("default")
    again.join()
    assert told["status"] == "ok"
    assert "power_w" not in told["empty"]
    assert "counter went down" in told["words"]


def test_an_absurd_power_reading_is_never_used(lane):
    lane.fake.set_power_reading(0, 40_000.0)
    lane.fake.fail("nvmlDeviceGetTotalEnergyConsumption", "NOT_SUPPORTED")
    told = lane.sweep("default")
    assert "power_w" in told["empty"]
    assert "left out" in told["words"]


def test_counter_and_readings_that_disagree_are_said(lane):
    lane.fake.set_sensor_gain(0, 1.3)
    told = lane.sweep("long")
    assert "power_w" not in told["empty"]
    assert "the counter was used" in told["words"]


def test_a_lock_that_does_not_hold_for_no_reason_is_marked(lane):
    lane.fake.set_locks_ignored(0)
    assert "somebody else changed it" in lane.sweep("locked")["words"]


def test_a_clock_above_the_maximum_names_it(fake, tmp_path):
    code = "from pfprofile.sweep.space import choose_clocks\nfrom pfprofile.device import open_device\n" \
           "choose_clocks('1500', open_device('cuda').supported_clocks_mhz)"  # fmt: skip
    done = fake.python(code, check=False)
    assert "1410" in done.stderr.splitlines()[-1]


def test_a_gpu_in_slices_is_refused(lane):
    lane.fake.set_mig(0)
    told = lane.sweep("default")
    assert told["exit"] == 4
    assert "MIG" in told["words"]
    lane.fake.set_mig(0, False)


def test_a_reset_that_is_refused_keeps_the_journal_for_the_doctor(lane, tmp_path):
    lane.fake.fail("nvmlDeviceResetGpuLockedClocks", "UNKNOWN")
    told = lane.sweep("locked")
    assert told["exit"] == 4
    assert len(list((tmp_path / "lane" / "state").glob("clocks-*.json"))) == 1


def test_a_lock_that_a_dead_sweep_left_is_reset_before_the_next_one(lane, tmp_path, monkeypatch):
    """Owner and watchdog were killed at once: nobody but the journal knows."""
    monkeypatch.setenv("PFPROFILE_STATE_DIR", str(tmp_path / "lane" / "state"))
    journal = journal_for(1, NvmlDevice.opener, [lane.fake.uuid(0)])
    journal.write()
    body = {**json.loads(journal.path.read_text()), "pid": _dead_pid(), "watchdog_start": -1}
    journal.path.unlink()
    left = journal.path.with_name(f"clocks-{body['pid']}-{body['start_time']}.json")
    left.write_text(json.dumps(body))
    lane.fake.lock_clock(0, 600)
    before = len(lane.fake.audit())
    told = lane.sweep("locked")
    assert told["status"] == "ok"
    kinds = [entry.kind for entry in lane.fake.audit("lock", "reset") if entry.seq >= before]
    assert kinds[0] == "reset" and "lock" in kinds and kinds[-1] == "reset"
    assert not left.exists() and lane.fake.lock_of(0) is None


def _dead_pid():
    child = subprocess.run([sys.executable, "-c", "import os; print(os.getpid())"], capture_output=True, check=True)
    return int(child.stdout)
