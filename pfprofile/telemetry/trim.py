"""Which part of a power log is the training: idle head and tail, and readings polled faster than the sensor moves."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pfprofile.telemetry.window import Floats

#: Sensors of today renew their reading at least this often, s; a repeat within it is the same reading.
SENSOR_PERIOD_S = 0.1
#: Busy power must lie this far above idle power, as a ratio and in W, to tell one from the other.
BUSY_RATIO = 1.3
BUSY_GAP_W = 10.0
#: So many readings in a row must be busy: one spike is no training.
EDGE_READINGS = 3
#: Fewer readings than this are too few to find an edge in.
LEAST_READINGS = 8


@dataclass(frozen=True, slots=True)
class BusySpan:
    """Where one device left idle and went back to it.

    Attributes:
        start_s, end_s: times of the first and last busy reading, s.
        idle_w, busy_w: mean power of the two levels, W.
    """

    start_s: float
    end_s: float
    idle_w: float
    busy_w: float

    @property
    def threshold_w(self) -> float:
        """Power from which on a reading counts as busy, W."""
        return (self.idle_w + self.busy_w) / 2


def distinct_readings(time_s: Floats, power_w: Floats) -> NDArray[np.intp]:
    """Indices of the readings that say something new.

    A poll faster than the sensor reads one value many times: of a run of equal values, one for each
    `SENSOR_PERIOD_S` is kept, and always the first and the last reading.

    Args:
        time_s: (m,), ascending.
        power_w: (m,), NaN = not told.
    """
    kept: list[int] = []
    for i in range(len(time_s)):
        last = kept[-1] if kept else None
        same = last is not None and (power_w[i] == power_w[last] or (np.isnan(power_w[i]) and np.isnan(power_w[last])))
        if last is None or not same or time_s[i] - time_s[last] > 0.999 * SENSOR_PERIOD_S or i == len(time_s) - 1:
            kept.append(i)
    return np.array(kept, dtype=np.intp)


def busy_span(time_s: Floats, power_w: Floats) -> BusySpan | None:
    """The span from the first to the last busy reading, the two levels told apart by Otsu's method.

    Args:
        time_s: (m,), ascending.
        power_w: (m,), NaN = not told.

    Returns:
        None where the readings are too few or there are no two levels (the device was busy, or idle, throughout).

    Source: N. Otsu, A threshold selection method from gray-level histograms, IEEE Trans. SMC 9 (1979).
    """
    known = np.isfinite(power_w)
    times, values = time_s[known], power_w[known]
    if len(values) < LEAST_READINGS:
        return None
    ordered = np.sort(values)
    below = np.arange(1, len(ordered))
    sums = np.cumsum(ordered)[:-1]
    low, high = sums / below, (ordered.sum() - sums) / (len(ordered) - below)
    best = int(np.argmax(below * (len(ordered) - below) * (high - low) ** 2))
    idle_w, busy_w = float(low[best]), float(high[best])
    if busy_w < BUSY_RATIO * idle_w or busy_w - idle_w < BUSY_GAP_W:
        return None
    busy = values >= (idle_w + busy_w) / 2
    edges = np.flatnonzero(
        np.convolve(busy.astype(np.int64), np.ones(EDGE_READINGS, np.int64), "valid") == EDGE_READINGS
    )
    if not len(edges):
        return None
    return BusySpan(float(times[edges[0]]), float(times[edges[-1] + EDGE_READINGS - 1]), idle_w, busy_w)
