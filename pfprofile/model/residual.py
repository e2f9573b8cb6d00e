"""Last stage: a Gaussian process on what the form leaves over, in log configuration space. numpy alone."""

from __future__ import annotations

import math

import numpy as np

from pfprofile.model.document import Residual, ResidualPart
from pfprofile.model.points import Bools, Floats
from pfprofile.model.terms import Design

#: one unit of distance: a factor e in GPUs, nodes or batch, 0.25 in log clock
CLOCK_LENGTH = 0.25
#: random features of a smooth field
N_FEATURES = 128


def features(d: Design) -> Floats:
    """Inputs of the process, (m, 4): log n, log k, log b, log φ / 0.25."""
    return np.column_stack([np.log(d.n), np.log(d.k), np.log(d.b), np.log(d.phi) / CLOCK_LENGTH])


def kernel(x: Floats, y: Floats) -> Floats:
    """Squared-exponential correlation, (len(x), len(y))."""
    square = (x**2).sum(1)[:, None] + (y**2).sum(1)[None, :] - 2 * x @ y.T
    return np.asarray(np.exp(-0.5 * np.maximum(square, 0.0)), dtype=np.float64)


class ResidualField:
    """The process conditioned on the stored residuals.

    Args:
        residual: the stored stage, or None where the model has none.
    """

    def __init__(self, residual: Residual | None) -> None:
        self._parts: dict[str, tuple[float, Floats, Floats, Floats]] = {}
        for name in ("time", "power"):
            part = getattr(residual, name, None)
            if part is not None:
                self._parts[name] = self._conditioned(part)

    @staticmethod
    def _conditioned(part: ResidualPart) -> tuple[float, Floats, Floats, Floats]:
        inputs = np.array(part.inputs, dtype=np.float64).reshape(-1, 4)
        gram = part.amplitude**2 * kernel(inputs, inputs)
        gram[np.diag_indices_from(gram)] += part.noise**2 + 1e-12
        inverse = np.asarray(np.linalg.inv(gram), dtype=np.float64)
        return part.amplitude, inputs, inverse, inverse @ np.array(part.values, dtype=np.float64)

    def posterior(self, x: Floats, name: str, far: Bools) -> tuple[Floats, Floats]:
        """Mean (nats) and variance of the process at inputs ``x``; outside the domain its prior: 0 and amplitude²."""
        if name not in self._parts:
            return np.zeros(len(x)), np.zeros(len(x))
        amplitude, inputs, inverse, alpha = self._parts[name]
        cross = amplitude**2 * kernel(x, inputs)
        variance = amplitude**2 - np.einsum("ij,jk,ik->i", cross, inverse, cross, optimize=True)
        return np.where(far, 0.0, cross @ alpha), np.where(far, amplitude**2, np.maximum(variance, 0.0))

    @staticmethod
    def smooth(x: Floats, n_draws: int, rng: np.random.Generator) -> Floats:
        """Smooth random fields of unit variance with the process's length scales, (n_draws, m); random features."""
        frequency = rng.standard_normal((4, N_FEATURES))
        phase = rng.uniform(0, 2 * math.pi, N_FEATURES)
        wave = math.sqrt(2 / N_FEATURES) * np.cos(x @ frequency + phase)
        return np.asarray(rng.standard_normal((n_draws, N_FEATURES)) @ wave.T, dtype=np.float64)
