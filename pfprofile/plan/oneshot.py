"""One allocation for the whole life of every job: by prices, then polished; and the policy that carries it out."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from pfprofile.errors import InfeasibleError
from pfprofile.plan.bounds.static import Floats, StaticProblem
from pfprofile.policy.base import Choice, Decision, State

BISECTIONS = 40
MOST_ROUNDS = 200


class FixedPolicy:
    """Everybody starts at once with a given choice and keeps it."""

    name = "static"

    def __init__(self, choices: Mapping[int, Choice]) -> None:
        self.choices = choices

    def decide(self, state: State) -> Decision:
        """Start what waits."""
        return Decision({index: self.choices[index] for index in sorted(state.waiting)})


class _Search:
    """The problem with its options as one row a job, padded by options that never pay."""

    def __init__(self, problem: StaticProblem) -> None:
        counts = np.bincount(problem.owner, minlength=problem.count)
        shape = (problem.count, int(counts.max()))
        self.option = np.zeros(shape, dtype=np.int64)
        self.time = np.full(shape, np.inf)
        self.energy = np.full(shape, np.inf)
        self.n = np.full(shape, 1 << 40, dtype=np.int64)
        column = np.concatenate([np.arange(c) for c in counts])
        where = (problem.owner, column)
        self.option[where] = np.arange(len(problem.configs))
        self.time[where], self.energy[where], self.n[where] = problem.time_s, problem.energy_j, problem.n
        self.padding = ~np.isfinite(self.time)
        self.capacity, self.budget_j = problem.capacity[0], problem.budget_j
        self.rows = np.arange(problem.count)

    def at(self, price: float) -> tuple[NDArray[np.int64], float]:
        """Least time + λ·energy + μ·n a job, with the smallest μ at which all GPUs suffice; and that μ."""
        base = np.where(self.padding, np.inf, self.time + price * np.where(self.padding, 0.0, self.energy))
        counts = self.n.astype(float)

        def pick(mu: float) -> NDArray[np.int64]:
            return np.asarray(np.argmin(base + mu * counts, axis=1))

        picks = pick(0.0)
        if self.used(picks) <= self.capacity:
            return picks, 0.0
        low, high = 0.0, 1.0
        while self.used(pick(high)) > self.capacity:
            low, high = high, high * 4.0
            if high > 1e30:
                raise InfeasibleError("the fewest GPUs of all jobs do not fit at once", "plan without --exact")
        for _ in range(BISECTIONS):
            middle = 0.5 * (low + high)
            low, high = (low, middle) if self.used(pick(middle)) <= self.capacity else (middle, high)
        return pick(high), high

    def used(self, picks: NDArray[np.int64]) -> int:
        """GPUs that picks take."""
        return int(self.n[self.rows, picks].sum())

    def spent(self, picks: NDArray[np.int64]) -> float:
        """Energy of picks, J."""
        return float(self.energy[self.rows, picks].sum())

    def total(self, picks: NDArray[np.int64]) -> float:
        """Σ JCT of picks, s."""
        return float(self.time[self.rows, picks].sum())

    def polish(self, picks: NDArray[np.int64], price: float, mu: float) -> NDArray[np.int64]:
        """Improve one job, or two at once, while GPUs and budget hold."""
        picks = picks.copy()
        for _ in range(MOST_ROUNDS):
            if not (self._one(picks) or self._two(picks, price, mu)):
                break
        return picks

    def _moves(self, picks: NDArray[np.int64]) -> tuple[Floats, Floats, Floats]:
        d_time = self.time - self.time[self.rows, picks][:, None]
        d_energy = np.where(self.padding, np.inf, self.energy - self.energy[self.rows, picks][:, None])
        d_n = (self.n - self.n[self.rows, picks][:, None]).astype(float)
        return d_time, d_energy, d_n

    def _one(self, picks: NDArray[np.int64]) -> bool:
        d_time, d_energy, d_n = self._moves(picks)
        fits = (d_n <= self.capacity - self.used(picks)) & (d_energy <= self.budget_j - self.spent(picks))
        gain = np.where(fits, d_time, np.inf)
        job, option = np.unravel_index(int(np.argmin(gain)), gain.shape)
        if gain[job, option] >= -1e-9 * self.time[job, picks[job]]:
            return False
        picks[job] = option
        return True

    def _two(self, picks: NDArray[np.int64], price: float, mu: float) -> bool:
        """The best pair of moves among the options of small reduced cost."""
        d_time, d_energy, d_n = self._moves(picks)
        energy = np.where(self.padding, 0.0, self.energy)
        reduced = np.where(self.padding, np.inf, self.time + price * energy + mu * self.n)
        reduced -= reduced.min(axis=1, keepdims=True)
        flat = np.argsort(reduced, axis=None, kind="stable")[: 6 * len(self.rows) + 64]
        flat = flat[np.isfinite(reduced.ravel()[flat])]
        jobs, options = np.unravel_index(flat, reduced.shape)
        t, e, n = d_time[jobs, options], d_energy[jobs, options], d_n[jobs, options]
        room, slack = self.capacity - self.used(picks), self.budget_j - self.spent(picks)
        takers = np.flatnonzero(t < 0)
        if not len(takers):
            return False
        gain = t[takers][:, None] + t[None, :]
        fits = (n[takers][:, None] + n[None, :] <= room) & (jobs[takers][:, None] != jobs[None, :])
        if math.isfinite(slack):
            fits &= e[takers][:, None] + e[None, :] <= slack
        gain = np.where(fits, gain, np.inf)
        a, b = np.unravel_index(int(np.argmin(gain)), gain.shape)
        if gain[a, b] >= -1e-9 * self.total(picks) / len(self.rows):
            return False
        picks[jobs[takers[a]]], picks[jobs[b]] = options[takers[a]], options[b]
        return True


def one_shot(problem: StaticProblem) -> list[int]:
    """An option index a job, near the least Σ JCT within GPUs and budget (one pool).

    The smallest λ on a bisected line at which the budget holds, the smallest μ at which the GPUs do, then a local
    search over the few options whose reduced cost is small.

    Raises:
        InfeasibleError: not even the least energy fits, or the fewest GPUs do not.
    """
    search = _Search(problem)
    picks, mu = search.at(0.0)
    price = 0.0
    tries = [(picks, 0.0, mu)]
    if search.spent(picks) > search.budget_j:
        low, high = 0.0, 1e-9
        while search.spent(search.at(high)[0]) > search.budget_j:
            low, high = high, high * 4.0
            if high > 1e12:
                break
        for _ in range(BISECTIONS):
            price = 0.5 * (low + high)
            low, high = (low, price) if search.spent(search.at(price)[0]) <= search.budget_j else (price, high)
        tries = []
        for factor in (1.0, 1.005, 1.02, 1.06, 1.15, 1.4):
            picks, mu = search.at(high * factor)
            tries.append((picks, high * factor, mu))
    best: NDArray[np.int64] | None = None
    for picks, price, mu in tries:
        if search.spent(picks) > search.budget_j:
            continue
        polished = search.polish(picks, price, mu)
        if best is None or search.total(polished) < search.total(best):
            best = polished
    if best is None:
        raise InfeasibleError("no fixed configurations fit the GPUs and the budget at once", "raise --budget")
    return [int(o) for o in search.option[search.rows, best]]
