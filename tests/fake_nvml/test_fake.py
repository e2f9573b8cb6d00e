"""The real pynvml against the fake: what is refused, injected, shared between processes and left behind by them."""

from __future__ import annotations

import ctypes
import json
import signal
import subprocess
from typing import TYPE_CHECKING, Any

import pytest

from tests.fake_nvml.asking import PREAMBLE, ask
from tests.fake_nvml.build import LIBRARY
from tests.fake_nvml.control import CODES, Fake
from tests.fake_nvml.devices import A100

if TYPE_CHECKING:
    from collections.abc import Callable


def test_no_driver_and_no_init(fake: Fake) -> None:
    code = "import pynvml as n\ntry: n.nvmlInit()\nexcept n.NVMLError as e: print(type(e).__name__)"
    fake.path.rename(fake.path.with_suffix(".away"))
    assert fake.python(code).stdout.strip() == "NVMLError_DriverNotLoaded"
    fake.path.with_suffix(".away").rename(fake.path)
    assert ask(fake, "n.nvmlShutdown(); tell(attempt(n.nvmlDeviceGetCount))") == "NVMLError_Uninitialized"


def test_two_processes_share_the_driver(fake: Fake) -> None:
    code = PREAMBLE + "for line in sys.stdin: tell(eval(line))"
    with fake.popen(code) as a, fake.popen(code) as b:
        assert a.stdin and a.stdout and b.stdin and b.stdout

        def say(who: subprocess.Popen[str], line: str) -> Any:
            print(line, file=who.stdin, flush=True)
            return json.loads(who.stdout.readline())  # type: ignore[union-attr]

        say(a, "n.nvmlDeviceSetGpuLockedClocks(h, 900, 900)")
        assert say(b, "n.nvmlDeviceGetClockInfo(h, n.NVML_CLOCK_SM)") == 900
        assert fake.lock_of(0) == (900, 900)
        say(b, "n.nvmlDeviceResetGpuLockedClocks(h)")
        assert say(a, "n.nvmlDeviceGetClockInfo(h, n.NVML_CLOCK_SM)") == A100.idle_mhz
        assert fake.lock_of(0) is None
        entries = fake.audit("lock", "reset")
        assert [(e.kind, e.pid, e.low, e.high, e.code) for e in entries] == [
            ("lock", a.pid, 900, 900, 0),
            ("reset", b.pid, 0, 0, 0),
        ]
        assert entries[0].t_ns < entries[1].t_ns
        for process in (a, b):
            process.stdin.close()  # type: ignore[union-attr]
    assert [e.kind for e in fake.audit("init")] == ["init", "init"]


@pytest.mark.parametrize(
    ("low", "high", "answer", "clock"),
    [
        (1200, 1200, None, 1200),
        (1207, 1207, None, 1200),
        (900, 1410, None, 1410),
        (1425, 1425, "NVMLError_InvalidArgument", None),
        (1000, 900, "NVMLError_InvalidArgument", None),
    ],
)
def test_what_a_lock_does(fake: Fake, low: int, high: int, answer: str | None, clock: int | None) -> None:
    code = "tell([attempt(n.nvmlDeviceSetGpuLockedClocks, h, int(sys.argv[1]), int(sys.argv[2]))])"
    assert ask(fake, code, str(low), str(high)) == [answer]
    assert fake.audit("lock")[0].code == (0 if answer is None else CODES["INVALID_ARGUMENT"])
    fake.start_load(0)
    assert fake.truth(0).clock_mhz == (clock or A100.default_mhz)


def test_gpus_without_locks_or_without_clocks(make_fake: Callable[..., Fake]) -> None:
    fake = make_fake("P100", A100.but(clocks_mhz=()))
    code = """
locked = [attempt(n.nvmlDeviceSetGpuLockedClocks, h, 1000, 1000) for h in gpus]
reset = [attempt(n.nvmlDeviceResetGpuLockedClocks, h) for h in gpus]
tell([locked, reset, n.nvmlDeviceGetSupportedGraphicsClocks(gpus[1], 1215)])
"""
    refused = "NVMLError_NotSupported"
    assert ask(fake, code) == [[refused, refused], [refused, None], []]


