"""AdaptDL's throughput objective, as published (Qiao et al., OSDI 2021, section 3.2, eq. 8-11), to compare with.

    T_grad = α_c + β_c·b;  T_sync = α_r + β_r·(n−2) on one node, α_n + β_n·(n−2) across, 0 alone
    T = (T_grad^γ + T_sync^γ)^(1/γ),  1 ≤ γ ≤ 10
RMSLE on T_grad and on T, minimised by L-BFGS-B; what the data cannot tell is held at (almost) zero, and with one batch
size α_c is half the computing time. Our own implementation of the equations.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.optimize import minimize

from pfprofile.model.observations import Observations
from pfprofile.model.points import Floats

START = np.array([1e-1, 1e-2, 1e-1, 1e-2, 1e-1, 1e-2, 1.001])
LOWER = np.array([1e-8] * 6 + [1.0])
UPPER = np.array([np.inf] * 6 + [10.0])
NOTHING = 1e-8


def step_time(params: Floats, obs: Observations) -> tuple[Floats, Floats]:
    """Computing and step time, s."""
    a_c, b_c, a_n, b_n, a_r, b_r, gamma = params
    grad = a_c + b_c * obs.local_batch
    beyond = np.maximum(obs.n_gpus - 2, NOTHING)
    sync = np.where(obs.n_nodes > 1, a_n + b_n * beyond, np.where(obs.n_gpus > 1, a_r + b_r * beyond, NOTHING))
    big = np.maximum(grad, sync)
    return grad, big * ((grad / big) ** gamma + (sync / big) ** gamma) ** (1 / gamma)


def fit(obs: Observations) -> Floats:
    """The parameters; only rows of one GPU tell the computing time alone."""
    start, lower, upper = START.copy(), LOWER.copy(), UPPER.copy()

    def hold(index: int, value: float) -> None:
        start[index] = lower[index] = upper[index] = value

    alone = obs.n_gpus == 1
    if len(np.unique(obs.local_batch)) == 1:
        hold(0, float(np.mean(obs.step_time_s[alone] if alone.any() else obs.step_time_s)) / 2)
    if not (obs.n_nodes > 1).any():
        hold(2, NOTHING)
        hold(3, NOTHING)
    if not ((obs.n_nodes <= 1) & (obs.n_gpus > 1)).any():
        hold(4, NOTHING)
        hold(5, NOTHING)
    if not (obs.n_gpus > 2).any():
        hold(3, NOTHING)
        hold(5, NOTHING)

    def loss(params: Floats) -> float:
        grad, time = step_time(params, obs)
        total = _rmsle(time, obs.step_time_s)
        if alone.any():
            total += _rmsle(grad[alone], obs.step_time_s[alone])
        a_n, b_n, a_r, b_r, gamma = params[2:]
        return total + 1e-3 * (gamma - 1) ** 2 + 1e-2 * ((b_n / a_n) ** 2 + (b_r / a_r) ** 2)

    found: Any = minimize(loss, start, method="L-BFGS-B", bounds=list(zip(lower, upper, strict=True)))
    return np.asarray(found.x, dtype=np.float64)


def _rmsle(predicted: Floats, measured: Floats) -> float:
    return float(np.sqrt(np.mean((np.log(predicted) - np.log(measured)) ** 2)))


def predict(train: Observations, test: Observations) -> Floats:
    """Fit to one part and predict the step time of another, s."""
    return step_time(fit(train), test)[1]
