"""A device and a pynvml in plain Python."""

import time
from types import SimpleNamespace

from pfprofile.device.base import Reading, RefusedError
from pfprofile.errors import HardwareError


def open_fake(uuids):
    """What a watchdog opens: another FakeDevice, whose locks are its own."""
    return FakeDevice()


class FakeDevice:
    """Two GPUs with three clocks; power follows the clock; every lock and reset is noted."""

    kind = "cuda"
    name = "NVIDIA Test GPU"
    uuids = ("GPU-a", "GPU-b")
    count = 2
    driver_version = "1.0"
    supported_clocks_mhz = (600.0, 1005.0, 1410.0)
    default_clock_mhz = 1410.0
    power_limit_w = 300.0
    power_limit_range_w = (100.0, 300.0)
    sensors_are_shared = False
    opener = "tests.support.fakes:open_fake"

    def __init__(self, refuse=None, cap_mhz=1410.0, busy=(), lost_after=None):
        self.refuse, self.cap_mhz, self.busy, self.lost_after = refuse, cap_mhz, list(busy), lost_after
        self.locked = {}
        self.audit = []
        self.looks = 0
        self.closed = False

    def clock(self, index):
        return min(self.locked.get(index, 1410.0), self.cap_mhz)

    def read(self, index):
        self.looks += 1
        if self.lost_after is not None and self.looks > self.lost_after:
            raise HardwareError("GPU is lost")
        power_w = 100.0 + self.clock(index) / 10
        limits = frozenset({"power"}) if self.clock(index) < self.locked.get(index, 0) else frozenset()
        return Reading(power_w, power_w * time.monotonic(), self.clock(index), 50.0, limits)

    def lock_trouble(self):
        return None

    def lock_clock(self, index, clock_mhz):
        if self.refuse:
            raise RefusedError(self.refuse)
        self.locked[index] = clock_mhz
        self.audit.append(("lock", index, clock_mhz))

    def reset_clock(self, index):
        self.locked.pop(index, None)
        self.audit.append(("reset", index))

    def others(self, index):
        return self.busy

    def refusal(self, index):
        return None

    def rank_environment(self, n_gpus):
        return {"CUDA_VISIBLE_DEVICES": ""}

    def close(self):
        self.closed = True


class NVMLError(Exception):
    """As pynvml's: carries its code."""

    def __init__(self, value, words="error"):
        super().__init__(words)
        self.value = value


class FakePynvml(SimpleNamespace):
    """What NvmlDevice needs of pynvml, with bytes for strings; ``faults`` maps a function's name to an error code."""

    NVMLError = NVMLError
    NVML_ERROR_NO_PERMISSION = 4
    NVML_ERROR_GPU_IS_LOST = 15
    NVML_CLOCK_SM = 1
    NVML_TEMPERATURE_GPU = 0
    GPUS = ("GPU-aaaa", "GPU-abbb", "GPU-cccc")

    def __init__(self, faults=None, lacks=()):
        super().__init__(faults=faults or {}, locks=[])
        values = {
            "nvmlInit": lambda: None,
            "nvmlShutdown": lambda: None,
            "nvmlSystemGetDriverVersion": lambda: b"550.54",
            "nvmlDeviceGetCount": lambda: 3,
            "nvmlDeviceGetHandleByIndex": lambda i: i,
            "nvmlDeviceGetUUID": lambda h: self.GPUS[h].encode(),
            "nvmlDeviceGetName": lambda h: b"NVIDIA A100-SXM4-40GB",
            "nvmlDeviceGetSupportedMemoryClocks": lambda h: [1215, 877],
            "nvmlDeviceGetSupportedGraphicsClocks": lambda h, m: [1380, 1372, 1365] if m == 1215 else [900],
            "nvmlDeviceGetMaxClockInfo": lambda h, k: 1380,
            "nvmlDeviceGetEnforcedPowerLimit": lambda h: 400_000,
            "nvmlDeviceGetPowerManagementLimitConstraints": lambda h: [100_000, 400_000],
            "nvmlDeviceGetPowerUsage": lambda h: 250_500,
            "nvmlDeviceGetTotalEnergyConsumption": lambda h: 7_000,
            "nvmlDeviceGetClockInfo": lambda h, k: 1372,
            "nvmlDeviceGetTemperature": lambda h, k: 61,
            "nvmlDeviceGetCurrentClocksEventReasons": lambda h: 0x24,
            "nvmlDeviceSetGpuLockedClocks": lambda h, low, high: self.locks.append((h, low, high)),
            "nvmlDeviceResetGpuLockedClocks": lambda h: self.locks.append((h,)),
            "nvmlDeviceGetComputeRunningProcesses": lambda h: [SimpleNamespace(pid=1)],
        }
        for name, function in values.items():
            if name not in lacks:
                setattr(self, name, self._guarded(name, function))

    def _guarded(self, name, function):
        def call(*arguments):
            if name in self.faults:
                raise NVMLError(self.faults[name], f"{name} failed")
            return function(*arguments)

        return call
