"""Power, energy and clock of one measured window from one device's samples. Unknown is None, never 0."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

#: A counter must have moved this often inside the window, else the window is too short for a line.
LEAST_UPDATES = 5
#: Fewer power samples than this say nothing about a mean.
LEAST_SAMPLES = 3
#: An achieved clock below this part of the request was not held.
HELD = 0.99
#: Mean power above this part of the enforced limit is at the limit.
AT_LIMIT = 0.97
#: Counter and power readings may differ by this part.
LARGEST_GAP = 0.05


@dataclass(frozen=True, slots=True)
class Samples:
    """One device's readings; all arrays (m,), NaN = not told. Times are monotonic seconds."""

    time_s: Floats
    power_w: Floats
    energy_j: Floats
    sm_clock_mhz: Floats
    temperature_c: Floats

    @classmethod
    def of(cls, rows: Iterable[tuple[float | None, ...]], started_s: float, ended_s: float) -> Self:
        """Rows of (time, power, energy, clock, temperature) inside a window."""
        inside = [r for r in rows if r[0] is not None and started_s <= r[0] <= ended_s]
        table = np.array(inside, dtype=np.float64).reshape(-1, 5)
        return cls(*(table[:, i] for i in range(5)))


@dataclass(frozen=True, slots=True)
class WindowPower:
    """Mean power of one device in a window, W, and where it comes from: ``counter`` or ``samples``."""

    power_w: float
    source: str


def counter_power(time_s: Floats, energy_j: Floats) -> float | None:
    """Mean power as the slope of a line through the counter's changes, W.

    A counter moves every 10 to 100 ms: last minus first carries that quantum, a line fit averages it out.
    None where it moved less than `LEAST_UPDATES` times or went down (a reset).
    """
    known = np.isfinite(energy_j)
    times, values = time_s[known], energy_j[known]
    if len(values) < 2:
        return None
    steps = np.diff(values)
    moved = np.flatnonzero(steps != 0) + 1
    if len(moved) < LEAST_UPDATES or (steps < 0).any():
        return None
    slope = np.polyfit(times[moved] - times[0], values[moved] - values[0], 1)[0]
    return float(slope)


def sampled_power(time_s: Floats, power_w: Floats) -> float | None:
    """Time-weighted mean of power samples, W; None for fewer than `LEAST_SAMPLES`."""
    known = np.isfinite(power_w)
    times, values = time_s[known], power_w[known]
    if len(values) < LEAST_SAMPLES or times[-1] <= times[0]:
        return None
    areas = np.diff(times) * (values[1:] + values[:-1]) / 2
    return float(areas.sum() / (times[-1] - times[0]))


def window_power(samples: Samples) -> WindowPower | None:
    """Mean power in the window: the energy counter's where it can be used, else the power samples'."""
    from_counter = counter_power(samples.time_s, samples.energy_j)
    if from_counter is not None:
        return WindowPower(from_counter, "counter")
    from_samples = sampled_power(samples.time_s, samples.power_w)
    return None if from_samples is None else WindowPower(from_samples, "samples")


def sensor_warnings(samples: Samples) -> list[str]:
    """What is odd between a device's energy counter and its power readings in a window, in words."""
    found = []
    known = samples.energy_j[np.isfinite(samples.energy_j)]
    if (np.diff(known) < 0).any():
        found.append("the energy counter went down in the window (driver reload?)")
    counter = counter_power(samples.time_s, samples.energy_j)
    sampled = sampled_power(samples.time_s, samples.power_w)
    if counter is not None and sampled is not None and counter > 0 and abs(sampled / counter - 1) > LARGEST_GAP:
        found.append(
            f"the power readings give {sampled:.4g} W, the energy counter {counter:.4g} W "
            f"({sampled / counter - 1:+.0%}); the counter was used"
        )
    return found


def limited_by(
    requested_mhz: float | None, achieved_mhz: float | None, power_w: float | None, power_limit_w: float | None,
    seen: Mapping[str, float],
) -> str:  # fmt: skip
    """What kept the clock below the request; the driver's event bits alone are noisy, so they only name the cause.

    Args:
        requested_mhz: the locked clock, None = not locked.
        achieved_mhz: median clock of the window.
        power_w: mean power of one device.
        power_limit_w: its enforced limit.
        seen: limit → part of the looks in which the driver named it.
    """
    if power_w is not None and power_limit_w is not None and power_w >= AT_LIMIT * power_limit_w:
        return "power"
    if achieved_mhz is None:
        return "unknown"
    named = max(seen, key=lambda k: seen[k]) if seen else None
    if requested_mhz is None:
        return named if named is not None and seen[named] >= 0.5 else "none"
    if achieved_mhz >= HELD * requested_mhz:
        return "none"
    return named or "unknown"
