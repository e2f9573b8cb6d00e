"""The fake's physics against the same equations written in Python, and its sensors against its true energy.

Nothing here depends on how fast the machine is: intervals are those that the fake logged, and sensor readings must lie
between what the truth allows at the earliest and the latest moment of the call.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import pytest

from tests.fake_nvml.asking import PREAMBLE, ask
from tests.fake_nvml.devices import A40, A100, DEVICES, H100, P100, V100, Device

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.fake_nvml.control import Fake


@pytest.mark.parametrize("device", DEVICES.values(), ids=list(DEVICES))
def test_a_kernel_takes_the_time_and_power_of_the_equations(make_fake: Callable[..., Fake], device: Device) -> None:
    fake = make_fake(device)
    requested = device.clocks_mhz[len(device.clocks_mhz) // 2] if device.has_locks else None
    if requested:
        fake.lock_clock(0, requested)
    mixes = [(0.02, 0.0), (0.012, 0.01), (0.0, 0.02)]
    fake.python(f"from tests.fake_nvml.worker import kernel\nfor mix in {mixes}: kernel(0, *mix)")
    for kernel, (compute_s, memory_s) in zip(fake.kernels(), mixes, strict=True):
        clock = device.achieved_mhz(requested, compute_s, memory_s)
        assert (kernel.clock_mhz, kernel.gpu) == (clock, 0)
        assert kernel.time_s >= device.kernel_time_s(clock, compute_s, memory_s) - 1e-6
        assert kernel.power_w == pytest.approx(device.kernel_power_w(clock, compute_s, memory_s), rel=1e-9)


@pytest.mark.parametrize(
    ("device", "requested", "limit_w", "capped"),
    [
        (A100, None, 400, False),
        (A100, None, 250, True),
        (A100, 900, 250, False),
        (H100, None, 700, True),
        (A40, 1740, 300, True),
    ],
)
def test_a_cap_saturates_the_clock_and_says_so(
    make_fake: Callable[..., Fake], device: Device, requested: int | None, limit_w: float, capped: bool
) -> None:
    fake = make_fake(device)
    fake.set_power_limit(0, limit_w)
    if requested:
        fake.lock_clock(0, requested)
    fake.start_load(0)
    code = """
first = n.nvmlDeviceGetFieldValues(h, [74])[0].value.ullVal
time.sleep(0.01)
print(json.dumps([n.nvmlDeviceGetClockInfo(h, 1), n.nvmlDeviceGetCurrentClocksEventReasons(h),
                  n.nvmlDeviceGetFieldValues(h, [74])[0].value.ullVal - first, n.nvmlDeviceGetEnforcedPowerLimit(h)]))
"""
    clock, reasons, capped_ns, limit_mw = ask(fake, code)
    truth = fake.truth(0)
    assert clock == device.achieved_mhz(requested, 1.0, 0.0, limit_w) == truth.clock_mhz
    assert (clock < (requested or device.default_mhz)) == capped
    assert bool(reasons & 0x4) == capped
    assert (capped_ns > 0) == capped
    assert limit_mw == limit_w * 1000
    assert truth.power_w <= limit_w
    if capped:  # and not lower than need be
        above = min(c for c in device.clocks_mhz if c > clock)
        assert device.kernel_power_w(above, 1.0, 0.0) > limit_w


def test_a_clock_that_changes_under_a_kernel(fake: Fake) -> None:
    """Work is conserved: what was done at either clock adds up to the whole."""
    with fake.popen(PREAMBLE + "kernel(0, 0.4)") as process:
        fake.wait_until(lambda truth: truth.busy > 0)
        fake.lock_clock(0, 705)
        assert process.wait(60) == 0
    (kernel,), (lock,) = fake.kernels(), fake.audit("lock")
    at_top_s = (lock.t_ns - kernel.start_ns) / 1e9
    expected_s = at_top_s + (0.4 - at_top_s) * 1410 / 705
    assert kernel.time_s >= expected_s - 1e-3
    assert kernel.clock_mhz == 705
    energy_j = at_top_s * A100.kernel_power_w(1410, 1, 0) + (kernel.time_s - at_top_s) * A100.kernel_power_w(705, 1, 0)
    assert kernel.end_j - kernel.start_j == pytest.approx(energy_j, rel=1e-3)


def test_two_loads_take_turns(fake: Fake) -> None:
    fake.start_load(0)
    fake.python("from tests.fake_nvml.worker import kernel; kernel(0, 0.05)")
    assert fake.kernels()[0].time_s >= 0.1 - 1e-6


def test_load_on_one_gpu_leaves_the_other_idle(make_fake: Callable[..., Fake]) -> None:
    fake = make_fake("A100", "A100")
    fake.start_load(1, compute=0.5, memory=0.5)
    d = A100.dynamic_power_w(1410)
    expected = A100.context_w + 0.5 * d + 0.5 * (A100.memory_w + A100.memory_sm_share * d)
    assert fake.truth(1).power_w == pytest.approx(expected)
    assert fake.truth(0).power_w == A100.idle_w
    fake.stop_load(1)
    assert fake.truth(1).power_w == A100.idle_w


def test_idle_power_has_a_level_with_and_without_a_context(fake: Fake) -> None:
    assert fake.truth(0).power_w == A100.idle_w
    fake.start_load(0, compute=0.0)
    assert (fake.truth(0).power_w, fake.truth(0).busy, fake.truth(0).clients) == (A100.context_w, 0, 1)


@pytest.mark.parametrize("device", [A100, V100], ids=["A100", "V100"])
def test_the_energy_counter_is_the_true_energy_at_its_last_update(
    make_fake: Callable[..., Fake], device: Device
) -> None:
    fake = make_fake(device.but(energy_quantum_mj=7))
    code = """
