"""An energy budget kept without knowing what will arrive, by work: how much is to come is forecast, not when or what.

At every review the smallest λ is sought at which

    spent + κ·(E_here(λ) + E_seen(λ)·(expected − arrived)/arrived)  ≤  budget,

with work in joules, Σ work · min(P'/speed), so that unlike jobs add up. E_here is the energy to finish what is here,
E_seen the energy of everything that has arrived, both at λ: what is still to come is taken to be like what has been
seen. κ is what has really been spent for the work done so far ÷ what the configurations of the λ of that time alone
explain (idle GPUs, half-empty nodes, restarts, scarce GPUs). So an over- or underspend is made good over all the work
that is left. Pacing by time would fail: energy follows work. λ moves on its logarithm and is smoothed over about a
day.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from pfprofile.plan.bounds.energy import least_work_energy_j
from pfprofile.policy.base import Decision, Job, State
from pfprofile.policy.hulls import STEPS_PER_OCTAVE, grid_index, grid_price, ladder
from pfprofile.policy.pfprofile import PfprofilePolicy

DAY_S = 86400.0
#: λ is looked at again after this long, s
REVIEW_S = 1800.0
#: the levels of λ that are considered, as indices of the price grid
_LOW, _HIGH = grid_index(2.0**-28) or 0, grid_index(2.0**2) or 0
LEVELS = list(range(_LOW, _HIGH + 1, STEPS_PER_OCTAVE // 4))
#: κ is measured once so much of the expected work is done; before, it is what standing power adds
ENOUGH_DONE = 0.01
#: share of the budget that is not planned with: the last jobs cannot make good what was misjudged before
RESERVE = 0.02
#: how near to the least energy is near enough where the budget cannot be kept
NEARLY = 0.01

Floats = NDArray[np.float64]


def expected_work_j(jobs: Sequence[Job]) -> float:
    """The measure of work that the budget is spread over, J: a right forecast for these jobs."""
    return math.fsum(least_work_energy_j(job) for job in jobs)


def _energies(job: Job) -> Floats:
    """Energy of one sample at the best configuration of each level, J, (levels,); kept in the job's table."""
    table = next(iter(job.tables.values()))
    key = ("levels", job.min_n, job.max_n)
    found: Floats | None = table.cache.get(key)
    if found is None:
        best = [ladder(table, k, job.min_n, job.max_n).best for k in LEVELS]
        found = table.cache[key] = np.array([c.power_w / c.speed_per_s for c in best])
    return found


class OnlineBudget:
    """The default policy with λ steered by an energy budget.

    Args:
        budget_j: energy for the whole expected work, J.
        expected_work_j: forecast of Σ work · min(P'/speed), J; see `expected_work_j`.
        smoothing_s: time constant of λ, s.
    """

    name = "pfprofile-online"

    def __init__(self, budget_j: float, expected_work_j: float, smoothing_s: float = DAY_S) -> None:
        self.budget_j, self.expected_j, self.smoothing_s = budget_j, expected_work_j, smoothing_s
        self.inner = PfprofilePolicy()
        self._arrived_j = 0.0
        self._seen_j = np.zeros(len(LEVELS))
        self._done_j = np.zeros(len(LEVELS))
        self._explained_j = 0.0
        self._level: float | None = None
        self._reviewed_s = -math.inf

    def decide(self, state: State) -> Decision:
        """See `pfprofile.policy.base.Policy`."""
        for job in state.arrived:
            self._arrived_j += least_work_energy_j(job.job)
            self._seen_j += job.job.work * _energies(job.job)
        here = bool(state.running or state.waiting)
        if here and (self._level is None or state.now_s - self._reviewed_s >= REVIEW_S):
            self._review(state)
        decision = self.inner.decide(state)
        return Decision(decision.changes, state.now_s + REVIEW_S if here else math.inf, decision.consolidate_price)

    def _review(self, state: State) -> None:
        target = self._target(state)
        if self._level is None:
            self._level = target
        else:
            passed_s = state.now_s - self._reviewed_s
            self._level += (target - self._level) * (1.0 - math.exp(-passed_s / self.smoothing_s))
        self._reviewed_s = state.now_s
        position = round(self._level)
        price = 0.0 if position == 0 else grid_price(LEVELS[position])
        if price != self.inner.energy_price:
            self.inner.reprice(price, state)

    def _target(self, state: State) -> int:
        """Position in `LEVELS` of the smallest λ that keeps the budget; where none does, of the smallest that saves
        nearly all there is to save: beyond, jobs take for ever, on nodes that are not paid for by their share.
        """
        left_j = np.zeros(len(LEVELS))
        for job in (*state.running.values(), *state.waiting.values()):
            left_j += job.remaining_at(state.now_s) * _energies(job.job)
        to_come = max(0.0, self.expected_j - self._arrived_j) / self._arrived_j
        need_j = state.spent_j + self._overhead(state, left_j) * (left_j + to_come * self._seen_j)
        enough_j = max(self.budget_j * (1.0 - RESERVE), float(need_j.min()) * (1.0 + NEARLY))
        return int(np.flatnonzero(need_j <= enough_j)[0])

    def _overhead(self, state: State, left_j: Floats) -> float:
        """κ: what has been spent ÷ what the work done since each review explains at the λ of that time."""
        done_j = self._seen_j - left_j
        position = round(self._level) if self._level is not None else 0
        self._explained_j += float(done_j[position] - self._done_j[position])
        self._done_j = done_j
        if self._explained_j > ENOUGH_DONE * self.expected_j:
            return state.spent_j / self._explained_j
        return state.spent_j / state.share_j if state.share_j > 0 else 1.0
