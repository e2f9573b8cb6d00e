"""scikit-learn estimators over the same fit: a DataFrame with a profile's column names in, step times or watts out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils.validation import check_is_fitted

from pfprofile.model.fit import Context, document_of, fit_observations
from pfprofile.model.fitted import FittedModel
from pfprofile.model.fitting import frame_of
from pfprofile.model.observations import READ, Observations, from_columns
from pfprofile.model.points import Floats, Points, Predictions
from pfprofile.profile.metadata import ProfileMetadata

if TYPE_CHECKING:
    import pandas as pd


class _JointModel(RegressorMixin, BaseEstimator):  # type: ignore[misc]
    """What both estimators share: the joint fit.

    Args:
        device_name: as the driver names it; known GPU models have better priors.
        starts: how many starting points to try.
    """

    _target = ""

    def __init__(self, device_name: str = "", starts: int = 3) -> None:
        self.device_name = device_name
        self.starts = starts

    def fit(self, X: pd.DataFrame, y: Any = None) -> _JointModel:
        """Fit to measured rows.

        Args:
            X: columns as in a profile: ``n_gpus``, ``local_batch``; where known ``n_nodes``, ``accum_steps``,
                ``requested_clock_mhz``, ``achieved_clock_mhz``, ``power_limit_w``, ``step_time_s`` (s),
                ``power_w`` (W).
            y: the target, in place of its column in ``X``, (m,).

        Raises:
            InputError: a missing column, nothing to fit, or impossible values.
        """
        columns = {name: list(X[name]) for name in (*READ, "status") if name in X}
        if y is not None:
            columns[self._target] = list(np.asarray(y, dtype=np.float64))
        obs = self._relevant(from_columns(columns, "X"))
        context = Context(ProfileMetadata(source="imported"), "X", self.device_name or "unknown", "unknown", None, [],
                          "", len(X))  # fmt: skip
        fit = fit_observations(obs, frame_of(obs), self.device_name, None, self.starts)
        self.model_ = FittedModel(document_of(fit, context))
        self.parameters_ = {p.name: p.value for p in self.model_.document.parameters}
        self.n_features_in_ = X.shape[1]
        self.feature_names_in_ = np.array([str(c) for c in X.columns], dtype=object)
        return self

    def _relevant(self, obs: Observations) -> Observations:
        return obs

    def _predict(self, X: pd.DataFrame) -> Predictions:
        check_is_fitted(self)

        def column(name: str, default: float) -> Floats:
            if name not in X:
                return np.full(len(X), default)
            return np.asarray(X[name], dtype=np.float64)

        points = Points.of(column("n_gpus", 1), column("local_batch", 1), n_nodes=column("n_nodes", 1),
                         accum_steps=column("accum_steps", 1),
                         sm_clock_mhz=column("requested_clock_mhz", np.nan))  # fmt: skip
        return self.model_.predict(points)


class ThroughputModel(_JointModel):
    """Step time over GPUs, nodes, batch and clock. ``predict`` returns seconds a step, (m,)."""

    _target = "step_time_s"

    def predict(self, X: pd.DataFrame) -> Floats:
        """Step time, s, (m,). Raises InputError on an axis of which one value was measured."""
        return self._predict(X).step_time_s


class PowerModel(_JointModel):
    """Power of one GPU over the same. Needs step times too: the power of a GPU follows from how busy it is."""

    _target = "power_w"

    def predict(self, X: pd.DataFrame) -> Floats:
        """Power of one GPU, W, (m,). Raises InputError on an axis of which one value was measured."""
        return self._predict(X).power_w

    def _relevant(self, obs: Observations) -> Observations:
        from pfprofile.errors import InputError

        if not obs.has_power:
            raise InputError("X: no power to fit: column 'power_w' is missing or empty")
        return obs