for step in range(3):  # work, and gaps between
    kernel(0, 0.03, 0.01)
    for _ in range(40):
        before = time.monotonic_ns()
        seen.append((before, n.nvmlDeviceGetTotalEnergyConsumption(h), time.monotonic_ns()))
        time.sleep(0.003)
print(json.dumps(seen))
"""
    seen = ask(fake, "seen = []" + code)
    offset, period_ns = device.energy_offset_mj, int(device.energy_period_s * 1e9)
    for before, value, after in seen:
        earliest, latest = fake.energy_j(0, before - period_ns), fake.energy_j(0, after)
        assert earliest - 0.0071 <= (value - offset) / 1000 <= latest + 1e-6
        assert (value - offset) % 7 == 0
    values = [value for _, value, _ in seen]
    assert values == sorted(values)
    assert 2 <= len(set(values)) <= (seen[-1][2] - seen[0][0]) / period_ns + 2  # it stands still between updates


@pytest.mark.parametrize(
    ("device", "call", "window_s"),
    [
        (A100, "n.nvmlDeviceGetPowerUsage(h)", 0.025),
        (A40, "n.nvmlDeviceGetPowerUsage(h)", 1.0),
        (A40, "n.nvmlDeviceGetFieldValues(h, [186])[0].value.uiVal", 0.1),
        (H100, "n.nvmlDeviceGetFieldValues(h, [186])[0].value.uiVal", 0.025),
        (A100, "n.nvmlDeviceGetFieldValues(h, [185])[0].value.uiVal", 1.0),
        (P100, "n.nvmlDeviceGetPowerUsage(h)", 0.01),
    ],
)
def test_a_power_reading_is_the_mean_over_its_generations_window(
    make_fake: Callable[..., Fake], device: Device, call: str, window_s: float
) -> None:
    """From idle to busy once: the mean over a window then only rises, so two moments bound what a call may show."""
    fake = make_fake(device)
    fake.truth(0)
    fake.start_load(0)
    code = f"""
seen = []
for _ in range(25):
    before = time.monotonic_ns()
    seen.append((before, {call}, time.monotonic_ns()))
    time.sleep(0.01)
print(json.dumps(seen))
"""

    def mean_w(t_ns: int) -> float:
        start = max(t_ns - int(window_s * 1e9), fake.made_ns)
        return (fake.energy_j(0, t_ns) - fake.energy_j(0, start)) / ((t_ns - start) / 1e9)

    period_ns = int(device.sensor_period_s * 1e9)
    for before, mw, after in ask(fake, code):
        first = before - period_ns
        lowest = mean_w(first) if first > fake.made_ns else device.idle_w
        assert lowest - 0.01 <= mw / 1000 <= mean_w(after) + 0.01


def test_only_newer_gpus_have_the_power_fields(make_fake: Callable[..., Fake]) -> None:
    code = "print(json.dumps([v.nvmlReturn for v in n.nvmlDeviceGetFieldValues(h, [185, 186, 83, 74, 269])]))"
    assert ask(make_fake("H100"), code) == [0, 0, 0, 0, 0]
    assert ask(make_fake("V100"), code) == [3, 3, 0, 0, 3]
    assert ask(make_fake("P100"), code) == [3, 3, 3, 0, 3]


def test_a_reset_of_the_counter_and_an_absurd_reading(fake: Fake) -> None:
    code = """
