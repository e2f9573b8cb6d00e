"""Energy counters that run backwards: a driver reload or a reset starts them anew, and the window is split there."""

from __future__ import annotations

import numpy as np

from pfprofile.telemetry.window import Floats, counter_power

#: the pieces must cover this share of the window to speak for it
LEAST_COVER = 0.8


def resets(energy_j: Floats) -> int:
    """How often a counter ran backwards; NaN = not told."""
    known = energy_j[np.isfinite(energy_j)]
    return int((np.diff(known) < 0).sum())


def counter_rates(time_s: Floats, energy_j: Floats) -> Floats:
    """Power between each reading of a counter and the one before, W, (m,); coarse, to tell busy from idle only.

    The first takes the value of the second; NaN where the counter was not told or ran backwards.
    """
    if len(time_s) < 2:
        return np.full(len(time_s), np.nan)
    seconds, joules = np.diff(time_s), np.diff(energy_j)
    rates = np.divide(joules, seconds, out=np.full(len(seconds), np.nan), where=(seconds > 0) & (joules >= 0))
    return np.concatenate([rates[:1], rates])


def pieced_counter_power(time_s: Floats, energy_j: Floats) -> float | None:
    """Mean power over the pieces between resets, weighted by their length, W.

    Args:
        time_s: (m,), ascending.
        energy_j: (m,), the counter; NaN = not told.

    Returns:
        None where no pieces that are long enough for a line cover most of the window. Never negative.
    """
    known = np.isfinite(energy_j)
    times, values = time_s[known], energy_j[known]
    if len(values) < 2 or times[-1] <= times[0]:
        return None
    breaks = np.flatnonzero(np.diff(values) < 0) + 1
    energy, covered_s = 0.0, 0.0
    for piece_s, piece_j in zip(np.split(times, breaks), np.split(values, breaks), strict=True):
        power_w = counter_power(piece_s, piece_j)
        if power_w is not None:
            length_s = float(piece_s[-1] - piece_s[0])
            energy, covered_s = energy + power_w * length_s, covered_s + length_s
    return energy / covered_s if covered_s >= LEAST_COVER * float(times[-1] - times[0]) else None
