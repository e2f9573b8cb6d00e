"""Step time of a training loop: warm up, then time sub-windows between two synchronisations.

Rank 0 decides every step count and tells the others: ranks that decided by their own clocks could differ by one
collective, and the backend would abort. The time of a sub-window is the slowest rank's.
"""

from __future__ import annotations

import math
import statistics
import time
from dataclasses import dataclass
from typing import Any, Protocol

#: Warm-up ends when two successive windows differ by less than this part, and after this many windows at the latest.
SETTLED = 0.1
MOST_WARMUP_WINDOWS = 8
LEAST_WARMUP_STEPS = 3
SUB_WINDOWS = 5


class Stepper(Protocol):
    """What timing needs of a worker."""

    def step(self, synchronise: bool = True) -> None:
        """One optimizer step; without ``synchronise`` gradients stay local."""

    def wait(self) -> None:
        """Return when the device has done everything it was given."""

    def barrier(self) -> None:
        """Return when all ranks have come here."""

    def agree(self, value: float) -> float:
        """Rank 0's value, on every rank."""

    def slowest(self, values: list[float]) -> list[float]:
        """Elementwise maximum over the ranks."""


@dataclass(frozen=True, slots=True)
class Timing:
    """One measured window. ``started_s``/``ended_s`` are on the system's monotonic clock, shared by processes."""

    steps: int
    step_time_s: float
    step_time_std_s: float | None
    sync_time_s: float | None
    started_s: float
    ended_s: float
    warmup_steps: int


def window(stepper: Stepper, steps: int, synchronise: bool = True) -> float:
    """Seconds that ``steps`` steps take on this rank, device work included."""
    stepper.wait()
    stepper.barrier()
    start = time.perf_counter()
    for _ in range(steps):
        stepper.step(synchronise)
    stepper.wait()
    return time.perf_counter() - start


def warm_up(stepper: Stepper, window_s: float) -> tuple[float, int]:
    """Step until the step time has settled.

    Returns:
        the settled step time in s (rank 0's, agreed on) and the number of steps it took.
    """
    previous = stepper.agree(window(stepper, LEAST_WARMUP_STEPS) / LEAST_WARMUP_STEPS)
    done = LEAST_WARMUP_STEPS
    for _ in range(MOST_WARMUP_WINDOWS - 1):
        steps = max(1, min(50, math.ceil(window_s / SUB_WINDOWS / previous)))
        current = stepper.agree(window(stepper, steps) / steps)
        done += steps
        settled = abs(current - previous) <= SETTLED * current
        previous = current
        if settled:
            break
    return previous, done


def measure(stepper: Stepper, *, window_s: float, steps: int | None, distributed: bool) -> Timing:
    """Warm up and time one window.

    Args:
        stepper: the training loop.
        window_s: least length of the window, s; ignored where ``steps`` is given.
        steps: optimizer steps in the window; None = as many as ``window_s`` needs.
        distributed: whether gradients are synchronised between ranks.
    """
    step_s, warmup_steps = warm_up(stepper, window_s)
    total = steps or SUB_WINDOWS * max(1, math.ceil(window_s / SUB_WINDOWS / step_s))
    total = int(stepper.agree(total))
    counts = [len(range(i, total, SUB_WINDOWS)) for i in range(min(SUB_WINDOWS, total))]
    started = time.monotonic()
    times = [window(stepper, count) for count in counts]
    ended = time.monotonic()
    times = stepper.slowest(times)
    per_step = [t / c for t, c in zip(times, counts, strict=True)]
    spread = statistics.stdev(per_step) if len(per_step) > 1 else None
    mean = sum(times) / total
    sync = _sync_time(stepper, mean, spread or 0.0, counts) if distributed else None
    return Timing(total, mean, spread, sync, started, ended, warmup_steps)


def _sync_time(stepper: Stepper, step_s: float, spread_s: float, counts: list[int]) -> float | None:
    """What synchronisation adds to a step: the same step with gradients kept local is what it would cost without.

    Not known (None) where the difference drowns in the spread between sub-windows.
    """
    shorter = counts[: max(1, len(counts) // 2)]
    local = stepper.slowest([window(stepper, c, synchronise=False) for c in shorter])
    difference = step_s - sum(local) / sum(shorter)
    return difference if difference > spread_s / math.sqrt(len(counts)) else None


def as_message(timing: Timing, **more: Any) -> dict[str, Any]:
    """The timing as plain JSON values."""
    body = {name: getattr(timing, name) for name in Timing.__slots__}
    return {**body, **more}
