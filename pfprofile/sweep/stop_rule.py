"""When `--max-points auto` has measured enough: the held-out error stands still and no axis is left in the dark."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from pfprofile.sweep.space import Row
from pfprofile.sweep.surrogate import Machine, fit_rows

#: The rule is first asked at so many points, and then after each further batch.
LEAST_POINTS = 16
BATCH = 4
#: So many points are measured where the rule does not stop earlier …
USUAL_POINTS = 30
#: … and so many at the most, while an axis is still weak.
MOST_POINTS = 60
#: The leave-one-out error, in points of MAPE, must have moved less than this over two batches.
STANDS_STILL = 0.005

#: Which parameters carry an axis: it is weak where none of its own is told by the data.
AXES = {
    "--freqs": ("c1",),
    "--batch-sizes": ("a1", "c1"),
    "--gpus": ("kappa", "alpha_r", "alpha_n"),
}


@dataclass(frozen=True, slots=True)
class Look:
    """What a fit of the first m points says.

    Attributes:
        error: leave-one-out MAPE of time and power together, as a fraction.
        weak: flags of the requested axes that the data hardly tell anything about.
    """

    error: float
    weak: tuple[str, ...]


def look(rows: Sequence[Row], machine: Machine, asked: Sequence[str]) -> Look:
    """Fit some rows and judge the fit.

    The leave-one-out residual is r / (1 − h) with the leverage h of the linearised fit, so that one fit is enough
    (exact for a linear model; Allen 1974, the PRESS statistic).

    Args:
        rows: trials that ended well.
        machine: what else the fit must know.
        asked: flags of the axes that have several values.
    """
    from pfprofile.model.forms import to_inner
    from pfprofile.model.terms import NAMES, TERMS

    fit = fit_rows(rows, machine)
    obs, values, free = fit.problem.obs, fit.solution.values, fit.problem.free
    powered = np.isfinite(obs.power_w)
    assert values.d_log_time is not None and values.d_log_power is not None
    residual = np.concatenate([
        np.log(values.time_s / obs.step_time_s), np.log(values.power_w[powered] / obs.power_w[powered])
    ])  # fmt: skip
    slopes = np.vstack([values.d_log_time, values.d_log_power[powered]])
    jacobian = to_inner(slopes, fit.solution.theta)[:, free]
    noise = max(float(np.sqrt(np.mean(residual**2))), 1e-3)
    prior = np.diag([(noise / TERMS[j].sd) ** 2 for j in free])
    leverage = np.einsum("ij,jk,ik->i", jacobian, np.linalg.pinv(jacobian.T @ jacobian + prior), jacobian)
    left_out = residual / np.maximum(1 - leverage, 0.05)
    told = {NAMES[j] for j in free} - fit.spread.weak.keys()
    weak = tuple(flag for flag in asked if not told & set(AXES[flag]))
    return Look(float(np.mean(np.expm1(np.abs(left_out)))), weak)


def verdict(looks: Sequence[Look], n_points: int) -> str | None:
    """Why to stop after the last of some looks, one a batch; None = go on.

    Args:
        looks: at `LEAST_POINTS` − 2 batches, then after every further batch.
        n_points: measured so far.
    """
    if n_points < LEAST_POINTS or len(looks) < 3:
        return None
    weak = looks[-1].weak
    errors = [one.error for one in looks[-3:]]
    moved = max(errors) - min(errors)
    said = f"its leave-one-out error of {errors[-1]:.1%}"
    if not weak and moved < STANDS_STILL:
        return f"{said} moved by {100 * moved:.1f} points over the last {2 * BATCH} points, and no axis is weak"
    if n_points >= MOST_POINTS:
        return f"{MOST_POINTS} points are the most that auto measures; still weak: {', '.join(weak) or 'nothing'}"
    if n_points >= USUAL_POINTS and not weak:
        return f"{USUAL_POINTS} points are what auto measures; {said} still moved by {100 * moved:.1f} points"
    return None
