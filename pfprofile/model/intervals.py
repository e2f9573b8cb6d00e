"""Uncertainty of a fit: covariance with the priors, effective degrees of freedom, Student-t quantiles. numpy only."""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np

from pfprofile.model.fitting import Problem, Solution
from pfprofile.model.forms import to_inner
from pfprofile.model.points import Floats
from pfprofile.model.solver import SOFT_L1_SCALE
from pfprofile.model.terms import TERMS

#: no model of a clock axis is trusted below this, nats
CLOCK_SIGMA_FLOOR = 0.01
SIGMA_FLOOR = 0.002
ENOUGH_FOR_A_QUANTILE = 20
WEAK_NORM = 1e-3
WEAK_LOG_SD = 1.0
#: how far past the measured domain intervals widen
OUTSIDE_FACTOR = 2.0


@dataclass(frozen=True, slots=True)
class Spread:
    """Uncertainty of a solution.

    Attributes:
        indices: parameters with uncertainty: the fitted ones and the frozen ones that may be otherwise.
        covariance: of the solver's parameters, (q, q).
        sigma_time, sigma_power: spread of the data about the form, nats (power NaN where unknown).
        dof: effective degrees of freedom.
        weak: names of parameters the data hardly tell, with the reason.
    """

    indices: tuple[int, ...]
    covariance: Floats
    sigma_time: float
    sigma_power: float
    dof: float
    weak: dict[str, str]


def spread_of(problem: Problem, solution: Solution) -> Spread:
    """Covariance (JᵀJ/σ² + prior)⁻¹ at a solution; rows count with their soft-L1 weight."""
    values, theta = solution.values, solution.theta
    assert values.d_log_time is not None and values.d_log_power is not None
    free = problem.free
    unknown = [j for j, t in enumerate(TERMS) if t.name in problem.frozen and problem.frozen[t.name].unknown]
    indices = sorted(free + unknown)
    powered = np.isfinite(problem.obs.power_w)
    r_time = np.log(values.time_s) - np.log(problem.obs.step_time_s)
    r_power = np.log(values.power_w[powered]) - np.log(problem.obs.power_w[powered])
    j_time = to_inner(values.d_log_time, theta)[:, free]
    j_power = to_inner(values.d_log_power[powered], theta)[:, free]
    w_time, w_power = _weights(r_time), _weights(r_power)
    prior = np.diag([1.0 / TERMS[j].sd ** 2 for j in free])
    sigma_t, sigma_p = _raw_sigma(r_time, w_time), _raw_sigma(r_power, w_power)
    for _ in range(3):  # sigma and effective parameters depend on each other; it settles at once
        info = (j_time.T * w_time) @ j_time / sigma_t**2 + (j_power.T * w_power) @ j_power / sigma_p**2
        covariance = np.asarray(np.linalg.pinv(info + prior, hermitian=True), dtype=np.float64)
        used = float(np.trace(covariance @ info))
        total = len(r_time) + len(r_power)
        share = total / max(total - used, 1.0)
        floor = CLOCK_SIGMA_FLOOR if problem.facts.has_clock_axis else SIGMA_FLOOR
        sigma_t = max(_raw_sigma(r_time, w_time) * math.sqrt(share), floor)
        sigma_p = max(_raw_sigma(r_power, w_power) * math.sqrt(share), floor)
    full = np.zeros((len(indices), len(indices)))
    place = [indices.index(j) for j in free]
    full[np.ix_(place, place)] = covariance
    for j in unknown:
        full[indices.index(j), indices.index(j)] = TERMS[j].sd ** 2
    joint = np.vstack([j_time, j_power]) if len(r_power) else j_time
    weak = _weak(joint, covariance, free)
    return Spread(tuple(indices), full, sigma_t, sigma_p if len(r_power) else math.nan, max(total - used, 1.0), weak)


def _weights(residual: Floats) -> Floats:
    """Soft-L1 weight of each row: 1 for small residuals, less for outliers."""
    return np.asarray(1.0 / np.sqrt(1.0 + (residual / SOFT_L1_SCALE) ** 2), dtype=np.float64)


def _raw_sigma(residual: Floats, weight: Floats) -> float:
    """Spread of residuals: their soft-L1 root mean square, or what a normal 90 % interval needs, if that is more."""
    if not len(residual):
        return 1.0
    sigma = math.sqrt(float(np.sum(weight * residual**2) / np.sum(weight)))
    if len(residual) >= ENOUGH_FOR_A_QUANTILE:
        sigma = max(sigma, float(np.quantile(np.abs(residual), 0.9)) / NormalDist().inv_cdf(0.95))
    return max(sigma, SIGMA_FLOOR)


def _weak(joint: Floats, covariance: Floats, free: list[int]) -> dict[str, str]:
    out: dict[str, str] = {}
    norms = np.linalg.norm(joint, axis=0)
    for i, j in enumerate(free):
        term, sd = TERMS[j], math.sqrt(max(covariance[i, i], 0.0))
        if norms[i] < WEAK_NORM * math.sqrt(len(joint)):
            out[term.name] = "weak: the data hardly depend on it"
        elif sd > WEAK_LOG_SD:
            out[term.name] = f"weak: known only within a factor of {math.exp(min(sd, 20.0)):.3g}"
    return out


def t_quantile(level: float, dof: float) -> float:
    """Half-width, in standard deviations, of a central interval of Student's t.

    Exact at 1 and 2 degrees of freedom; else the expansion of Abramowitz & Stegun 26.7.5 (error < 1 % from 3 on).
    """
    p = 0.5 + level / 2
    if dof < 1.5:
        return math.tan(math.pi * (p - 0.5))
    if dof < 2.5:
        a = 2 * p - 1
        return a * math.sqrt(2 / (1 - a**2))
    z = NormalDist().inv_cdf(p)
    terms = (
        (z**3 + z) / 4,
        (5 * z**5 + 16 * z**3 + 3 * z) / 96,
        (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384,
        (79 * z**9 + 776 * z**7 + 1482 * z**5 - 1920 * z**3 - 945 * z) / 92160,
    )
    return z + sum(term / dof ** (i + 1) for i, term in enumerate(terms))
