"""The CPU as a device: n processes train for real; power only where Intel's RAPL counters may be read."""

from __future__ import annotations

import math
import os
import platform
import time
from pathlib import Path

from pfprofile.device.base import Reading
from pfprofile.errors import HardwareError

CPUINFO = Path("/proc/cpuinfo")
MEMINFO = Path("/proc/meminfo")
POWERCAP = Path("/sys/class/powercap")


class RaplCounter:
    """The packages' energy counters, summed and unwrapped (they restart at max_energy_range_uj)."""

    def __init__(self, root: Path = POWERCAP) -> None:
        packages = [p for p in sorted(root.glob("intel-rapl:*")) if p.name.count(":") == 1]
        self._files = [p / "energy_uj" for p in packages if _readable_number(p / "energy_uj") is not None]
        self._ranges = [_readable_number(p.parent / "max_energy_range_uj") for p in self._files]
        self._last = [_readable_number(f) or 0 for f in self._files]
        self._total_uj = 0

    def energy_j(self) -> float | None:
        """Joules since this counter was made; None where there are no readable counters."""
        if not self._files:
            return None
        for i, file in enumerate(self._files):
            now = _readable_number(file)
            if now is None:
                return None
            step = now - self._last[i]
            self._total_uj += step if step >= 0 else step + (self._ranges[i] or 0)
            self._last[i] = now
        return self._total_uj / 1e6


def _readable_number(path: Path) -> int | None:
    try:
        return int(path.read_text(encoding="ascii"))
    except (OSError, ValueError):
        return None


def cpu_name(cpuinfo: Path = CPUINFO) -> str:
    """The model name of /proc/cpuinfo; the architecture where it has none (ARM)."""
    if cpuinfo.is_file():
        for line in cpuinfo.read_text(encoding="utf-8", errors="replace").splitlines():
            key, _, value = line.partition(":")
            if key.strip() == "model name" and value.strip():
                return " ".join(value.split())
    return f"{platform.machine() or 'unknown'} CPU"


def available_bytes(meminfo: Path = MEMINFO) -> float:
    """Memory that may be used without swapping (MemAvailable); infinite where the kernel does not tell."""
    if meminfo.is_file():
        for line in meminfo.read_text(encoding="ascii").splitlines():
            if line.startswith("MemAvailable:"):
                return float(line.split()[1]) * 1024
    return math.inf


class CpuDevice:
    """This machine's cores; one rank computes on one core, as a rank on a GPU machine computes on one GPU."""

    kind = "cpu"
    uuids: tuple[str, ...] = ()
    driver_version: str | None = None
    supported_clocks_mhz: tuple[float, ...] = ()
    default_clock_mhz: float | None = None
    power_limit_w: float | None = None
    power_limit_range_w: tuple[float, ...] = ()
    sensors_are_shared = False  # the unwrapped counter is this object's
    opener = ""

    def __init__(self) -> None:
        self.name = cpu_name()
        self.count = len(os.sched_getaffinity(0))
        self._rapl = RaplCounter()
        self._last: tuple[float, float] | None = None

    def read(self, index: int) -> Reading:
        """The whole package's energy under device 0; nothing under the others, lest it be counted once a core."""
        energy_j = self._rapl.energy_j() if index == 0 else None
        if energy_j is None:
            return Reading()
        now_s = time.monotonic()
        power_w = None
        if self._last is not None and now_s > self._last[0]:
            power_w = (energy_j - self._last[1]) / (now_s - self._last[0])
        self._last = (now_s, energy_j)
        return Reading(power_w=power_w, energy_j=energy_j)

    def lock_trouble(self) -> str | None:
        """Always: a CPU's clocks are not ours to lock."""
        return "clocks are not chosen on a CPU"

    def lock_clock(self, index: int, clock_mhz: float) -> None:
        """Never possible. Raises HardwareError."""
        raise HardwareError("clocks are not chosen on a CPU", "leave --freqs out")

    def reset_clock(self, index: int) -> None:
        """Nothing was locked."""

    def others(self, index: int) -> list[str]:
        """A CPU is always shared."""
        return []

    def refusal(self, index: int) -> str | None:
        """Any CPU will do."""
        return None

    def rank_environment(self, n_gpus: int) -> dict[str, str]:
        """Ranks on the CPU must not grab a GPU."""
        return {"CUDA_VISIBLE_DEVICES": ""}

    def close(self) -> None:
        """Nothing is held."""