def test_locks_outlive_their_process_and_loads_do_not(fake: Fake) -> None:
    code = """
n.nvmlDeviceSetGpuLockedClocks(h, 1005, 1005)
tell("locked")
kernel(0, 60.0)
"""
    with fake.popen(PREAMBLE + code) as process:
        assert process.stdout is not None
        process.stdout.readline()
        fake.wait_until(lambda truth: truth.busy > 0)
        process.send_signal(signal.SIGKILL)
    fake.wait_until(lambda truth: not truth.busy)  # seen at one of the next looks
    assert fake.lock_of(0) == (1005, 1005)
    assert fake.truth(0).clients == 0
    assert [(e.kind, e.pid) for e in fake.audit("lock", "reset")] == [("lock", process.pid)]
    assert fake.kernels() == []


def test_a_process_that_dies_inside_blocks_nobody(fake: Fake) -> None:
    code = """
import ctypes, os, sys
lib = ctypes.CDLL("libnvidia-ml.so.1")
lib.fake_attach.restype = ctypes.c_void_p
lib.fake_hold_mutex(ctypes.c_void_p(lib.fake_attach(sys.argv[1].encode())))
os._exit(0)
"""
    fake.python(code, str(fake.path))
    assert ask(fake, "tell(n.nvmlDeviceGetName(h))") == A100.name
    assert fake.truth(0).busy == 0


def test_processes_killed_at_any_moment_leave_a_working_driver(fake: Fake) -> None:
    code = """
import ctypes
lib = ctypes.CDLL("libnvidia-ml.so.1")
lib.fake_kernel.argtypes = [ctypes.c_int, ctypes.c_double, ctypes.c_double]
lib.nvmlInit_v2()
print("running", flush=True)
while True:
    lib.nvmlDeviceSetGpuLockedClocks(ctypes.c_void_p(0x1000), 900, 900)
    lib.fake_kernel(0, 0.0002, 0.0001)
"""
    for _ in range(4):
        processes = [fake.popen(code) for _ in range(3)]
        for process in processes:
            assert process.stdout is not None
            process.stdout.readline()
        for process in processes:
            process.kill()
            process.communicate()
    truth = fake.wait_until(lambda truth: not truth.clients)
    assert (truth.busy, truth.clock_mhz) == (0, 900)
    assert ask(fake, "tell(n.nvmlDeviceGetName(h))") == A100.name


def test_every_call_is_counted(fake: Fake) -> None:
    ask(fake, "n.nvmlDeviceGetFieldValues(h, [186, 83]); tell([n.nvmlDeviceGetName(h) for _ in range(3)])")
    called = fake.called()
    assert list(called)[:3] == ["nvmlInitWithFlags", "nvmlDeviceGetCount_v2", "nvmlDeviceGetHandleByIndex_v2"]
    assert {k: v for k, v in called.items() if k not in list(called)[:3]} == {
        "nvmlDeviceGetFieldValues": 1,
        "field:186": 1,
        "field:83": 1,
        "nvmlDeviceGetName": 3,
    }


def test_injected_errors_come_after_n_calls_and_end_after_some(fake: Fake) -> None:
    errors = {
        "INVALID_ARGUMENT": "InvalidArgument",
        "NOT_SUPPORTED": "NotSupported",
        "NO_PERMISSION": "NoPermission",
        "TIMEOUT": "Timeout",
        "GPU_IS_LOST": "GpuIsLost",
        "UNKNOWN": "Unknown",
    }
    for i, code in enumerate(errors):
        fake.fail("nvmlDeviceGetPowerUsage", code, after=2 + i, times=1)
    seen = ask(fake, "tell([attempt(n.nvmlDeviceGetPowerUsage, h) for _ in range(9)])")
    assert seen == [46000, 46000, *(f"NVMLError_{name}" for name in errors.values()), 46000]
    assert fake.calls("nvmlDeviceGetPowerUsage") == 9


