"""Hold SM clocks and let them go again, whatever happens in between."""

from __future__ import annotations

from types import TracebackType
from typing import Self

from pfprofile.device.base import Device
from pfprofile.errors import HardwareError


class ClockGuard:
    """A context manager around every lock; leaving it resets every device that was locked.

    Args:
        device: whose clocks are held.
    """

    def __init__(self, device: Device) -> None:
        self.device = device
        self._locked: dict[int, float] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.release()

    def hold(self, n_gpus: int, clock_mhz: float | None) -> None:
        """Lock the first n devices at a clock; None = unlocked. Raises HardwareError where the driver refuses."""
        if clock_mhz is None:
            self.release()
            return
        for index in range(n_gpus):
            if self._locked.get(index) != clock_mhz:
                # Noted before it is locked: an interruption between the two must not leave it locked.
                self._locked[index] = clock_mhz
                self.device.lock_clock(index, clock_mhz)

    def release(self) -> None:
        """Reset every device that was locked; all are tried before an error is raised."""
        failures = []
        for index in list(self._locked):
            try:
                self.device.reset_clock(index)
                del self._locked[index]
            except HardwareError as error:
                failures.append(error)
        if failures:
            raise failures[0]

    def forget(self) -> None:
        """The driver refused the locks: there is nothing to reset."""
        self._locked.clear()
