"""The kinds of GPU that the fake can be. Clock lists and limits follow public captures; the physics is invented."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass, fields, replace

GIB = 1 << 30
MAX_CLOCKS = 320
MAX_MEM_CLOCKS = 4


def steps(high: int, low: int, step: float) -> tuple[int, ...]:
    """Clocks from ``high`` down to ``low``, counted upwards from ``low`` and truncated to whole MHz."""
    n = round((high - low) / step)
    return tuple(sorted({int(low + k * step) for k in range(n + 1)} | {high}, reverse=True))


@dataclass(frozen=True, slots=True)
class Device:
    """One kind of GPU: what NVML says of it, and the truth behind the readings.

    Power is ``context_w + compute * D + memory * (memory_w + memory_sm_share * D)`` with the shares of time in either
    phase and ``D = dynamic_w * x * max(v_floor, 1 - v_slope * (1 - x))**2``, ``x = clock / max_mhz``. The sensor is
    read every ``sensor_period_s`` and shows the mean over the window that belongs to the call.
    """

    name: str
    architecture: int
    cc: tuple[int, int]
    clocks_mhz: tuple[int, ...]
    mem_clocks_mhz: tuple[int, ...]
    default_mhz: int
    idle_mhz: int
    limit_w: float
    min_limit_w: float
    max_limit_w: float
    memory_bytes: int
    idle_w: float
    context_w: float
    dynamic_w: float
    memory_w: float
    usage_window_s: float
    instant_window_s: float
    sensor_period_s: float
    energy_period_s: float
    energy_quantum_mj: int = 1
    energy_offset_mj: int = 123_456_789
    average_window_s: float = 1.0
    memory_sm_share: float = 0.35
    v_floor: float = 0.7
    v_slope: float = 0.6
    slowdown_c: int = 89
    brand: int = 2
    pci_device_id: int = 0x20B010DE
    has_energy_counter: bool = True
    has_locks: bool = True
    has_instant_power: bool = True
    has_mig: bool = False
    noisy_idle_reasons: int = 0

    @property
    def max_mhz(self) -> int:
        """The highest clock of the list, or the default clock where the list is empty."""
        return max(self.clocks_mhz, default=self.default_mhz)

    def dynamic_power_w(self, mhz: float) -> float:
        """The part of the power that goes with the clock, W: what the C side computes, written a second time."""
        x = mhz / self.max_mhz
        return self.dynamic_w * x * max(self.v_floor, 1 - self.v_slope * (1 - x)) ** 2

    def kernel_time_s(self, mhz: float, compute_s: float, memory_s: float) -> float:
        """How long ``fake_kernel`` runs at a clock, s."""
        return compute_s * self.max_mhz / mhz + memory_s

    def kernel_power_w(self, mhz: float, compute_s: float, memory_s: float) -> float:
        """Power while ``fake_kernel`` runs at a clock, W, no cap considered."""
        total = self.kernel_time_s(mhz, compute_s, memory_s)
        compute, memory, d = compute_s * self.max_mhz / mhz / total, memory_s / total, self.dynamic_power_w(mhz)
        return self.context_w + compute * d + memory * (self.memory_w + self.memory_sm_share * d)

    def achieved_mhz(
        self, requested_mhz: int | None, compute_s: float, memory_s: float, limit_w: float | None = None
    ) -> int:
        """The clock that ``fake_kernel`` gets: the highest supported one within the request and the power limit."""
        ceiling = self.default_mhz if requested_mhz is None else requested_mhz
        limit = self.limit_w if limit_w is None else limit_w
        allowed = [c for c in self.clocks_mhz if c <= ceiling]
        held = [c for c in allowed if self.kernel_power_w(c, compute_s, memory_s) <= limit]
        return max(held, default=min(self.clocks_mhz))

    def but(self, **changes: object) -> Device:
        """The same kind of GPU with some fields changed."""
        return replace(self, **changes)  # type: ignore[arg-type]


class CProfile(ctypes.Structure):
    """``profile_t`` of state.h, field by field."""

    _fields_ = [
        ("name", ctypes.c_char * 96),
        *((n, ctypes.c_uint32) for n in ("architecture", "cc_major", "cc_minor", "brand", "pci_device_id")),
        *((n, ctypes.c_uint32) for n in ("has_energy_counter", "has_locks", "has_instant_power", "has_mig")),
        ("n_clocks", ctypes.c_uint32),
        ("clocks", ctypes.c_uint32 * MAX_CLOCKS),
        ("n_mem_clocks", ctypes.c_uint32),
        ("mem_clocks", ctypes.c_uint32 * MAX_MEM_CLOCKS),
        *((n, ctypes.c_uint32) for n in ("default_mhz", "max_mhz", "idle_mhz")),
        *((n, ctypes.c_uint32) for n in ("limit_mw", "default_limit_mw", "min_limit_mw", "max_limit_mw")),
        *((n, ctypes.c_uint32) for n in ("slowdown_c", "noisy_idle_reasons")),
        ("memory_bytes", ctypes.c_uint64),
        *((n, ctypes.c_double) for n in ("idle_w", "context_w", "dynamic_w", "memory_w", "memory_sm_share")),
        *((n, ctypes.c_double) for n in ("v_floor", "v_slope")),
        *((n, ctypes.c_double) for n in ("sensor_period_s", "usage_window_s", "instant_window_s", "average_window_s")),
        ("energy_period_s", ctypes.c_double),
        ("energy_quantum_mj", ctypes.c_uint64),
        ("energy_offset_mj", ctypes.c_uint64),
    ]


def to_c(device: Device) -> CProfile:
    """The C struct of a device."""
    c = CProfile()
    known = {name for name, *_ in CProfile._fields_}
    for f in fields(device):
        if f.name in known and f.name != "name":
            setattr(c, f.name, getattr(device, f.name))
    c.name = device.name.encode()
    c.cc_major, c.cc_minor = device.cc
    c.max_mhz = device.max_mhz
    c.n_clocks = len(device.clocks_mhz)
    c.clocks[: c.n_clocks] = device.clocks_mhz
    c.n_mem_clocks = len(device.mem_clocks_mhz)
    c.mem_clocks[: c.n_mem_clocks] = device.mem_clocks_mhz
    for name in ("limit", "min_limit", "max_limit"):
        setattr(c, f"{name}_mw", round(getattr(device, f"{name}_w") * 1000))
    c.default_limit_mw = c.limit_mw
    return c


A100 = Device(
    "NVIDIA A100-SXM4-40GB", 7, (8, 0), steps(1410, 210, 15), (1215,), 1410, 210, 400, 100, 400, 40 * GIB,
    idle_w=46, context_w=62, dynamic_w=310, memory_w=95, usage_window_s=0.025, instant_window_s=0.025,
    sensor_period_s=0.1, energy_period_s=0.1, has_mig=True,
)  # fmt: skip
H100 = Device(
    "NVIDIA H100 80GB HBM3", 9, (9, 0), steps(1980, 345, 15), (2619, 1593), 1980, 345, 700, 200, 700, 80 * GIB,
    idle_w=70, context_w=118, dynamic_w=620, memory_w=170, usage_window_s=1.0, instant_window_s=0.025,
    sensor_period_s=0.1, energy_period_s=0.1, has_mig=True, pci_device_id=0x233010DE,
)  # fmt: skip
A40 = Device(
    "NVIDIA A40", 7, (8, 6), steps(1740, 210, 15), (7251, 6501, 810, 405), 1740, 210, 300, 100, 300, 48 * GIB,
    idle_w=30, context_w=78, dynamic_w=262, memory_w=70, usage_window_s=1.0, instant_window_s=0.1,
    sensor_period_s=0.1, energy_period_s=0.1, pci_device_id=0x223510DE, noisy_idle_reasons=0x4,
)  # fmt: skip
V100 = Device(
    "Tesla V100-SXM2-16GB", 5, (7, 0), steps(1530, 135, 7.5), (877,), 1530, 135, 300, 150, 300, 16 * GIB,
    idle_w=40, context_w=57, dynamic_w=225, memory_w=60, usage_window_s=0.01, instant_window_s=0.01,
    sensor_period_s=0.02, energy_period_s=0.02, has_instant_power=False, pci_device_id=0x1DB110DE,
)  # fmt: skip
P100 = Device(
    "Tesla P100-SXM2-16GB", 4, (6, 0), steps(1480, 544, 12.65), (715,), 1480, 405, 300, 150, 300, 16 * GIB,
    idle_w=31, context_w=38, dynamic_w=205, memory_w=45, usage_window_s=0.01, instant_window_s=0.01,
    sensor_period_s=0.02, energy_period_s=0.02, has_energy_counter=False, has_locks=False, has_instant_power=False,
    pci_device_id=0x15F910DE,
)  # fmt: skip

DEVICES = {"A100": A100, "H100": H100, "A40": A40, "V100": V100, "P100": P100}