def test_faults_are_for_a_gpu_a_process_a_function_or_a_field(make_fake: Callable[..., Fake]) -> None:
    fake = make_fake("A100", "A100")
    fake.fail("nvmlDeviceGetTemperature", "UNKNOWN", gpu=1)
    fake.fail("nvmlDeviceGetClockInfo", "TIMEOUT", pid=1)
    fake.fail("nvmlDeviceGetHandleByIndex", "GPU_IS_LOST", after=2)  # the version suffix is not needed
    fake.fail("field:186", "NO_DATA")
    seen = ask(
        fake,
        """tell([attempt(n.nvmlDeviceGetTemperature, gpus[0], 0), attempt(n.nvmlDeviceGetTemperature, gpus[1], 0),
                 attempt(n.nvmlDeviceGetClockInfo, h, 1), attempt(n.nvmlDeviceGetHandleByIndex, 0),
                 [v.nvmlReturn for v in n.nvmlDeviceGetFieldValues(h, [185, 186, 83, 9999])],
                 attempt(n.nvmlDeviceGetTemperatureV, gpus[1], 0)])""",
    )
    assert isinstance(seen[0], int)
    assert seen[1:4] == ["NVMLError_Unknown", A100.idle_mhz, "NVMLError_GpuIsLost"]
    assert seen[4] == [0, CODES["NO_DATA"], 0, CODES["NOT_SUPPORTED"]]
    assert isinstance(seen[5], int)
    fake.clear_faults()
    assert isinstance(ask(fake, "tell(attempt(n.nvmlDeviceGetTemperature, gpus[1], 0))"), int)


def test_no_permission_is_audited(fake: Fake) -> None:
    fake.fail("nvmlDeviceSetGpuLockedClocks", "NO_PERMISSION")
    fake.fail("nvmlDeviceResetGpuLockedClocks", "NO_PERMISSION")
    code = "tell([attempt(n.nvmlDeviceSetGpuLockedClocks, h, 900, 900), attempt(n.nvmlDeviceResetGpuLockedClocks, h)])"
    assert ask(fake, code) == ["NVMLError_NoPermission"] * 2
    assert [(e.kind, e.code) for e in fake.audit("lock", "reset")] == [("lock", 4), ("reset", 4)]
    assert fake.lock_of(0) is None


def test_failing_init_and_delays(fake: Fake) -> None:
    fake.fail("nvmlInitWithFlags", "DRIVER_NOT_LOADED", times=1)
    code = "import pynvml as n\ntry: n.nvmlInit()\nexcept n.NVMLError as e: print(type(e).__name__)"
    assert fake.python(code).stdout.strip() == "NVMLError_DriverNotLoaded"
    fake.delay("nvmlDeviceSetGpuLockedClocks", 0.2)
    ask(fake, "tell(n.nvmlDeviceSetGpuLockedClocks(h, 900, 900))")
    init, lock = fake.audit("init", "lock")
    assert lock.t_ns - init.t_ns >= 200_000_000  # by the fake's own log


def test_a_missing_symbol(fake: Fake) -> None:
    fake.remove_symbols("nvmlDeviceGetTotalEnergyConsumption", "nvmlDeviceGetCurrentClocksEventReasons")
    seen = ask(
        fake,
        """tell([attempt(call, h) for call in (n.nvmlDeviceGetTotalEnergyConsumption,
                 n.nvmlDeviceGetCurrentClocksEventReasons, n.nvmlDeviceGetCurrentClocksThrottleReasons)])""",
    )
    assert seen == ["NVMLError_FunctionNotFound", "NVMLError_FunctionNotFound", 1]


