"""Fit the residual stage: amplitude and noise of a Gaussian process on what the form leaves over.

The length scales are fixed (`residual.py`); amplitude and noise come from the marginal likelihood on a grid, which for
a fixed kernel needs one eigendecomposition. The stage is kept only where it predicts what is left out better.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from pfprofile.model.points import Floats
from pfprofile.model.residual import kernel

#: fewer points than this say nothing about a residual
LEAST_POINTS = 10
#: more points than this are thinned, evenly along the sorted inputs
MOST_POINTS = 300
#: ratios of noise to amplitude that are tried
RATIOS = np.geomspace(0.03, 30.0, 25)
#: axes with fewer values are not asked
LEAST_GROUPS = 3
#: the error on left-out points must fall by this share, that on left-out batches and GPU counts not rise by that
WORTHWHILE, HARMLESS = 0.02, 0.05
#: residuals beyond this many robust standard deviations are pulled in: one bad row must not bend its neighbours
CLIP_SDS = 3.0


@dataclass(frozen=True, slots=True)
class Process:
    """A fitted process: which points it stands on, their residuals, its amplitude and noise, nats."""

    rows: np.ndarray
    values: Floats
    amplitude: float
    noise: float


def fit_process(inputs: Floats, residual: Floats) -> Process | None:
    """Fit a zero-mean process to residuals.

    Args:
        inputs: (m, 4), see `residual.features`.
        residual: log measured over log form, nats, (m,).

    Returns:
        The process, or None where it predicts left-out points no better than the form, or left-out groups worse.
    """
    m = len(residual)
    if m < LEAST_POINTS:
        return None
    rows = np.arange(m)
    if m > MOST_POINTS:
        order = np.lexsort(inputs.T)
        rows = np.sort(order[np.linspace(0, m - 1, MOST_POINTS).round().astype(int)])
    spread = 1.4826 * float(np.median(np.abs(residual - np.median(residual)))) + 1e-9
    values = np.clip(residual[rows], -CLIP_SDS * spread, CLIP_SDS * spread)
    eigen, vectors = np.linalg.eigh(kernel(inputs[rows], inputs[rows]))
    eigen = np.maximum(eigen, 0.0)
    turned = vectors.T @ values
    best: tuple[float, float, float] | None = None
    for ratio in RATIOS:
        spectrum = eigen + ratio**2
        scale = float(np.mean(turned**2 / spectrum))
        likelihood = -0.5 * (len(rows) * math.log(max(scale, 1e-300)) + float(np.sum(np.log(spectrum))))
        if best is None or likelihood > best[0]:
            best = (likelihood, ratio, scale)
    assert best is not None
    _, ratio, scale = best
    inverse = (vectors / (eigen + ratio**2)) @ vectors.T
    alone = np.arange(len(rows), dtype=np.float64)
    for groups, most in ((alone, 1 - WORTHWHILE), (inputs[rows, 2], 1 + HARMLESS), (inputs[rows, 0], 1 + HARMLESS)):
        if _left_out_share(inverse, values, groups) > most:
            return None
    return Process(rows, values, math.sqrt(scale), ratio * math.sqrt(scale))


def _left_out_share(inverse: Floats, values: Floats, groups: Floats) -> float:
    """Error of the process on left-out groups (points, batches, GPU counts) over that of the form alone.

    What a Gaussian process says of a group without it is known in closed form: K⁻¹ gives the left-out residuals as
    ([K⁻¹]_gg)⁻¹ [K⁻¹y]_g (Rasmussen & Williams, 2006, section 5.4.2, for single points).
    """
    distinct = np.unique(groups)
    if len(distinct) < LEAST_GROUPS:
        return 0.0
    alpha = inverse @ values
    left_out = np.empty_like(values)
    for value in distinct:
        g = np.flatnonzero(groups == value)
        left_out[g] = np.linalg.solve(inverse[np.ix_(g, g)], alpha[g])
    return math.sqrt(float(np.sum(left_out**2)) / max(float(np.sum(values**2)), 1e-300))
