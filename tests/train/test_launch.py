"""Real ranks: one host for all tests, each failure leaves no process and the host usable."""

import json
import os
import select
import signal
import time
from pathlib import Path

import pytest
import torch

from pfprofile.train import Host, WorkerError, WorkerSet, describe, parse_workload
from pfprofile.train.host import HostLoop, RankSet
from pfprofile.train.worker import DTYPES

pytestmark = [pytest.mark.live, pytest.mark.xdist_group("live")]
FAULTY = str(Path(__file__).parent.parent / "support" / "faulty.py")
SETTINGS = {"width": 8}


@pytest.fixture
def host(training_host):
    return training_host


def start(host, name="Tiny", **changes):
    wanted = {"n_ranks": 2, "local_batch": 2, "settings": SETTINGS, **changes}
    ranks = WorkerSet(host, parse_workload(f"{FAULTY}:{name}"), **wanted)
    ranks.wait_ready(time.monotonic() + 60)
    return ranks


def measure(ranks, timeout_s=60.0):
    return ranks.measure(window_s=0.1, steps=5, deadline_s=time.monotonic() + timeout_s)


def children(pid):
    return [int(c) for c in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def test_the_host_says_which_torch_trains(host):
    assert host.torch_version == torch.__version__


def test_a_set_measures_again_and_again(host):
    ranks = start(host)
    first, second = measure(ranks), measure(ranks)
    ranks.stop()
    for result in (first, second):
        assert result["steps"] == 5
        assert result["step_time_s"] > 0
        assert result["memory_peak_bytes"] > 1 << 20
    assert second["started_s"] >= first["ended_s"]


@pytest.mark.parametrize("changes", [{"accum_steps": 3}, {"precision": "bf16"}, {"n_ranks": 1}])
def test_accumulation_precision_and_one_rank(host, changes):
    ranks = start(host, **changes)
    assert measure(ranks)["step_time_s"] > 0
    ranks.stop()


def test_precisions_are_those_of_the_flag():
    assert set(DTYPES) == {"fp32", "bf16"}


@pytest.mark.parametrize(
    ("batch", "status", "words"),
    [
        (3, "timeout", "no answer"),
        (5, "failed", "rank 1 was killed by SIGKILL"),
        (6, "failed", "ValueError: the data is odd"),
        (8, "oom", "out of memory"),
    ],
)
def test_each_failure_ends_the_whole_set(host, batch, status, words):
    ranks = start(host, "Faulty", local_batch=batch)
    with pytest.raises(WorkerError) as caught:
        measure(ranks, timeout_s=3.0 if status == "timeout" else 60.0)
    assert caught.value.status == status
    assert words in caught.value.reason
    deadline = time.monotonic() + 30
    while children(host._process.pid) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert children(host._process.pid) == []


def test_describe_gives_facts_and_settings(host):
    told = describe(host, parse_workload("resnet18"), {"image_size": "32"})
    assert told["settings"]["image_size"] == 32
    assert told["facts"]["samples_per_epoch"] == 1_281_167


def test_leaving_the_host_kills_hanging_ranks():
    with Host(threads=1) as host:
        ranks = start(host, "Faulty", local_batch=3)
        host.command({"op": "measure", "set": ranks.number, "window_s": 0.1, "steps": 5})
        pids = [*children(host._process.pid), host._process.pid]
        assert len(pids) == 3
    assert not any(Path(f"/proc/{pid}").exists() for pid in pids)


def test_an_event_of_a_closed_descriptor_does_not_wait_for_its_successor():
    read_end, write_end = os.pipe()
    loop = HostLoop(write_end)
    pid = os.posix_spawnp("sleep", ["sleep", "600"], os.environ, setpgroup=0)
    watch = os.pidfd_open(pid)
    loop.sets[1] = RankSet(group=pid, ranks={pid: (0, watch)})
    loop.poll.register(watch, select.POLLIN)
    loop._reap(watch)
    assert pid in loop.sets[1].ranks
    os.kill(pid, signal.SIGKILL)
    select.select([watch], [], [])
    loop._reap(watch)
    assert loop.sets[1].ranks == {}
    assert json.loads(os.read(read_end, 4096)) == {"event": "exit", "set": 1, "rank": 0, "code": -9}
    loop.close()
    os.close(read_end)
    os.close(write_end)