values = n.nvmlDeviceGetFieldValues(h, [186, 185])
print(json.dumps([n.nvmlDeviceGetTotalEnergyConsumption(h), n.nvmlDeviceGetPowerUsage(h), values[0].value.uiVal]))
"""
    before, power, _ = ask(fake, code)
    assert before >= A100.energy_offset_mj
    assert power == 46000
    fake.reset_energy(0)
    fake.set_power_reading(0, 5_000)
    after, power, field = ask(fake, code)
    assert after < A100.energy_offset_mj
    assert power == field == 5_000_000
    fake.set_power_reading(0, None)
    fake.set_sensor_gain(0, 0.5)
    assert ask(fake, code)[1:] == [23000, 23000]


def test_temperature_follows_the_power_unless_it_is_set(fake: Fake) -> None:
    cold = fake.truth(0).temperature_c
    fake.start_load(0)
    fake.wait_until(lambda truth: truth.temperature_c > cold + 1)
    fake.set_temperature(0, 83)
    code = "print(json.dumps([n.nvmlDeviceGetTemperature(h, 0), n.nvmlDeviceGetTemperatureV(h, 0)]))"
    assert ask(fake, code) == [83, 83]


@pytest.mark.parametrize(("reason", "field"), [(0x20, 269), (0x48, 270), (0x88, 271)])
def test_a_slowdown_holds_the_clock_down_and_says_why(fake: Fake, reason: int, field: int) -> None:
    fake.lock_clock(0, 1200)
    fake.start_load(0)
    fake.set_slowdown(0, 800, reason)
    code = """
first = n.nvmlDeviceGetFieldValues(h, [int(sys.argv[1])])[0].value.ullVal
time.sleep(0.01)
last = n.nvmlDeviceGetFieldValues(h, [int(sys.argv[1])])[0].value.ullVal
print(json.dumps([n.nvmlDeviceGetClockInfo(h, 1), n.nvmlDeviceGetCurrentClocksEventReasons(h),
                  n.nvmlDeviceGetCurrentClocksThrottleReasons(h), last > first]))
"""
    assert ask(fake, code, str(field)) == [795, reason, reason, True]
    fake.set_slowdown(0, None)
    assert (fake.truth(0).clock_mhz, fake.truth(0).reasons) == (1200, 0)


def test_a_lock_that_is_accepted_and_ignored(fake: Fake) -> None:
    fake.set_locks_ignored(0)
    fake.start_load(0)
    ask(fake, "print(json.dumps(n.nvmlDeviceSetGpuLockedClocks(h, 900, 900)))")
    assert fake.lock_of(0) == (900, 900)
    assert fake.audit("lock")[0].code == 0
    assert fake.truth(0).clock_mhz == 1410


def test_idle_bits_flicker_where_asked(make_fake: Callable[..., Fake]) -> None:
    fake = make_fake("A40")
    code = """
seen = set()
for _ in range(60):
    seen.add(n.nvmlDeviceGetCurrentClocksEventReasons(h))
    time.sleep(0.005)
print(json.dumps(sorted(seen)))
"""
    assert ask(fake, code) == [0x1, 0x5]
    fake.set_idle_noise(0, 0)
    assert ask(fake, code) == [0x1]


def test_the_kernel_log_agrees_with_the_running_total(fake: Fake) -> None:
    fake.python("from tests.fake_nvml.worker import kernel\nfor _ in range(5): kernel(0, 0.01, 0.002)")
    kernels = fake.kernels(0)
    assert [k.seq for k in kernels] == [0, 1, 2, 3, 4]
    for one, following in pairwise(kernels):
        assert one.end_ns <= following.start_ns
        gap_s = (following.start_ns - one.end_ns) / 1e9
        assert following.start_j - one.end_j == pytest.approx(gap_s * A100.context_w, abs=1e-6)
    assert kernels[-1].end_j == pytest.approx(fake.energy_j(0, kernels[-1].end_ns), rel=1e-9)


def test_what_is_forgotten_is_not_invented(fake: Fake) -> None:
    fake.python("from tests.fake_nvml.worker import kernel\nfor _ in range(4200): kernel(0, 1e-6)")
    kernels = fake.kernels()
    assert len(kernels) == 4200
    assert fake.energy_j(0, kernels[-1].end_ns) == pytest.approx(kernels[-1].end_j, rel=1e-9)
    with pytest.raises(ValueError, match="no longer known"):
        fake.energy_j(0, kernels[0].start_ns)


def test_faults_of_the_kernel_reach_its_worker(fake: Fake) -> None:
    fake.fail("fake_kernel", "UNKNOWN", after=1)
    code = """
kernel(0, 0.001)
try: kernel(0, 0.001)
except RuntimeError as error: print(json.dumps(str(error)))
"""
    assert ask(fake, code) == "CUDA error on GPU 0: NVML code 999"
    assert len(fake.kernels()) == 1


def test_kernels_find_their_gpu_by_uuid(make_fake: Callable[..., Fake]) -> None:
    fake = make_fake("A100", "V100")
    code = "from tests.fake_nvml.worker import kernel; import sys; kernel(sys.argv[1], 0.001)"
    fake.python(code, fake.uuid(1))
    fake.python(code, fake.uuid(1)[:12])
    assert [k.gpu for k in fake.kernels()] == [1, 1]
    failed = fake.python(code, "GPU-", check=False)
    assert "no single GPU" in failed.stderr
