"""No lock outlives the tool: random kills, a refused watchdog, deadlines, journals; on the fake driver."""

import json
import os
import random
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

from pfprofile.device.locks import LockJournal, boot_id, journal_for, read_journals, start_time
from pfprofile.device.restore import restore_clocks
from pfprofile.errors import HardwareError
from tests.support.fakes import FakeDevice

HOLDER = Path(__file__).parent.parent / "support" / "holder.py"
KILLS = 52
WAYS = ("kill", "kill group", "term", "int")
REPO = Path(__file__).resolve().parents[2]


def hold(fake, state, seed=0, **options):
    return subprocess.Popen(
        [sys.executable, str(HOLDER), str(seed)], env={**fake.env, "PFPROFILE_STATE_DIR": str(state)},
        stdout=subprocess.PIPE, text=True, start_new_session=True, **options,
    )  # fmt: skip


def watchdogs_of(pid):
    """Processes with this owner on their command line."""
    found = []
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                words = (folder / "cmdline").read_bytes().split(b"\0")
            except OSError:
                continue
            if b"pfprofile.device.watchdog" in words and str(pid).encode() in words:
                found.append(int(folder.name))
    return found


def wait_gone(pids, seconds=60):
    """Wait until processes are gone; the limit only keeps a broken test from hanging."""
    deadline = time.monotonic() + seconds
    while any(start_time(p) for p in pids):
        assert time.monotonic() < deadline, f"still there: {[p for p in pids if start_time(p)]}"
        time.sleep(0.02)


def end(process, way):
    if way == "kill group":
        os.killpg(process.pid, signal.SIGKILL)
    else:
        process.send_signal({"kill": signal.SIGKILL, "term": signal.SIGTERM, "int": signal.SIGINT}[way])


def kill_once(fake, state, number):
    """One holder, killed at a random moment; what is left of it."""
    dice = random.Random(number)
    process = hold(fake, state, number)
    worker = int(process.stdout.readline())
    for _ in range(dice.randint(0, 6)):
        process.stdout.readline()
    watchdogs = watchdogs_of(process.pid)
    time.sleep(dice.uniform(0, 0.01))
    end(process, WAYS[number % len(WAYS)])
    process.stdout.close()
    process.wait()
    watchdogs = {*watchdogs, *watchdogs_of(process.pid)}
    wait_gone(watchdogs)
    if not fake.audit("lock") and start_time(worker):
        # Killed before its first hold: the watchdog knows no worker yet, and there is no lock to take away.
        os.kill(worker, signal.SIGKILL)
    wait_gone([worker])
    return [fake.lock_of(i) for i in range(2)], fake.audit("lock", "reset"), list(state.glob("*"))


def test_random_kills_leave_no_lock_no_worker_and_no_journal(make_fake, tmp_path):
    fakes = [make_fake("A100", "A100") for _ in range(KILLS)]
    with ThreadPoolExecutor(4) as pool:
        ends = list(pool.map(kill_once, fakes, [tmp_path / f"s{i}" for i in range(KILLS)], range(KILLS)))
    assert [locks for locks, _, _ in ends] == [[None, None]] * KILLS
    assert [files for _, _, files in ends] == [[]] * KILLS
    locked = [audit for _, audit, _ in ends if any(a.kind == "lock" for a in audit)]
    assert len(locked) >= KILLS / 2, "too few were killed with a lock to say anything"
    assert {audit[-1].kind for audit in locked} == {"reset"}


def test_a_worker_of_an_owner_that_holds_nothing_any_more_is_ended_too(fake, tmp_path):
    code = """
import os, subprocess, sys
from pfprofile.device import ClockGuard, open_device
worker = subprocess.Popen(["sleep", "600"], start_new_session=True)
guard = ClockGuard(open_device("cuda")).__enter__()
guard.hold(1, 1005.0, groups=[worker.pid])
guard.hold(1, None)
print(worker.pid, flush=True)
os.kill(os.getpid(), 9)
"""
    env = {**fake.env, "PFPROFILE_STATE_DIR": str(tmp_path / "s")}
    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, check=False)
    wait_gone([int(done.stdout)])
    assert fake.audit("lock", "reset")[-1].kind == "reset"


def stopped_holder(fake, state):
    """A holder that has locked, frozen, with its worker and its watchdog."""
    process = hold(fake, state)
    worker = int(process.stdout.readline())
    while fake.lock_of(0) is None:
        assert process.stdout.readline()
    process.send_signal(signal.SIGSTOP)
    fake.wait_until(lambda truth: True)
    return process, worker, watchdogs_of(process.pid)


@pytest.fixture
def left_behind(fake, tmp_path):
    """A lock whose owner and watchdog were killed at once: only the journal is left."""
    state = tmp_path / "state"
    for _ in range(20):
        process, worker, watchdogs = stopped_holder(fake, state)
        for pid in (*watchdogs, process.pid, worker):
            os.kill(pid, signal.SIGKILL)
        process.stdout.close()
        process.wait()
        wait_gone([*watchdogs, worker])
        if fake.lock_of(0) is not None:
            return fake
    return pytest.fail("the freeze never met a lock")


