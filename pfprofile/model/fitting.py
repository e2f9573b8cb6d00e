"""Fit the joint form: soft-L1 least squares on log residuals, log parameters, ridge, several starts."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pfprofile.model.facts import Facts, facts_of
from pfprofile.model.forms import Values, evaluate, to_inner
from pfprofile.model.freeze import Frozen, frozen_terms
from pfprofile.model.observations import Observations
from pfprofile.model.points import Floats
from pfprofile.model.saturation import inferred_cap_w
from pfprofile.model.solver import minimise
from pfprofile.model.terms import TERMS, Design

RIDGE = 0.02
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


class _System:
    """A problem as the solver sees it: residuals and Jacobian over the free parameters, ridge rows last."""

    def __init__(self, problem: Problem) -> None:
        self._problem, self._free = problem, problem.free
        self.terms = [TERMS[j] for j in self._free]
        self._base = problem.start()
        self.center = self.inner(self._base)
        self.bounds = (
            np.array([t.inner(t.lower) for t in self.terms]),
            np.array([t.inner(t.upper) for t in self.terms]),
        )
        self._weight = np.array([RIDGE / t.sd for t in self.terms])
        self._powered = np.isfinite(problem.obs.power_w)
        self._target = np.log(np.concatenate([problem.obs.step_time_s, problem.obs.power_w[self._powered]]))
        self._last: tuple[bytes, Values] | None = None

    def inner(self, theta: Floats, **changes: float) -> Floats:
        """Free parameters of all parameter values, some of them changed."""
        return np.array([t.inner(changes.get(t.name, theta[j])) for j, t in zip(self._free, self.terms, strict=True)])

    def outer(self, x: Floats) -> Floats:
        """All parameter values."""
        theta = self._base.copy()
        theta[self._free] = [t.outer(v) for t, v in zip(self.terms, x, strict=True)]
        return theta

    def starts(self, count: int) -> list[Floats]:
        """The priors, and the same with other shapes."""
        return [self.inner(self._base, **shape) for shape in STARTS[: max(1, count)]]

    def _at(self, x: Floats) -> Values:
        # The solver asks for residuals and Jacobian at the same x in turn.
        key = x.tobytes()
        if self._last is None or self._last[0] != key:
            problem = self._problem
            values = evaluate(self.outer(x), problem.design, problem.cap_w, jacobian=True, power=problem.obs.has_power)
            self._last = (key, values)
        return self._last[1]

    def residuals(self, x: Floats) -> Floats:
        """Log predicted over log measured, and the ridge."""
        values = self._at(x)
        predicted = np.log(np.concatenate([values.time_s, values.power_w[self._powered]]))
        return np.concatenate([predicted - self._target, self._weight * (x - self.center)])

    def jacobian(self, x: Floats) -> Floats:
        """Their derivatives."""
        values, theta = self._at(x), self.outer(x)
        assert values.d_log_time is not None and values.d_log_power is not None
        rows = np.vstack([values.d_log_time, values.d_log_power[self._powered]])
        return np.vstack([to_inner(rows, theta)[:, self._free], np.diag(self._weight)])


def solve(problem: Problem, starts: int = len(STARTS)) -> Solution:
    """Fit the free parameters.

    Args:
        problem: the data, posed.
        starts: how many of `STARTS` to try; the least cost wins.
    """
    system = _System(problem)
    found = minimise(system.residuals, system.jacobian, system.starts(starts), system.bounds)
    theta = system.outer(found.x)
    values = evaluate(theta, problem.design, problem.cap_w, jacobian=True)
    return Solution(theta, found.cost, values, found.converged, found.message)
