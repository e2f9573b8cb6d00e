"""The sampler: a process of its own where it can be one, honest about its lateness, and never in the way."""

import json
import time

import pytest

from pfprofile.device import Sampler
from pfprofile.device.ticks import BUDGET, LOOKS, Punctuality, Ticks, look_until, percentile_99
from tests.support.fakes import FakeDevice

ON_THE_FAKE = """
import json, os, signal, sys, time
from pfprofile.device import Sampler, open_device
device = open_device("cuda")
found = []
with Sampler(device, rate_hz=50) as sampler:
    for n in (1, 2, 1):
        with sampler.window(n) as window:
            began_s = time.monotonic()
            time.sleep(0.3)
            if sys.argv[1] == "kill" and n == 2:
                os.kill(sampler._process._process.pid, signal.SIGKILL)
            ended_s = time.monotonic()
        found.append([window.trouble, [len(s.time_s) for s in window.samples(began_s, ended_s)]])
    pid = sampler._process._process.pid if sampler._process else None
print(json.dumps([found, sampler.trouble, sampler.punctuality.summary(), pid and os.path.exists(f"/proc/{pid}")]))
"""


def test_a_process_samples_the_gpus_a_window_at_a_time(make_fake):
    fake = make_fake("A100", "A100")
    found, trouble, summary, alive = json.loads(fake.python(ON_THE_FAKE, "no").stdout)
    assert trouble == "" and not alive
    assert [(t, len(counts)) for t, counts in found] == [(None, 1), (None, 2), (None, 1)]
    assert all(min(counts) >= 3 for _, counts in found)
    assert summary["process"] is True and summary["looks"] >= 9
    assert 0 <= summary["late_median_s"] <= summary["late_p99_s"] and summary["look_median_s"] > 0
    assert summary["cpu_share"] > 0


def test_where_its_process_dies_the_window_says_so_and_a_thread_goes_on(make_fake):
    fake = make_fake("A100", "A100")
    found, trouble, summary, _ = json.loads(fake.python(ON_THE_FAKE, "kill").stdout)
    assert found[0][0] is None and found[2][0] is None and found[2][1][0] >= 3
    assert found[1] == ["the sampler process has died", [0, 0]]
    assert trouble == "the sampler process has died" and summary["process"] is False


def test_a_driver_that_opens_once_only_is_sampled_by_a_thread(make_fake):
    fake = make_fake("A100", "A100")
    fake.fail("nvmlInitWithFlags", "UNKNOWN", after=1)
    found, trouble, _, _ = json.loads(fake.python(ON_THE_FAKE, "no").stdout)
    assert "does not start" in trouble and all(t is None and min(c) >= 3 for t, c in found)


class Slow(FakeDevice):
    """A driver that takes its time."""

    def read(self, index):
        time.sleep(0.01)
        return super().read(index)


def test_a_slow_driver_is_asked_less_often():
    device = Slow()
    ticks = look_until(device, 1, lambda wait_s: device.looks >= 2 * LOOKS, time.thread_time, rate_hz=100)
    assert ticks.interval_s >= 0.01 / BUDGET
    assert len(ticks.late_s) == len(ticks.look_s) == len(ticks.rows[0]) == 2 * LOOKS


def test_ticks_that_cannot_be_kept_are_counted():
    device = FakeDevice()

    def late(wait_s):
        time.sleep(wait_s + (0.05 if device.looks == 2 else 0.0))
        return device.looks >= 5

    ticks = look_until(device, 1, late, time.thread_time, rate_hz=100)
    assert ticks.missed >= 3
    assert max(ticks.late_s) >= 0.05
    again = Ticks.of_message(json.loads(json.dumps(ticks.message())))
    assert again == ticks


def test_punctuality_is_over_all_windows_and_empty_without_any():
    whole = Punctuality(process=True)
    assert whole.summary() == {}
    for late_s in (0.001, 0.003, 0.002):
        whole.add(Ticks([[]], late_s=[late_s], look_s=[0.01], interval_s=0.05, missed=1, cpu_s=0.5, wall_s=2.0))
    summary = whole.summary()
    assert (summary["late_median_s"], summary["missed"], summary["looks"]) == (0.002, 3, 3)
    assert summary["cpu_share"] == pytest.approx(0.25)


@pytest.mark.parametrize(("count", "expected"), [(1, 0), (100, 99), (1000, 990)])
def test_99_of_100(count, expected):
    assert percentile_99(range(count)) == expected


def test_a_device_whose_sensors_are_its_own_is_sampled_by_a_thread():
    with Sampler(FakeDevice()) as sampler, sampler.window(1):
        pass
    assert sampler.punctuality.summary()["process"] is False
