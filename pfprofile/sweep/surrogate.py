"""A model of the rows so far, only to choose what to measure next: fitted with one start, never written anywhere.

The model room is imported inside the functions: a sweep that chooses nothing loads no scipy.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from pfprofile.sweep.space import Point, Row

if TYPE_CHECKING:
    from pfprofile.model.fit import Fit

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Machine:
    """What a fit must know of the device beside the rows; None or empty = unknown."""

    device_name: str = ""
    default_clock_mhz: float | None = None
    supported_clocks_mhz: tuple[float, ...] = ()
    power_limit_w: float | None = None


@dataclass(frozen=True, slots=True)
class Expected:
    """What the rows so far let one expect of points; arrays (m,). Power of one GPU, NaN = no row has power."""

    step_time_s: Floats
    power_w: Floats


def first_trials(rows: Iterable[Row]) -> list[Row]:
    """The first trial of each point that ended well, so that a later repeat never changes a choice made before it."""
    firsts: dict[Point, Row] = {}
    for row in rows:
        if row["status"] == "ok":
            firsts.setdefault(Point.of_row(row), row)
    return list(firsts.values())


def fit_rows(rows: Sequence[Row], machine: Machine) -> Fit:
    """Fit the joint form to rows that ended well (at least one)."""
    from pfprofile.model.fit import fit_observations
    from pfprofile.model.fitting import frame_of
    from pfprofile.model.observations import READ, from_columns

    obs = from_columns({name: [row.get(name) for row in rows] for name in READ}, "sweep")
    frame = frame_of(obs, machine.default_clock_mhz, machine.supported_clocks_mhz, machine.power_limit_w)
    return fit_observations(obs, frame, machine.device_name, starts=1)


def expect(fit: Fit, points: Sequence[Point]) -> Expected:
    """Time and power of points after a fit."""
    from pfprofile.model.forms import evaluate
    from pfprofile.model.terms import Design

    problem = fit.problem
    table = np.array(
        [(p.n_gpus, p.n_nodes, p.local_batch, p.accum_steps, p.sm_clock_mhz or np.nan) for p in points],
        dtype=np.float64,
    )
    n, k, b, s, clock = table.T
    powered = problem.obs.has_power
    cap = np.full(len(points), problem.frame.cap_w if powered and problem.frame.cap_w is not None else np.nan)
    values = evaluate(fit.solution.theta, Design(n, k, b, s, problem.frame.phi(clock)), cap)
    return Expected(values.time_s, values.power_w if powered else np.full(len(points), np.nan))
