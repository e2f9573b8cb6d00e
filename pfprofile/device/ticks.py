"""The loop that looks at sensors at a steady rate; in a thread or in a process of its own (see `sampler`).

Nothing here needs numpy: the process has to start fast.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, field
from typing import Any, Self

from pfprofile.device.base import Device
from pfprofile.errors import HardwareError

DEFAULT_RATE_HZ = 20.0
#: Looking may take this part of the time; where a look takes longer, looks become rarer.
BUDGET = 0.1
#: Of so many looks the median is taken before the interval is changed.
LOOKS = 3

#: Time (monotonic s), power (W), energy (J), SM clock (MHz), temperature (°C); None = not told.
Row = tuple[float, float | None, float | None, float | None, float | None]


@dataclass(slots=True)
class Ticks:
    """What one window's looks brought, and how punctual they were.

    Attributes:
        rows: one list a device.
        limits: (when, index, what held the clock down).
        late_s: of each tick, how long after its deadline the look began.
        look_s: of each tick, how long looking at all devices took.
        interval_s: between two ticks, at the end.
        missed: ticks that could not be kept.
        cpu_s: what looking cost, s of one core.
        wall_s: from the first look to the last.
        trouble: why it ended early, or None.
    """

    rows: list[list[Row]]
    limits: list[tuple[float, int, list[str]]] = field(default_factory=list)
    late_s: list[float] = field(default_factory=list)
    look_s: list[float] = field(default_factory=list)
    interval_s: float = 1.0 / DEFAULT_RATE_HZ
    missed: int = 0
    cpu_s: float = 0.0
    wall_s: float = 0.0
    trouble: str | None = None

    def message(self) -> dict[str, Any]:
        """As plain JSON values."""
        return asdict(self)

    @classmethod
    def of_message(cls, body: dict[str, Any]) -> Self:
        """What `message` said."""
        rows = [[(r[0], r[1], r[2], r[3], r[4]) for r in rows] for rows in body["rows"]]
        return cls(**{**body, "rows": rows, "limits": [tuple(limit) for limit in body["limits"]]})


def look_until(
    device: Device, n_gpus: int, ended: Callable[[float], bool], cpu_clock: Callable[[], float],
    rate_hz: float = DEFAULT_RATE_HZ,
) -> Ticks:  # fmt: skip
    """Look at the first n devices at absolute deadlines until told to end.

    Args:
        device: whose sensors.
        n_gpus: how many.
        ended: waits so many seconds at most; whether to end.
        cpu_clock: CPU seconds of whoever runs this loop.
        rate_hz: looks a second, where the driver answers fast enough.
    """
    ticks = Ticks([[] for _ in range(n_gpus)], interval_s=1.0 / rate_hz)
    began_s, began_cpu_s = time.monotonic(), cpu_clock()
    next_s = began_s
    while True:
        look_s = time.monotonic()
        ticks.late_s.append(look_s - next_s)
        try:
            _look(device, ticks)
        except HardwareError as error:
            ticks.trouble = str(error)
        now_s = time.monotonic()
        ticks.look_s.append(now_s - look_s)
        if len(ticks.look_s) >= LOOKS:
            ticks.interval_s = max(ticks.interval_s, statistics.median(ticks.look_s[-LOOKS:]) / BUDGET)
        next_s += ticks.interval_s
        if next_s < now_s:
            late = 1 + int((now_s - next_s) / ticks.interval_s)
            ticks.missed += late
            next_s += late * ticks.interval_s
        if ticks.trouble is not None or ended(max(0.0, next_s - now_s)):
            ticks.cpu_s, ticks.wall_s = cpu_clock() - began_cpu_s, time.monotonic() - began_s
            return ticks


def _look(device: Device, ticks: Ticks) -> None:
    for index, rows in enumerate(ticks.rows):
        reading = device.read(index)
        now_s = time.monotonic()
        rows.append((now_s, reading.power_w, reading.energy_j, reading.sm_clock_mhz, reading.temperature_c))
        if reading.limits:
            ticks.limits.append((now_s, index, sorted(reading.limits)))


@dataclass(slots=True)
class Punctuality:
    """How well all windows of a sweep were sampled."""

    process: bool
    late_s: list[float] = field(default_factory=list)
    look_s: list[float] = field(default_factory=list)
    interval_s: float = 0.0
    missed: int = 0
    cpu_s: float = 0.0
    wall_s: float = 0.0

    def add(self, ticks: Ticks) -> None:
        """One window more."""
        self.late_s += ticks.late_s
        self.look_s += ticks.look_s
        self.interval_s = max(self.interval_s, ticks.interval_s)
        self.missed += ticks.missed
        self.cpu_s += ticks.cpu_s
        self.wall_s += ticks.wall_s

    def summary(self) -> dict[str, Any]:
        """For the profile's metadata; empty where nothing was sampled. ``cpu_share`` is of one core."""
        if not self.late_s:
            return {}
        return {
            "process": self.process, "interval_s": self.interval_s, "looks": len(self.late_s), "missed": self.missed,
            "late_median_s": statistics.median(self.late_s), "late_p99_s": percentile_99(self.late_s),
            "look_median_s": statistics.median(self.look_s),
            "cpu_share": self.cpu_s / self.wall_s if self.wall_s else None,
        }  # fmt: skip


def percentile_99(values: Iterable[float]) -> float:
    """The value that 99 of 100 do not exceed."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(0.99 * len(ordered)))]
