"""Read the sensors of the devices in use at a steady rate while something trains."""

from __future__ import annotations

import threading
import time
from types import TracebackType
from typing import Self

from pfprofile.device.base import Device
from pfprofile.errors import HardwareError
from pfprofile.telemetry import Samples

DEFAULT_RATE_HZ = 20.0


class Sampler:
    """A thread in the controller (never in a training rank) with absolute deadlines on the monotonic clock.

    Args:
        device: whose sensors.
        n_gpus: the first n devices.
        rate_hz: looks a second.

    Attributes:
        missed: ticks that could not be kept.
        trouble: why sampling ended early, or None.
    """

    def __init__(self, device: Device, n_gpus: int, rate_hz: float = DEFAULT_RATE_HZ) -> None:
        self.device = device
        self.n_gpus = n_gpus
        self.interval_s = 1.0 / rate_hz
        self.missed = 0
        self.trouble: str | None = None
        self._rows: list[list[tuple[float, float | None, float | None, float | None, float | None]]]
        self._rows = [[] for _ in range(n_gpus)]
        self._limits: list[tuple[float, int, frozenset[str]]] = []
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="sampler", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._stop.set()
        self._thread.join()

    def _run(self) -> None:
        next_s = time.monotonic()
        while not self._stop.is_set():
            try:
                self._look()
            except HardwareError as error:
                self.trouble = str(error)
                return
            next_s += self.interval_s
            late_s = time.monotonic() - next_s
            if late_s > 0:
                self.missed += 1 + int(late_s / self.interval_s)
                next_s = time.monotonic()
            self._stop.wait(max(0.0, next_s - time.monotonic()))

    def _look(self) -> None:
        for index in range(self.n_gpus):
            reading = self.device.read(index)
            now = time.monotonic()
            self._rows[index].append(
                (now, reading.power_w, reading.energy_j, reading.sm_clock_mhz, reading.temperature_c)
            )
            if reading.limits:
                self._limits.append((now, index, reading.limits))

    def samples(self, started_s: float, ended_s: float) -> list[Samples]:
        """What was read between two monotonic times, one `Samples` a device."""
        return [Samples.of(rows, started_s, ended_s) for rows in self._rows]

    def limits(self, started_s: float, ended_s: float) -> dict[str, float]:
        """How often each limit was seen between two times, as a part of the looks."""
        looks = sum(sum(started_s <= row[0] <= ended_s for row in rows) for rows in self._rows)
        seen: dict[str, float] = {}
        for when, _, limits in self._limits:
            if started_s <= when <= ended_s:
                for limit in limits:
                    seen[limit] = seen.get(limit, 0.0) + 1.0 / max(1, looks)
        return seen
