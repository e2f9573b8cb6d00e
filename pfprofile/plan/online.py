"""An energy budget kept without knowing what will arrive: spend in proportion to the work that has arrived.

At every review the smallest λ is sought at which

    spent + energy to finish what is here (at λ)  ≤  budget · (work arrived / expected work),

with work in joules, Σ work · min(P'/speed), so that unlike jobs add up. Pacing by time would fail: energy follows work.
λ moves on its logarithm and is smoothed over about a day.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from pfprofile.plan.bounds.energy import least_work_energy_j
from pfprofile.policy.base import Decision, Job, JobState, State
from pfprofile.policy.hulls import STEPS_PER_OCTAVE, grid_index, grid_price, ladder, price_breaks
from pfprofile.policy.pfprofile import PfprofilePolicy

DAY_S = 86400.0
#: λ is looked at again after this long, s
REVIEW_S = 1800.0


def expected_work_j(jobs: Sequence[Job]) -> float:
    """The measure of work that the budget is spread over, J: a right forecast for these jobs."""
    return math.fsum(least_work_energy_j(job) for job in jobs)


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
        self._level: float | None = None  # λ as a (fractional) index of the price grid
        self._low, self._high = math.inf, -math.inf
        self._reviewed_s = -math.inf

    def decide(self, state: State) -> Decision:
        """See `pfprofile.policy.base.Policy`."""
        for job in state.arrived:
            self._arrived_j += least_work_energy_j(job.job)
            self._widen(job)
        here = bool(state.running or state.waiting)
        if here and (self._level is None or state.now_s - self._reviewed_s >= REVIEW_S):
            self._review(state)
        decision = self.inner.decide(state)
        return Decision(decision.changes, state.now_s + REVIEW_S if here else math.inf, decision.consolidate_price)

    def _widen(self, job: JobState) -> None:
        """Keep λ's range over everything at which some job changes its mind."""
        for table in job.job.tables.values():
            key = ("range", job.job.min_n, job.job.max_n)
            if key not in table.cache:
                breaks = price_breaks(table, job.job.min_n, job.job.max_n) or [1e-6]
                table.cache[key] = (grid_index(min(breaks)), grid_index(max(breaks)))
            low, high = table.cache[key]
            self._low = min(self._low, low - STEPS_PER_OCTAVE)
            self._high = max(self._high, high + STEPS_PER_OCTAVE)

    def _review(self, state: State) -> None:
        target = self._target(state)
        if self._level is None:
            self._level = target
        else:
            passed_s = state.now_s - self._reviewed_s
            self._level += (target - self._level) * (1.0 - math.exp(-passed_s / self.smoothing_s))
        self._reviewed_s = state.now_s
        index = round(self._level)
        price = 0.0 if index <= self._low else grid_price(index)
        if price != self.inner.energy_price:
            self.inner.reprice(price, state)

    def _target(self, state: State) -> float:
        """The lowest level at which what is here can be finished within its share of the budget, by bisection."""
        allowed_j = self.budget_j * min(1.0, self._arrived_j / self.expected_j) - state.spent_j
        # What idle GPUs and half-empty nodes have added so far is expected to go on.
        overhead = state.spent_j / state.share_j if state.share_j > 0 else 1.0
        low, high = int(self._low), int(self._high)
        if overhead * self._to_finish_j(state, low) <= allowed_j:
            return low
        while high - low > 1:
            middle = (low + high) // 2
            if overhead * self._to_finish_j(state, middle) <= allowed_j:
                high = middle
            else:
                low = middle
        return high

    def _to_finish_j(self, state: State, index: int) -> float:
        total_j = 0.0
        books = self.inner.books
        for job in (*state.running.values(), *state.waiting.values()):
            pool = job.pool if job.pool in job.job.tables else next(iter(job.job.tables))
            options = ladder(job.job.tables[pool], index, job.job.min_n, job.job.max_n)
            config = options.rungs[options.rung_at(books[pool].gpu_price if pool in books else 0.0)]
            total_j += job.remaining_at(state.now_s) * config.power_w / config.speed_per_s
        return total_j
