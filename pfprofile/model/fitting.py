"""Fit the joint form: soft-L1 least squares on log residuals, log parameters, ridge, several starts.

scipy is imported inside the functions, so that a program that only predicts never loads it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from pfprofile.model.facts import Facts, facts_of
from pfprofile.model.forms import Values, evaluate, to_inner
from pfprofile.model.freeze import Frozen, frozen_terms
from pfprofile.model.observations import Observations
from pfprofile.model.points import Floats
from pfprofile.model.saturation import inferred_cap_w
from pfprofile.model.terms import TERMS, Design

RIDGE = 0.02
SOFT_L1_SCALE = 0.05
SOLVER: dict[str, Any] = {
    "loss": "soft_l1", "f_scale": SOFT_L1_SCALE, "x_scale": "jac", "max_nfev": 200,
    "ftol": 1e-8, "xtol": 1e-8, "gtol": 1e-9,
}  # fmt: skip
#: starts beside the priors: shape parameters from which narrow valleys are reached
STARTS: tuple[dict[str, float], ...] = ({}, {"p": 6.0, "gamma": 1.2}, {"p": 1.2, "gamma": 5.0})


@dataclass(frozen=True, slots=True)
class Frame:
    """How clocks become relative clocks, and the cap.

    Attributes:
        f_max_mhz: clock at φ = 1; NaN where no clock is known.
        default_mhz: clock of an unlocked GPU, MHz; NaN where unknown (then φ = 1).
        cap_w: power limit of rows that do not record one: the device's, or one read off a plateau; NaN = none.
    """

    f_max_mhz: float
    default_mhz: float
    cap_w: float = np.nan

    def phi(self, clock_mhz: Floats) -> Floats:
        """Relative clock of clocks in MHz; NaN is the default clock."""
        if not np.isfinite(self.f_max_mhz):
            return np.ones_like(clock_mhz)
        default = self.default_mhz if np.isfinite(self.default_mhz) else self.f_max_mhz
        return np.asarray(np.where(np.isfinite(clock_mhz), clock_mhz, default) / self.f_max_mhz, dtype=np.float64)


def frame_of(
    obs: Observations,
    default_mhz: float | None = None,
    supported_mhz: tuple[float, ...] = (),
    power_limit_w: float | None = None,
) -> Frame:
    """The clock frame of a data set, from its rows and what its metadata say."""
    cap_w = power_limit_w if power_limit_w is not None else inferred_cap_w(obs)
    clocks = obs.clock_mhz[np.isfinite(obs.clock_mhz)]
    unlocked = obs.achieved_mhz[~np.isfinite(obs.requested_mhz) & np.isfinite(obs.achieved_mhz)]
    if default_mhz is None and np.isfinite(obs.requested_mhz).any() and len(unlocked):
        default_mhz = float(np.median(unlocked))
    known = [*clocks, *supported_mhz, *([default_mhz] if default_mhz else [])]
    if not known:
        return Frame(np.nan, np.nan, cap_w)
    return Frame(float(max(known)), float(default_mhz) if default_mhz else np.nan, cap_w)


@dataclass(frozen=True, slots=True)
class Problem:
    """A data set ready to fit."""

    obs: Observations
    design: Design
    cap_w: Floats
    facts: Facts
    frozen: dict[str, Frozen]
    frame: Frame

    @property
    def free(self) -> list[int]:
        """Indices of the parameters that are fitted."""
        return [j for j, t in enumerate(TERMS) if t.name not in self.frozen]

    def start(self) -> Floats:
        """Every parameter at its prior, or where it is frozen."""
        theta = np.array([np.clip(t.prior(self.facts), t.lower, t.upper) for t in TERMS], dtype=np.float64)
        for j, t in enumerate(TERMS):
            if t.name in self.frozen:
                theta[j] = self.frozen[t.name].value
        return theta


def design_of(obs: Observations, frame: Frame) -> Design:
    """The configurations of a data set."""
    return Design(obs.n_gpus, obs.n_nodes, obs.local_batch, obs.accum_steps, frame.phi(obs.clock_mhz))


def caps_of(obs: Observations, frame: Frame) -> Floats:
    """The cap to model each row with: none where the clock that was reached is recorded."""
    limit = np.where(np.isfinite(obs.power_limit_w), obs.power_limit_w, frame.cap_w)
    return np.where(np.isfinite(obs.achieved_mhz), np.nan, limit)


def pose(obs: Observations, frame: Frame, device_name: str = "", idle_power_w: float | None = None) -> Problem:
    """Priors, freezes and designs of a data set."""
    design = design_of(obs, frame)
    facts = facts_of(obs, design.phi, device_name, idle_power_w)
    cap = caps_of(obs, frame) if obs.has_power else np.full(len(obs), np.nan)
    return Problem(obs, design, cap, facts, frozen_terms(obs, facts, cap), frame)


@dataclass(frozen=True, slots=True)
class Solution:
    """The result of the solver.

    Attributes:
        theta: parameter values, in the order of `TERMS`.
        cost: robust cost at the solution, ridge included.
        values: the form at the data, with derivatives.
        converged: the solver met a tolerance.
        message: what it said.
    """

    theta: Floats
    cost: float
    values: Values
    converged: bool
    message: str


def solve(problem: Problem, starts: int = len(STARTS)) -> Solution:
    """Fit the free parameters.

    Args:
        problem: the data, posed.
        starts: how many of `STARTS` to try; the least cost wins.
    """
    from scipy.optimize import least_squares

    free = problem.free
    terms = [TERMS[j] for j in free]
    base = problem.start()
    center = np.array([t.inner(base[j]) for j, t in zip(free, terms, strict=True)])
    lower = np.array([t.inner(t.lower) if t.lower > 0 or not t.log else -700.0 for t in terms])
    upper = np.array([t.inner(t.upper) for t in terms])
    weight = np.array([RIDGE / t.sd for t in terms])
    log_time = np.log(problem.obs.step_time_s)
    powered = np.isfinite(problem.obs.power_w)
    log_power = np.log(problem.obs.power_w[powered])
    cache: dict[bytes, Values] = {}

    def outer(x: Floats) -> Floats:
        theta = base.copy()
        theta[free] = [t.outer(v) for t, v in zip(terms, x, strict=True)]
        return theta

    def at(x: Floats) -> Values:
        key = x.tobytes()
        if key not in cache:
            cache.clear()
            cache[key] = evaluate(outer(x), problem.design, problem.cap_w, jacobian=True)
        return cache[key]

    def residuals(x: Floats) -> Floats:
        values = at(x)
        return np.concatenate([np.log(values.time_s) - log_time, np.log(values.power_w[powered]) - log_power,
                               weight * (x - center)])  # fmt: skip

    def jacobian(x: Floats) -> Floats:
        values, theta = at(x), outer(x)
        assert values.d_log_time is not None and values.d_log_power is not None
        return np.vstack([to_inner(values.d_log_time, theta)[:, free],
                          to_inner(values.d_log_power[powered], theta)[:, free], np.diag(weight)])  # fmt: skip

    best: Solution | None = None
    for shape in STARTS[: max(1, starts)]:
        x0 = np.array([t.inner(shape.get(t.name, base[j])) for j, t in zip(free, terms, strict=True)])
        if best is not None and np.array_equal(x0, center):
            continue  # none of the shapes is free: the same start again
        x0 = np.clip(x0, lower + 1e-6, upper - 1e-6)
        found = least_squares(residuals, x0, jac=jacobian, bounds=(lower, upper), **SOLVER)
        if best is None or found.cost < best.cost:
            theta = outer(found.x)
            values = evaluate(theta, problem.design, problem.cap_w, jacobian=True)
            best = Solution(theta, float(found.cost), values, bool(found.status > 0), str(found.message))
    assert best is not None
    return best
