"""The CPU's name and RAPL counters; the guard; the sampler."""

import os
import time

import pytest

from pfprofile.device import ClockGuard, Sampler, open_device
from pfprofile.device.cpu import RaplCounter, available_bytes, cpu_name
from pfprofile.errors import HardwareError
from tests.support.fakes import FakeDevice


def test_the_name_is_the_model_name(tmp_path):
    info = tmp_path / "cpuinfo"
    info.write_text("processor : 0\nmodel name\t: Intel(R)  Xeon(R) CPU\nmodel name\t: other\n")
    assert cpu_name(info) == "Intel(R) Xeon(R) CPU"
    info.write_text("processor : 0\n")
    assert cpu_name(info).endswith("CPU")
    assert cpu_name(tmp_path / "absent").endswith("CPU")


def test_available_memory(tmp_path):
    info = tmp_path / "meminfo"
    info.write_text("MemTotal: 10 kB\nMemAvailable:       3 kB\n")
    assert available_bytes(info) == 3072
    assert available_bytes(tmp_path / "absent") == float("inf")


def rapl(folder, values, top=1000):
    for i, value in enumerate(values):
        package = folder / f"intel-rapl:{i}"
        package.mkdir(exist_ok=True)
        (package / "energy_uj").write_text(str(value))
        (package / "max_energy_range_uj").write_text(str(top))


def test_rapl_packages_are_summed_and_unwrapped(tmp_path):
    rapl(tmp_path, [900, 10])
    (tmp_path / "intel-rapl:0:0").mkdir()
    (tmp_path / "intel-rapl:0:0" / "energy_uj").write_text("5")
    counter = RaplCounter(tmp_path)
    assert counter.energy_j() == 0.0
    rapl(tmp_path, [100, 30])
    assert counter.energy_j() == pytest.approx((200 + 20) / 1e6)


def test_without_rapl_energy_is_unknown(tmp_path):
    assert RaplCounter(tmp_path).energy_j() is None


def test_the_cpu_has_cores_and_no_clocks():
    device = open_device("cpu")
    assert device.count == len(os.sched_getaffinity(0))
    assert device.supported_clocks_mhz == ()
    assert "CPU" in device.lock_trouble()
    with pytest.raises(HardwareError, match="clocks are not chosen"):
        device.lock_clock(0, 1000.0)


def test_the_guard_resets_what_it_locked_whatever_happens():
    device = FakeDevice()
    with pytest.raises(ValueError, match="odd"), ClockGuard(device) as guard:
        guard.hold(2, 600.0)
        guard.hold(1, 600.0)
        guard.hold(2, 1005.0)
        raise ValueError("odd")
    assert device.locked == {}
    assert device.audit == [
        ("lock", 0, 600.0),
        ("lock", 1, 600.0),
        ("lock", 0, 600.0),
        ("lock", 0, 1005.0),
        ("lock", 1, 1005.0),
        ("reset", 0),
        ("reset", 1),
    ]


def test_no_lock_means_unlocked():
    device = FakeDevice()
    with ClockGuard(device) as guard:
        guard.hold(1, 600.0)
        guard.hold(1, None)
        assert device.locked == {}


def test_the_sampler_reads_all_devices_and_says_why_it_ended():
    device = FakeDevice(cap_mhz=1005.0)
    device.lock_clock(0, 1410.0)
    began = time.monotonic()
    with Sampler(device, rate_hz=200) as sampler, sampler.window(2) as window:
        while device.looks < 20:
            time.sleep(0.01)
    first, second = window.samples(began, time.monotonic())
    assert len(first.time_s) >= 10
    assert set(first.sm_clock_mhz) == {1005.0} == set(second.sm_clock_mhz)
    assert window.limits(began, time.monotonic())["power"] == pytest.approx(0.5, abs=0.1)
    assert window.trouble is None


def test_a_lost_gpu_ends_the_sampler():
    device = FakeDevice(lost_after=3)
    with Sampler(device, rate_hz=200) as sampler, sampler.window(1) as window:
        while device.looks <= 3:
            time.sleep(0.001)
    assert "lost" in window.trouble
