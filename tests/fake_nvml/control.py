"""Sets the stage of the fake ``libnvidia-ml.so.1`` and reads its truth.

A test makes a `Fake` (fixtures in plugin.py), gives `Fake.env` to the processes under test and drives the state from
outside while they run. Workers call `tests.fake_nvml.worker.kernel`, or ``fake_kernel`` of the library itself.
"""

from __future__ import annotations

import ctypes
import math
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.fake_nvml.build import CONTROL, LIBRARY, link, load
from tests.fake_nvml.devices import DEVICES, Device, to_c
from tests.fake_nvml.records import KINDS, Audit, CAudit, CKernel, CTruth, Kernel, Truth

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

REPOSITORY = Path(__file__).parents[2]

# NVML return codes that tests inject, by name.
CODES = {
    "UNINITIALIZED": 1, "INVALID_ARGUMENT": 2, "NOT_SUPPORTED": 3, "NO_PERMISSION": 4, "NOT_FOUND": 6,
    "DRIVER_NOT_LOADED": 9, "TIMEOUT": 10, "GPU_IS_LOST": 15, "NO_DATA": 21, "UNKNOWN": 999,
}  # fmt: skip
_SETTINGS = (
    "limit_mw", "lost", "temperature", "mig", "mig_instances", "virtualization", "power_reading_mw", "thermal_mhz",
    "thermal_reason", "locks_ignored", "lock_mhz", "reset_lock", "reset_counter", "idle_noise",
    "sensor_gain_ppm",
)  # fmt: skip


def gpu_uuid(index: int) -> str:
    """UUID of the fake GPU at an NVML index; no two begin alike."""
    return f"GPU-{0x5E1F0000 + 0x01010101 * index:08x}-fa4e-4b1d-9c0d-{index:012x}"


