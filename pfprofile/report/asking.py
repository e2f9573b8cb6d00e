"""Ask a model about points under different power limits at once."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np

from pfprofile.model.fitted import FittedModel
from pfprofile.model.points import PREDICTED, Floats, Points, Predictions


def predict_under(model: FittedModel, points: Points, limits_w: Floats) -> Predictions:
    """Predictions of points, each under its own power limit.

    Args:
        limits_w: W, (m,); NaN = the limit that the model was fitted under.

    Raises:
        InputError: as `FittedModel.predict`.
    """
    whole = model.predict(points)
    parts: dict[str, Any] = {name: np.array(getattr(whole, name)) for name in PREDICTED}
    for limit in np.unique(limits_w[np.isfinite(limits_w)]):
        chosen = limits_w == limit
        if limit == model.document.clocks.cap_w:
            continue
        found = model.predict(points, power_limit_w=float(limit))
        for name, values in parts.items():
            values[chosen] = getattr(found, name)[chosen]
    return replace(whole, **parts)


def at_fitted_limit(model: FittedModel, limits_w: Floats) -> bool:
    """Whether all points are under the limit that the model was fitted under (joint draws know no other)."""
    cap = model.document.clocks.cap_w
    return all(math.isnan(limit) or limit == cap for limit in limits_w)
