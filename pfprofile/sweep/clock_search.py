"""`--freqs auto`: the lowest, the middle and the highest clock, then those that the rows so far call the best.

On a grid of GPU counts × batches two lead curves choose the clocks, and all others are measured at these: the one
that computes most (fewest GPUs, largest batch) and the one that computes least (most GPUs, smallest batch), between
which the best clocks of the others lie. Each is fitted by itself. At most `MOST_CLOCKS` clocks are measured in all.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from pfprofile.sweep.space import AUTO_CLOCKS, Point, Row
from pfprofile.sweep.surrogate import Machine, expect, first_trials, fit_rows
from pfprofile.units import format_clock

MOST_CLOCKS = AUTO_CLOCKS
#: A predicted optimum this near to a measured clock needs no clock of its own.
CLOSE = 0.02
#: The second optimum asked for: the least energy within this slowdown over the highest clock …
SLOWDOWN = 0.05
#: … kept with this much to spare, as `pick` keeps it.
GUARD = 0.01

#: Everything but the clock: n_gpus, n_nodes, local_batch, accum_steps.
Curve = tuple[int, int, int, int]


def curve_of(point: Point) -> Curve:
    """The curve over the clock that a point lies on."""
    return point.n_gpus, point.n_nodes, point.local_batch, point.accum_steps


def at_clock(curve: Curve, clock_mhz: float | None) -> Point:
    """The point of a curve at one clock."""
    n, k, batch, accum = curve
    return Point(n, batch, clock_mhz, accum, k)


def opening(clocks: Sequence[float]) -> list[float]:
    """The lowest, the one nearest to the middle, and the highest of some clocks."""
    low, high = min(clocks), max(clocks)
    middle = min(clocks, key=lambda c: abs(c - (low + high) / 2))
    return sorted({low, middle, high})


def is_close(clock_mhz: float, measured: Sequence[float]) -> bool:
    """Whether a measured clock lies within `CLOSE` of one."""
    return any(abs(m / clock_mhz - 1) <= CLOSE for m in measured)


@dataclass(slots=True)
class ClockSearch:
    """Chooses the clocks of a sweep from the rows of its lead curves; a pure function of these rows.

    Attributes:
        machine: what a fit must know beside the rows.
        seed: of the order of the opening clocks.
        reason: why the search has stopped, in words; "" while it goes on.
    """

    machine: Machine
    seed: int = 0
    reason: str = ""
    _memo: dict[tuple[tuple[float, float | None], ...], list[float]] = field(default_factory=dict)

    def next_point(self, curves: Mapping[Curve, Sequence[float]], rows: Sequence[Row]) -> Point | None:
        """The next point to measure for the choice; None when the clocks are chosen.

        Args:
            curves: the clocks that each curve may be measured at.
            rows: the trials so far.
        """
        leads = lead_curves(curves, rows)
        for lead in leads:
            tried = self._tried(lead, rows)
            start = opening(curves[lead])
            random.Random(f"{self.seed} {lead}").shuffle(start)
            for clock in start:
                if clock not in tried:
                    return at_clock(lead, clock)
            chosen = {c for other in leads for c in self._tried(other, rows)} & set(curves[lead])
            for clock in sorted(chosen - tried.keys()):
                return at_clock(lead, clock)  # what one lead chose the other is measured at too
            if len(chosen) >= MOST_CLOCKS:
                self.reason = f"{MOST_CLOCKS} clocks are measured"
                continue
            wish = self._wish(lead, tried, curves[lead])
            if wish is not None:
                return at_clock(lead, wish)
        return None

    def clocks(self, curves: Mapping[Curve, Sequence[float]], rows: Sequence[Row]) -> list[float]:
        """The clocks that have been chosen, ascending."""
        return sorted({c for lead in lead_curves(curves, rows) for c in self._tried(lead, rows)})

    def _tried(self, lead: Curve, rows: Sequence[Row]) -> dict[float, Row]:
        tried: dict[float, Row] = {}
        for row in rows:
            point = Point.of_row(row)
            if point.sm_clock_mhz is not None and curve_of(point) == lead:
                tried.setdefault(point.sm_clock_mhz, row)
        return tried

    def _wish(self, lead: Curve, tried: Mapping[float, Row], clocks: Sequence[float]) -> float | None:
        """The predicted optimum that no measured clock is close to; None = there is none."""
        good = first_trials(tried.values())
        if len(good) < min(3, len(clocks)):
            self.reason = "too few clocks could be measured to choose further ones"
            return None
        key = tuple((r["step_time_s"], r.get("power_w")) for r in good)
        if key not in self._memo:
            self._memo[key] = self._optima(lead, good, clocks)
        optima = self._memo[key]
        # The two optima take turns: the energy optimum is the fourth clock, that under a slowdown the fifth.
        turn = (len(tried) - len(opening(clocks))) % len(optima)
        for clock in (*optima[turn:], *optima[:turn]):
            if not is_close(clock, list(tried)):
                return clock
        words = " and ".join(format_clock(c) for c in sorted(set(optima)))
        self.reason = f"the predicted optimum ({words}) lies within {CLOSE:.0%} of a measured clock"
        return None

    def _optima(self, lead: Curve, good: Sequence[Row], clocks: Sequence[float]) -> list[float]:
        """The clock of least energy, and that under the slowdown; without power only the slowest within it."""
        choices = sorted(clocks)
        expected = expect(fit_rows(good, self.machine), [at_clock(lead, c) for c in choices])
        slow = expected.step_time_s / expected.step_time_s[-1] - 1
        within = slow <= SLOWDOWN - GUARD
        within[-1] = True
        if not np.isfinite(expected.power_w).all():
            return [choices[int(np.flatnonzero(within)[0])]]
        energy = expected.step_time_s * expected.power_w
        return [choices[int(np.argmin(energy))], choices[int(np.argmin(np.where(within, energy, np.inf)))]]


def lead_curves(curves: Mapping[Curve, Sequence[float]], rows: Sequence[Row]) -> list[Curve]:
    """The curve that computes most and the one that computes least, of those on which nothing has failed yet."""
    bad = {curve_of(Point.of_row(r)) for r in rows if r["status"] != "ok"}
    most = max((len(c) for c in curves.values()), default=0)
    usable = [c for c in curves if c not in bad and len(curves[c]) >= min(most, 3)]
    if not usable:
        return []
    ranks: tuple[Callable[[Curve], tuple[int, ...]], ...] = (
        lambda c: (c[0], c[1], -c[2] * c[3]),
        lambda c: (-c[0], -c[1], c[2] * c[3]),
    )
    return list(dict.fromkeys(min(usable, key=rank) for rank in ranks))
