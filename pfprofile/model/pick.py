"""The best point for one job: least energy, time or energy-delay product within a slowdown, a power cap, a deadline."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from pfprofile.errors import InfeasibleError, InputError
from pfprofile.model.fitted import FittedModel
from pfprofile.model.points import Bools, Floats, Points, Predictions

OBJECTIVES = ("energy", "time", "edp")
#: a slowdown limit is kept with this much to spare: models overshot one in seven otherwise
GUARD = 0.01


@dataclass(frozen=True, slots=True)
class Limits:
    """What the chosen point must keep.

    Attributes:
        max_slowdown: allowed increase of the step time over the default clock, as a fraction; None = any.
        power_cap_w: highest power of one GPU, W; None = any.
        deadline_s: latest end of the work, s; None = any.
        samples: size of the work, samples; needed for a deadline (default: one epoch).
    """

    max_slowdown: float | None = None
    power_cap_w: float | None = None
    deadline_s: float | None = None
    samples: float | None = None


@dataclass(frozen=True, slots=True)
class Choice:
    """The chosen point beside the default clock at the same GPUs and batch.

    Attributes:
        chosen, default: one-point predictions.
        energy_saved, time_added: fractions against the default clock.
        energy_saved_lo, energy_saved_hi, time_added_lo, time_added_hi: their 90 % intervals, from joint draws.
        objective: what was minimised.
        at_edge: the chosen clock is the lowest that was considered.
        advice: what to know or do before relying on it.
    """

    chosen: Predictions
    default: Predictions
    energy_saved: float
    energy_saved_lo: float
    energy_saved_hi: float
    time_added: float
    time_added_lo: float
    time_added_hi: float
    objective: str
    at_edge: bool
    advice: tuple[str, ...]

    def row(self) -> dict[str, Any]:
        """The choice as one flat record."""
        out = {"objective": self.objective, **next(self.chosen.rows())}
        base = next(self.default.rows())
        out.update({f"default_{k}": base[k] for k in ("sm_clock_mhz", "step_time_s", "power_w", "energy_per_step_j")})
        for name in ("energy_saved", "time_added"):
            for suffix in ("", "_lo", "_hi"):
                value = getattr(self, name + suffix)
                out[name + suffix] = None if np.isnan(value) else value
        return out


def clocks_to_try(model: FittedModel) -> Floats:
    """The clocks that a choice is made among: supported ones inside the measured range; NaN where none can be set."""
    supported, measured = np.array(model.supported_clocks_mhz), model.document.domain.clock_mhz
    if not len(supported):
        return np.array([np.nan])
    inside = supported[(supported >= measured[0] * 0.995) & (supported <= measured[-1] * 1.005)]
    return inside if len(inside) else np.array(measured)


def candidates(model: FittedModel, gpus: list[int] | None, batches: list[int] | None, clocks: Floats | None) -> Points:
    """All combinations to choose among; by default the largest measured batch on the fewest GPUs."""
    domain = model.document.domain
    n = np.array(gpus or [domain.n_gpus[0]])
    b = np.array(batches or [domain.local_batch[-1]])
    f = clocks_to_try(model) if clocks is None else clocks
    grid = [g.ravel() for g in np.meshgrid(n, b, f, indexing="ij")]
    return Points.of(grid[0], grid[1], n_nodes=-(-grid[0] // model.gpus_per_node), sm_clock_mhz=grid[2])


def clocks_given(model: FittedModel, asked: str | Sequence[float | None]) -> Floats | None:
    """The clocks of a command line; None = those that can be set (`clocks_to_try`). ``auto`` means the same here."""
    if isinstance(asked, str):
        return None
    return np.array([np.nan if f is None else f for f in asked])


def _at_default(points: Points) -> Points:
    return Points(points.n_gpus, points.n_nodes, points.local_batch, points.accum_steps,
                  np.full(len(points), np.nan))  # fmt: skip


def pick(model: FittedModel, points: Points, objective: str, limits: Limits) -> Choice:
    """Choose among points.

    Per sample, so that batches and GPU counts compare: energy E, time T, or E·T.

    Raises:
        InputError: power is asked for and the model has none.
        InfeasibleError: no point keeps the limits; names the limit and how close one comes.
    """
    if not model.has_power and (objective != "time" or limits.power_cap_w is not None):
        raise InputError(f"{model.workload}: the model has no power", "use --objective time, or measure power")
    predictions, default = model.predict(points), model.predict(_at_default(points))
    allowed = _allowed(model, predictions, default, limits)
    samples = points.n_gpus * points.local_batch * points.accum_steps
    time = predictions.step_time_s / samples
    energy = predictions.energy_per_step_j / samples
    score = {"time": time, "energy": energy, "edp": energy * time}[objective]
    best = int(np.flatnonzero(allowed)[np.argmin(score[allowed])])
    return _compare(model, points, best, objective)


def _allowed(model: FittedModel, predictions: Predictions, default: Predictions, limits: Limits) -> Bools:
    allowed = np.ones(len(predictions.points), dtype=np.bool_)
    if limits.max_slowdown is not None:
        slow = predictions.step_time_s / default.step_time_s - 1
        # The guard gives way where it would forbid even the default clock.
        allowed &= slow <= max(limits.max_slowdown - GUARD, 0.0) + 1e-9
        _none_left(allowed, f"no clock keeps a slowdown of {limits.max_slowdown:.1%}", f"the least is {slow.min():.1%}")
    if limits.power_cap_w is not None:
        allowed &= predictions.power_w <= limits.power_cap_w
        _none_left(
            allowed, f"no point keeps {limits.power_cap_w:g} W a GPU", f"the least is {predictions.power_w.min():.0f} W"
        )
    if limits.deadline_s is not None:
        work = limits.samples or model.document.facts.samples_per_epoch
        if work is None:
            raise InputError(f"{model.workload}: a deadline needs the size of the work", "give --samples")
        need = work / predictions.throughput_per_s
        allowed &= need <= limits.deadline_s
        _none_left(allowed, f"no point ends within {limits.deadline_s:g} s", f"the fastest takes {need.min():.0f} s")
    return allowed


def _none_left(allowed: Bools, message: str, hint: str) -> None:
    if not allowed.any():
        raise InfeasibleError(message, hint)


def _compare(model: FittedModel, points: Points, best: int, objective: str) -> Choice:
    def one(p: Points) -> Points:
        return Points(*(getattr(p, name)[best : best + 1] for name in Points.__slots__))

    here = one(points)
    both = Points(
        *(np.concatenate([getattr(here, name), getattr(_at_default(here), name)]) for name in Points.__slots__)
    )
    chosen, default = model.predict(here), model.predict(_at_default(here))
    time, power = model.draws(both, 400, seed=0)
    saved = 1 - (time * power)[:, 0] / (time * power)[:, 1]
    added = time[:, 0] / time[:, 1] - 1
    clocks = points.sm_clock_mhz
    f = float(here.sm_clock_mhz[0])
    low, high = np.quantile(saved, [0.05, 0.95])
    slow, slower = np.quantile(added, [0.05, 0.95])
    at_edge = bool(len(np.unique(clocks)) > 1 and f == clocks.min())
    return Choice(
        chosen, default,
        float(1 - chosen.energy_per_step_j[0] / default.energy_per_step_j[0]), float(low), float(high),
        float(chosen.step_time_s[0] / default.step_time_s[0] - 1), float(slow), float(slower),
        objective, at_edge, _advice(chosen, at_edge),
    )  # fmt: skip


def _advice(chosen: Predictions, at_edge: bool) -> tuple[str, ...]:
    out = []
    f = float(chosen.points.sm_clock_mhz[0])
    if np.isfinite(f):
        out.append(f"verify it: run one step at {f:g} MHz and at the default clock before relying on the saving")
    if at_edge:
        out.append("the lowest clock considered is the best: a lower one may be better still")
    if bool(chosen.extrapolated[0]):
        out.append("the point lies outside what was measured")
    return tuple(out)