def restore(fake, state):
    code = "from pfprofile.device.restore import restore_clocks\nprint(restore_clocks(insist=True))"
    env = {**fake.env, "PFPROFILE_STATE_DIR": str(state)}
    return subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, check=False)


def test_after_the_worst_the_journal_tells_what_to_reset(left_behind, tmp_path):
    fake, state = left_behind, tmp_path / "state"
    assert len(list(state.glob("clocks-*.json"))) == 1
    done = restore(fake, state)
    assert done.returncode == 0, done.stderr
    assert fake.uuid(0) in done.stdout
    assert fake.lock_of(0) is None
    assert list(state.glob("*.json")) == []


def test_a_living_owner_is_refused_and_named(fake, tmp_path):
    process, worker, watchdogs = stopped_holder(fake, tmp_path / "s")
    try:
        if list((tmp_path / "s").glob("*.json")):
            done = restore(fake, tmp_path / "s")
            assert done.returncode != 0
            assert f"process {process.pid} holds the clocks" in done.stderr
    finally:
        process.kill()
        process.stdout.close()
        process.wait()
        wait_gone([*watchdogs, worker])
    assert fake.lock_of(0) is None


GUARDED = """
import sys, time
from pfprofile.device import ClockGuard, open_device
from pfprofile.errors import HardwareError
device = open_device("cuda")
try:
    with ClockGuard(device) as guard:
        guard.hold(1, 1005.0, for_s=float(sys.argv[1]))
        print("held", flush=True)
        sys.stdin.readline()
        print(guard.expired(), flush=True)
        guard.hold(1, 1005.0, for_s=60.0)
        print("again", flush=True)
        sys.stdin.readline()
except HardwareError as error:
    print(error)
"""


def test_without_a_watchdog_no_lock(fake, tmp_path):
    fake.fail("nvmlInitWithFlags", "NO_PERMISSION", after=1)  # the owner's succeeds, the watchdog's does not
    done = fake.python(GUARDED, "60")
    assert "watchdog does not start" in done.stdout
    assert fake.audit("lock") == []


def test_without_a_journal_no_lock(fake, state_folder):
    state_folder.write_text("a file where the folder should be")
    done = fake.python(GUARDED, "60")
    assert "no journal of clock locks can be kept" in done.stdout
    assert fake.audit("lock") == []


def test_a_lock_ends_at_its_deadline_and_may_be_taken_again(fake):
    process = fake.popen(GUARDED, "0.1")
    assert process.stdout.readline() == "held\n"
    fake.wait_until(lambda truth: not truth.locked)
    process.stdin.write("\n")
    process.stdin.flush()
    assert process.stdout.readline() == "True\n"
    assert process.stdout.readline() == "again\n"
    assert fake.lock_of(0) == (1005, 1005)
    process.communicate("\n", timeout=60)
    assert fake.lock_of(0) is None


def test_when_the_watchdog_dies_the_owner_lets_go(fake):
    process = fake.popen(GUARDED, "60")
    assert process.stdout.readline() == "held\n"
    for pid in watchdogs_of(process.pid):
        os.kill(pid, signal.SIGKILL)
    out, _ = process.communicate("\n", timeout=60)
    assert "watchdog" in out
    assert fake.lock_of(0) is None
    assert fake.audit("lock", "reset")[-1].kind == "reset"


def test_a_journal_of_an_earlier_boot_is_only_removed(state_folder):
    journal = replace(journal_for(1, FakeDevice.opener, ["GPU-a"]), boot_id="earlier")
    journal.write()
    assert journal.owner() is None
    assert "before this boot" in restore_clocks(insist=True)[0]
    assert list(state_folder.iterdir()) == []


def test_a_journal_may_not_name_foreign_code(state_folder):
    journal = replace(journal_for(1, "os:getcwd", ["GPU-a"]), pid=2**22 + 1, watchdog_start=-1)
    journal.write()
    with pytest.raises(HardwareError, match="unknown device kind os:getcwd"):
        restore_clocks(insist=True)
    assert journal.path.exists()


def test_what_is_no_journal_is_said(state_folder):
    state_folder.mkdir()
    (state_folder / "clocks-1-1.json").write_text(json.dumps({"pid": 1}))
    found, troubles = read_journals()
    assert found == []
    assert "clocks-1-1.json is no journal" in troubles[0]


def test_a_reused_pid_is_not_the_owner():
    journal = journal_for(1, FakeDevice.opener, ["GPU-a"])
    assert isinstance(journal, LockJournal)
    assert journal.boot_id == boot_id()
    assert journal.owner() == f"process {os.getpid()}"
    assert replace(journal, start_time=journal.start_time - 1).owner() is None


def test_the_watchdog_is_light():
    code = "import sys, pfprofile.device.watchdog; print([m for m in ('numpy','pandas','torch') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], cwd=REPO, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
