"""Did an unrecorded power limit hold the clock down? Then power and time lie flat over the highest clocks."""

from __future__ import annotations

import math

import numpy as np

from pfprofile.model.observations import Observations
from pfprofile.model.points import Bools, Floats

#: a plateau: at least this many clocks over the top share of the range, with power and time within these of each other
LEAST_CLOCKS, TOP_SHARE, FLAT_POWER, FLAT_TIME = 3, 0.04, 0.015, 0.03
#: below a plateau the power falls by at least this share
LEAST_FALL = 0.1
#: rows with at least this share of the limit are held by it
NEAR_LIMIT = 0.93


def inferred_cap_w(obs: Observations) -> float:
    """The power of a plateau over the highest requested clocks, W; NaN where there is none.

    Only where neither the reached clock nor a power limit was recorded. The share of it at which the plateau lies is
    fitted afterwards (the parameter η), so that the highest power seen will do.
    """
    unknown = ~np.isfinite(obs.achieved_mhz) & ~np.isfinite(obs.power_limit_w)
    rows = unknown & np.isfinite(obs.requested_mhz) & np.isfinite(obs.power_w)
    if rows.sum() < LEAST_CLOCKS + 1:
        return math.nan
    sub = obs.take(rows)
    key = np.column_stack([sub.n_gpus, sub.n_nodes, sub.local_batch, sub.accum_steps])
    _, group = np.unique(key, axis=0, return_inverse=True)
    tops = [_plateau(sub.take(group.ravel() == g)) for g in range(int(group.max()) + 1)]
    found = [top for top in tops if math.isfinite(top)]
    return max(found) if found else math.nan


def _plateau(curve: Observations) -> float:
    clock, power, time = curve.requested_mhz, curve.power_w, curve.step_time_s
    top = clock >= (1 - TOP_SHARE) * clock.max()
    if top.sum() < LEAST_CLOCKS or top.all():
        return math.nan
    flat = _range(power[top]) < FLAT_POWER and _range(time[top]) < FLAT_TIME
    # A curve that is flat all over is one the clock does not matter to.
    falls = power[np.argmin(clock)] < (1 - LEAST_FALL) * power[top].mean()
    return float(power[top].max()) if flat and falls else math.nan


def _range(values: Floats) -> float:
    return float(np.ptp(values) / values.mean())


def at_the_limit(obs: Observations, cap_w: Floats) -> Bools:
    """Rows whose power lies at their limit while the clock they reached is not recorded."""
    with np.errstate(invalid="ignore"):
        return np.asarray(obs.power_w >= NEAR_LIMIT * cap_w, dtype=np.bool_)
