"""Dumb models to beat: regressions on the logarithms that know nothing of GPUs. For held-out comparison only."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from pfprofile.model.observations import Observations
from pfprofile.model.points import Floats

SEED = 0


class _Polynomial:
    """Ridge regression on standardised inputs and, where asked, their products."""

    def __init__(self, *, quadratic: bool, ridge: float) -> None:
        self._quadratic, self._ridge = quadratic, ridge

    def _terms(self, x: Floats) -> Floats:
        z = (x - self._mean) / self._scale
        columns = [np.ones(len(z)), *z.T]
        if self._quadratic:
            columns += [z[:, i] * z[:, j] for i in range(z.shape[1]) for j in range(i + 1)]
        return np.column_stack(columns)

    def fit(self, x: Floats, y: Floats) -> _Polynomial:
        self._mean, self._scale = x.mean(axis=0), np.where(np.ptp(x, axis=0) > 0, x.std(axis=0), 1.0)
        self._level = float(y.mean())
        terms = self._terms(x)
        gram = terms.T @ terms + self._ridge * np.eye(terms.shape[1])
        self._weights = np.linalg.solve(gram, terms.T @ (y - self._level))
        return self

    def predict(self, x: Floats) -> Floats:
        return np.asarray(self._level + self._terms(x) @ self._weights, dtype=np.float64)


def _log_linear() -> Any:
    return _Polynomial(quadratic=False, ridge=1e-6)


def _log_quadratic() -> Any:
    return _Polynomial(quadratic=True, ridge=1e-3)


def _gradient_boosting() -> Any:
    from sklearn.ensemble import GradientBoostingRegressor

    return GradientBoostingRegressor(n_estimators=40, learning_rate=0.2, max_depth=3, random_state=SEED)


def _random_forest() -> Any:
    from sklearn.ensemble import RandomForestRegressor

    return RandomForestRegressor(n_estimators=100, random_state=SEED)


#: name -> new regressor; the first three stand in every fit report
BASELINES: dict[str, Callable[[], Any]] = {
    "log_linear": _log_linear,
    "log_quadratic": _log_quadratic,
    "gradient_boosting": _gradient_boosting,
    "random_forest": _random_forest,
}
IN_REPORTS = ("log_linear", "log_quadratic", "gradient_boosting")


def inputs(obs: Observations) -> Floats:
    """log n, log k, log b, log s and log clock (the power limit where the clock is latent; 0 where unknown)."""
    clock = obs.power_limit_w if obs.latent_clock else obs.clock_mhz
    known = np.isfinite(clock)
    top = float(clock[known].max()) if known.any() else 1.0
    last = np.log(np.where(known, clock, top))
    return np.column_stack([np.log(obs.n_gpus), np.log(obs.n_nodes), np.log(obs.local_batch),
                            np.log(obs.accum_steps), last])  # fmt: skip


def predict(name: str, train: Observations, test: Observations, *, power: bool = False) -> Floats:
    """Fit a baseline to one part and predict another: step time (s), or power (W; NaN where training has none)."""
    target = train.power_w if power else train.step_time_s
    known = np.isfinite(target)
    if known.sum() < 2:
        return np.full(len(test), np.nan)
    # Inputs are made together, so that a latent clock is read the same way in both.
    regressor = BASELINES[name]().fit(inputs(train)[known], np.log(target[known]))
    return np.asarray(np.exp(regressor.predict(inputs(test))), dtype=np.float64)
