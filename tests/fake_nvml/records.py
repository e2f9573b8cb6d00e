"""What the fake tells: audit entries, the kernel log and a GPU's present truth, with the C structs they come in."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass

KINDS = {1: "lock", 2: "reset", 3: "limit", 4: "init", 5: "shutdown"}


@dataclass(frozen=True, slots=True)
class Audit:
    """One entry of the audit ring: who asked for what, and whether it was granted (``code`` 0)."""

    seq: int
    t_ns: int
    pid: int
    kind: str
    gpu: int
    low: int
    high: int
    code: int


@dataclass(frozen=True, slots=True)
class Kernel:
    """One run of ``fake_kernel``: its true interval on the monotonic clock and the GPU's true energy at both ends."""

    seq: int
    start_ns: int
    end_ns: int
    start_j: float
    end_j: float
    compute_s: float
    memory_s: float
    pid: int
    gpu: int
    clock_mhz: int
    reasons: int

    @property
    def time_s(self) -> float:
        """True duration, s."""
        return (self.end_ns - self.start_ns) / 1e9

    @property
    def power_w(self) -> float:
        """True mean power of the GPU meanwhile, W."""
        return (self.end_j - self.start_j) / self.time_s


@dataclass(frozen=True, slots=True)
class Truth:
    """What a GPU really does at one moment."""

    t_ns: int
    energy_j: float
    power_w: float
    temperature_c: float
    clock_mhz: int
    reasons: int
    busy: int
    locked: int
    lock_min_mhz: int
    lock_max_mhz: int
    limit_mw: int
    clients: int


class CAudit(ctypes.Structure):
    _fields_ = [
        ("seq", ctypes.c_uint64),
        ("t_ns", ctypes.c_int64),
        ("pid", ctypes.c_int32),
        *((n, ctypes.c_uint32) for n in ("kind", "gpu", "low", "high", "code")),
    ]


class CKernel(ctypes.Structure):
    _fields_ = [
        ("seq", ctypes.c_uint64),
        *((n, ctypes.c_int64) for n in ("start_ns", "end_ns")),
        *((n, ctypes.c_double) for n in ("start_j", "end_j", "compute_s", "memory_s")),
        ("pid", ctypes.c_int32),
        *((n, ctypes.c_uint32) for n in ("gpu", "clock_mhz", "reasons")),
    ]


class CTruth(ctypes.Structure):
    _fields_ = [
        ("t_ns", ctypes.c_int64),
        *((n, ctypes.c_double) for n in ("energy_j", "power_w", "temperature_c")),
        *((n, ctypes.c_uint32) for n in ("clock_mhz", "reasons", "busy", "locked")),
        *((n, ctypes.c_uint32) for n in ("lock_min_mhz", "lock_max_mhz", "limit_mw", "clients")),
    ]
