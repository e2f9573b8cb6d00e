"""The least-squares solver: scipy's trust region with our tolerances, from several starts. Knows nothing of models.

scipy is imported inside the function, so that a program that only predicts never loads it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from pfprofile.model.points import Floats

#: residuals (nats) well beyond this count linearly, not squared
SOFT_L1_SCALE = 0.05
TOLERANCE = 1e-7
MOST_EVALUATIONS = 200
#: starts keep this far from the bounds, in the solver's parameters
MARGIN = 1e-6


@dataclass(frozen=True, slots=True)
class Minimum:
    """Where the solver ended: parameters, cost, whether it met a tolerance, and what it said."""

    x: Floats
    cost: float
    converged: bool
    message: str


def minimise(
    residuals: Callable[[Floats], Floats],
    jacobian: Callable[[Floats], Floats],
    starts: Sequence[Floats],
    bounds: tuple[Floats, Floats],
    *,
    robust: bool = True,
    tolerance: float = TOLERANCE,
) -> Minimum:
    """Least squares from each start; the least cost wins.

    Args:
        residuals: x → (m,).
        jacobian: x → (m, q).
        starts: at least one x, (q,); moved inside the bounds. Repeated ones are tried once.
        bounds: lower and upper, (q,) each.
        robust: soft-L1 loss at `SOFT_L1_SCALE` in place of squares.
        tolerance: of cost and step.
    """
    from scipy.optimize import least_squares

    lower, upper = bounds
    best: Minimum | None = None
    tried: set[bytes] = set()
    for start in starts:
        x0 = np.clip(start, lower + MARGIN, upper - MARGIN)
        if x0.tobytes() in tried:
            continue
        tried.add(x0.tobytes())
        found = least_squares(
            residuals, x0, jac=jacobian, bounds=(lower, upper), loss="soft_l1" if robust else "linear",
            f_scale=SOFT_L1_SCALE, x_scale="jac", max_nfev=MOST_EVALUATIONS, ftol=tolerance, xtol=tolerance, gtol=1e-9,
        )  # fmt: skip
        if best is None or found.cost < best.cost:
            best = Minimum(found.x, float(found.cost), bool(found.status > 0), str(found.message))
    if best is None:
        raise ValueError("no start given")
    return best