class Fake:
    """One fake driver with its GPUs, seen from outside.

    Args:
        folder: a new folder for the state file (and libraries without some symbols).
        library: the folder that `build` filled.
        devices: the GPUs in NVML order, as `Device` or names of `DEVICES`.
        driver: driver version.
        cuda: CUDA driver version as NVML tells it (13000 is 13.0).
    """

    def __init__(
        self,
        folder: Path,
        library: Path,
        devices: Sequence[Device | str] = ("A100",),
        driver: str = "580.95.05",
        cuda: int = 13000,
    ) -> None:
        self.folder, self.build_folder, self.library_folder = folder, library, library
        self.path = folder / "nvml.state"
        self.devices = tuple(DEVICES[d] if isinstance(d, str) else d for d in devices)
        folder.mkdir(parents=True, exist_ok=True)
        self._lib = load(library / CONTROL)
        self._state = self._lib.fake_create(str(self.path).encode(), driver.encode(), cuda)
        if not self._state:
            raise RuntimeError(f"cannot create {self.path}")
        for i, device in enumerate(self.devices):
            profile = to_c(device)
            serial = f"13{i:011d}".encode()
            if self._lib.fake_add_gpu(self._state, profile, gpu_uuid(i).encode(), serial, 0x07 + 8 * i) != i:
                raise RuntimeError(f"no room for GPU {i}")
        self.made_ns = int(self._lib.fake_created_ns(self._state))

    def close(self) -> None:
        """Unmap the state. Processes that have it go on with it."""
        if self._state:
            self._lib.fake_detach(self._state)
            self._state = None

    # ---- the processes under test ----

    @property
    def env(self) -> dict[str, str]:
        """The environment in which a process finds this fake: a copy of ours and the two variables."""
        env = dict(os.environ)
        old = env.get("LD_LIBRARY_PATH")
        env["LD_LIBRARY_PATH"] = os.pathsep.join(filter(None, [str(self.library_folder), old]))
        env["FAKE_NVML_STATE"] = str(self.path)
        env["PYTHONPATH"] = os.pathsep.join(filter(None, [str(REPOSITORY), env.get("PYTHONPATH")]))
        return env

    def python(
        self, code: str, *args: str, check: bool = True, timeout: float = 60
    ) -> subprocess.CompletedProcess[str]:
        """Run Python code in a process that finds this fake; raises with its stderr when it fails and ``check``."""
        done = subprocess.run(
            [sys.executable, "-c", code, *args],
            env=self.env,
            capture_output=True,
            text=True,
            timeout=timeout,
            check=False,
        )
        if check and done.returncode:
            raise AssertionError(f"exit {done.returncode}\n{done.stdout}\n{done.stderr}")
        return done

    def popen(self, code: str, *args: str, **options: Any) -> subprocess.Popen[str]:
        """Start Python code that finds this fake, its stdin and stdout piped as text."""
        return subprocess.Popen(
            [sys.executable, "-u", "-c", code, *args],
            env=self.env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, **options,
        )  # fmt: skip

    def remove_symbols(self, *names: str) -> None:
        """Processes started from now on find a library that lacks these functions, as an old driver's does."""
        self.library_folder = self.folder / ("lib-without-" + "-".join(names))[:100]
        link(self.build_folder, self.library_folder / LIBRARY, without=names)

    # ---- faults ----

    def fail(
        self,
        function: str,
        code: int | str,
        *,
        after: int = 0,
        times: int = 0,
        gpu: int | None = None,
        pid: int | None = None,
        delay_s: float = 0.0,
    ) -> None:
        """Make ``function`` return ``code``, from its call number ``after`` + 1 on, ``times`` times (0: for ever).

        The name without its version suffix will do. "field:186" is one field of nvmlDeviceGetFieldValues, "fake_kernel"
        the workers' kernel. Calls are counted from now on, over all processes and GPUs that the rule is for.
        """
        value = CODES[code] if isinstance(code, str) else code
        who = (-1 if gpu is None else gpu, -1 if pid is None else pid)
        if self._lib.fake_rule(self._state, function.encode(), value, delay_s, after, times, *who):
            raise RuntimeError("too many rules")

    def delay(self, function: str, seconds: float, *, after: int = 0, times: int = 0, gpu: int | None = None) -> None:
        """Make calls of ``function`` take ``seconds`` longer and then succeed."""
        self.fail(function, 0, after=after, times=times, gpu=gpu, delay_s=seconds)

    def clear_faults(self) -> None:
        """Forget all rules of `fail` and `delay`."""
        self._lib.fake_clear_rules(self._state)

    def _set(self, gpu: int, what: str, value: int) -> None:
        if not 0 <= gpu < len(self.devices):
            raise IndexError(f"no GPU {gpu}")
        self._lib.fake_set(self._state, gpu, _SETTINGS.index(what), value)

    def lose(self, gpu: int, lost: bool = True) -> None:
        """The GPU falls off the bus: every call about it and its kernels fail with GPU_IS_LOST."""
        self._set(gpu, "lost", int(lost))

    def reset_energy(self, gpu: int) -> None:
        """The energy counter starts again at 0, as after a reload of the driver."""
        self._set(gpu, "reset_counter", 0)

    def set_power_reading(self, gpu: int, watts: float | None) -> None:
        """All power readings show this, however absurd; None: the sensor works again."""
        self._set(gpu, "power_reading_mw", -1 if watts is None else round(watts * 1000))

    def set_sensor_gain(self, gpu: int, gain: float) -> None:
        """The power readings are off by this factor; the energy counter stays right."""
        self._set(gpu, "sensor_gain_ppm", round(gain * 1e6))

    # ---- stage ----

    def set_power_limit(self, gpu: int, watts: float) -> None:
        """The enforced limit, set out of band; the default limit stays."""
        self._set(gpu, "limit_mw", round(watts * 1000))

    def set_temperature(self, gpu: int, celsius: int | None) -> None:
        """The temperature reading; None: it follows the power."""
        self._set(gpu, "temperature", -1 if celsius is None else celsius)

    def set_slowdown(self, gpu: int, mhz: int | None, reason: int = 0x20) -> None:
        """Another ceiling on the clock than the power cap, with its event bits (0x20 software thermal, 0x48, 0x88)."""
        self._set(gpu, "thermal_mhz", mhz or 0)
        self._set(gpu, "thermal_reason", reason if mhz else 0)

    def set_locks_ignored(self, gpu: int, ignored: bool = True) -> None:
        """Locks are accepted with SUCCESS and have no effect."""
        self._set(gpu, "locks_ignored", int(ignored))

    def set_mig(self, gpu: int, enabled: bool = True, instances: int = 2) -> None:
        """MIG mode and how many slices it is cut into."""
        self._set(gpu, "mig_instances", instances)
        self._set(gpu, "mig", int(enabled))

    def set_virtualization(self, gpu: int, mode: int) -> None:
        """0 none, 1 passthrough, 2 vGPU, 3 vGPU host, 4 vSGA host."""
        self._set(gpu, "virtualization", mode)

    def set_idle_noise(self, gpu: int, bits: int) -> None:
        """Event bits that flicker while the GPU is idle."""
        self._set(gpu, "idle_noise", bits)

    def lock_clock(self, gpu: int, mhz: int) -> None:
        """Somebody else locks the clock (this process, in the audit)."""
        self._set(gpu, "lock_mhz", mhz)

    def reset_clock(self, gpu: int) -> None:
        """Somebody else releases the clock."""
        self._set(gpu, "reset_lock", 0)

    def add_process(self, gpu: int, pid: int, memory_bytes: int = 1 << 30) -> None:
        """A process that is not ours shows up on the GPU; it loads nothing."""
        if self._lib.fake_foreign(self._state, gpu, pid, memory_bytes):
            raise RuntimeError("too many processes")

    def remove_process(self, gpu: int, pid: int) -> None:
        """It is gone."""
        self._lib.fake_foreign(self._state, gpu, pid, 0)

    def start_load(self, gpu: int, compute: float = 1.0, memory: float = 0.0, pid: int | None = None) -> None:
        """A steady load, shares of time in either phase, in the name of this or another live process."""
        if self._lib.fake_load(self._state, gpu, os.getpid() if pid is None else pid, compute, memory):
            raise RuntimeError("too many clients")

    def stop_load(self, gpu: int, pid: int | None = None) -> None:
        """The load and its context end."""
        self._lib.fake_unload(self._state, gpu, os.getpid() if pid is None else pid)

    # ---- truth ----

    def uuid(self, gpu: int) -> str:
        """UUID of a GPU."""
        return gpu_uuid(gpu)

    def truth(self, gpu: int) -> Truth:
        """What the GPU does right now."""
        c = CTruth()
        self._lib.fake_truth(self._state, gpu, c)
        return Truth(*(getattr(c, field[0]) for field in CTruth._fields_))

    def lock_of(self, gpu: int) -> tuple[int, int] | None:
        """The lock in force, which NVML itself cannot tell: (lowest, highest) MHz."""
        t = self.truth(gpu)
        return (t.lock_min_mhz, t.lock_max_mhz) if t.locked else None

    def energy_j(self, gpu: int, t_ns: int) -> float:
        """True energy since the fake was made, up to a monotonic time, J.

        Raises:
            ValueError: the power has changed 8192 times since; use the energies in the kernel log.
        """
        energy = float(self._lib.fake_energy_at(self._state, gpu, t_ns))
        if math.isnan(energy):
            raise ValueError(f"the power of GPU {gpu} at {t_ns} ns is no longer known")
        return energy

    def audit(self, *kinds: str, since: int = 0) -> list[Audit]:
        """The audit ring, oldest first; only some kinds (lock, reset, limit, init, shutdown) if any are named."""
        buffer = (CAudit * 8192)()
        n = self._lib.fake_audit(self._state, since, len(buffer), buffer)
        entries = [Audit(b.seq, b.t_ns, b.pid, KINDS[b.kind], b.gpu, b.low, b.high, b.code) for b in buffer[:n]]
        return [e for e in entries if not kinds or e.kind in kinds]

    def kernels(self, gpu: int | None = None, since: int = 0) -> list[Kernel]:
        """The log of kernels that ended, oldest first."""
        buffer = (CKernel * 16384)()
        n = self._lib.fake_kernels(self._state, since, len(buffer), buffer)
        names = [field[0] for field in CKernel._fields_]
        entries = [Kernel(*(getattr(b, name) for name in names)) for b in buffer[:n]]
        return [e for e in entries if gpu is None or e.gpu == gpu]

    def wait_until(self, condition: Callable[[Truth], bool], gpu: int = 0, timeout_s: float = 30) -> Truth:
        """Look at a GPU until a condition on its truth holds; the timeout only keeps a broken test from hanging."""
        deadline = time.monotonic() + timeout_s
        while not condition(truth := self.truth(gpu)):
            if time.monotonic() > deadline:
                raise TimeoutError(f"still {truth}")
            time.sleep(0.005)
        return truth

    def calls(self, function: str) -> int:
        """How often a function was called, over all processes."""
        return int(self._lib.fake_calls(self._state, function.encode()))

    def called(self) -> dict[str, int]:
        """Every function (and "field:…") that any process called, in order of the first call, and how often."""
        name, count = ctypes.create_string_buffer(64), ctypes.c_uint64()
        seen: dict[str, int] = {}
        while self._lib.fake_called(self._state, len(seen), name, ctypes.byref(count)):
            seen[name.value.decode()] = count.value
        return seen