def test_a_lost_gpu(make_fake: Callable[..., Fake]) -> None:
    fake = make_fake("A100", "A100")
    code = """
tell("handles taken")
sys.stdin.readline()
seen = [attempt(n.nvmlDeviceGetName, g) for g in gpus] + [attempt(n.nvmlDeviceGetHandleByIndex, 1)]
try: kernel(1, 0.01)
except RuntimeError as error: tell([*seen, str(error)])
"""
    with fake.popen(PREAMBLE + code) as process:
        assert process.stdin and process.stdout
        process.stdout.readline()
        fake.lose(1)
        seen = json.loads(process.communicate("\n", timeout=60)[0])
    lost = "NVMLError_GpuIsLost"
    assert seen == [A100.name, lost, lost, "CUDA error on GPU 1: NVML code 15"]


def test_mig(make_fake: Callable[..., Fake]) -> None:
    fake = make_fake("A100", "V100")
    fake.set_mig(0, instances=2)
    seen = ask(
        fake,
        """
slices = [n.nvmlDeviceGetMigDeviceHandleByIndex(h, i) for i in range(2)]
uuids = [n.nvmlDeviceGetUUID(s) for s in slices]
tell({
    "mode": n.nvmlDeviceGetMigMode(h), "uuids": uuids, "power": attempt(n.nvmlDeviceGetPowerUsage, slices[0]),
    "third": attempt(n.nvmlDeviceGetMigDeviceHandleByIndex, h, 2), "v100": attempt(n.nvmlDeviceGetMigMode, gpus[1]),
    "found": number(n.nvmlDeviceGetHandleByUUID(uuids[1])) == number(slices[1]),
    "parent": number(n.nvmlDeviceGetDeviceHandleFromMigDeviceHandle(slices[1])) == number(h),
})
""",
    )
    assert seen["mode"] == [1, 1]
    assert all(u.startswith("MIG-") for u in seen["uuids"])
    assert len(set(seen["uuids"])) == 2
    assert (seen["third"], seen["found"], seen["parent"]) == ("NVMLError_NotFound", True, True)
    assert seen["power"] == seen["v100"] == "NVMLError_NotSupported"


def test_processes_on_a_gpu(fake: Fake) -> None:
    fake.add_process(0, 4242, 3 << 30)
    code = """
def shown(): return [[p.pid, p.usedGpuMemory] for p in n.nvmlDeviceGetComputeRunningProcesses(h)]
before = shown()
hold_context(n.nvmlDeviceGetUUID(h))
tell([os.getpid(), before, shown(), n.nvmlDeviceGetClockInfo(h, 1), n.nvmlDeviceGetPerformanceState(h)])
"""
    pid, before, during, clock, pstate = ask(fake, code)
    assert before == [[4242, 3 << 30]]
    assert sorted(p for p, _ in during) == sorted([4242, pid])
    assert (clock, pstate) == (A100.default_mhz, 0)
    fake.remove_process(0, 4242)
    fake.wait_until(lambda truth: not truth.clients)  # the asker is gone; seen at one of the next looks
    assert ask(fake, "tell(n.nvmlDeviceGetComputeRunningProcesses(h))") == []


def test_the_power_limit_can_be_set_within_its_constraints(fake: Fake) -> None:
    code = "tell([attempt(n.nvmlDeviceSetPowerManagementLimit, h, mw) for mw in (250000, 50000)])"
    assert ask(fake, code) == [None, "NVMLError_InvalidArgument"]
    assert fake.truth(0).limit_mw == 250000
    assert [(e.low, e.code) for e in fake.audit("limit")] == [(250000, 0), (50000, 2)]


def test_wrong_struct_versions_are_refused(fake: Fake) -> None:
    assert ask(fake, "tell(attempt(n.nvmlDeviceGetMemoryInfo, h, 7))") == "NVMLError_ArgumentVersionMismatch"


def test_control_does_not_bring_the_library_into_this_process(fake: Fake) -> None:
    assert fake.truth(0).power_w == A100.idle_w
    with pytest.raises(OSError, match=LIBRARY):
        ctypes.CDLL(LIBRARY)
