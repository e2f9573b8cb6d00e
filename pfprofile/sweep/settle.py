"""Let the GPUs cool to where earlier trials began, so that one point's heat does not add to the next one's power."""

from __future__ import annotations

import time
from collections.abc import Callable

from pfprofile.device import Device

#: A trial may begin this much warmer than the coolest one before it, °C.
MARGIN_C = 5.0
#: Cooling slower than 1 °C in this time is as good as it gets, s.
FLAT_S = 3.0
#: The longest wait, s.
MOST_S = 30.0
LOOK_S = 0.5


class Settling:
    """Waits between trials; where no device tells a temperature, never.

    Args:
        device: whose temperatures.
        now, sleep: the clock, for tests.
    """

    def __init__(
        self, device: Device, now: Callable[[], float] = time.monotonic, sleep: Callable[[float], None] = time.sleep
    ) -> None:
        self.device, self.now, self.sleep = device, now, sleep
        self.coolest_c: float | None = None

    def wait(self, n_gpus: int) -> float:
        """Return when the first n devices have settled, with the seconds that took. Raises HardwareError: lost."""
        began_s = flat_since_s = self.now()
        lowest_c = here_c = self._hottest(n_gpus)
        while here_c is not None and self.coolest_c is not None and here_c > self.coolest_c + MARGIN_C:
            at_s = self.now()
            if lowest_c is None or here_c <= lowest_c - 1:
                lowest_c, flat_since_s = here_c, at_s
            if at_s - flat_since_s >= FLAT_S or at_s - began_s >= MOST_S:
                break
            self.sleep(LOOK_S)
            here_c = self._hottest(n_gpus)
        if here_c is not None:
            self.coolest_c = here_c if self.coolest_c is None else min(self.coolest_c, here_c)
        return self.now() - began_s

    def _hottest(self, n_gpus: int) -> float | None:
        readings = [self.device.read(i).temperature_c for i in range(min(n_gpus, self.device.count))]
        known = [t for t in readings if t is not None]
        return max(known) if known else None
