"""A lower bound on the average JCT of every schedule, however often it reallocates.

Let p_i be the time job i runs and a_i the GPU time it gets. Each JCT is at least p_i. Sort jobs by completion: when
the k-th is done, the GPU time of the first k has been spent on G GPUs, so Σ C ≥ Σ_k (A − k + 1)·a_(k)/G. Mixing both by
α and pricing the energy budget by λ gives, whatever the order of completion is,

    Σ JCT ≥ min over orders π of Σ_i work_i · min_x [α + (1 − α)·(A − π(i) + 1)·n_x/G + λ·P'_x]/speed_x
            − (1 − α)·Σ (submit_i − first submit) − λ·B,

a linear assignment for any α in [0, 1] and λ ≥ 0. docs/planner.md has the proof.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment

from pfprofile.plan.bounds.energy import job_configs
from pfprofile.policy.base import Job

Floats = NDArray[np.float64]
#: up to this many jobs the assignment is solved exactly; above, ranks are taken in this many blocks
MOST_ROWS = 160
BLOCKS = 256
#: mixtures of run time and GPU time that are tried
ALPHAS = (0.0, 0.1, 0.3, 0.6)


@dataclass(frozen=True, slots=True)
class _Kind:
    """Jobs with the same options: their work (samples), and time, GPU time and energy of a sample by configuration."""

    members: NDArray[np.int64]
    work: Floats
    time: Floats
    gpu_time: Floats
    energy: Floats


def _kinds(jobs: Sequence[Job]) -> list[_Kind]:
    groups: dict[Any, list[int]] = {}
    for i, job in enumerate(jobs):
        groups.setdefault((*(id(t) for t in job.tables.values()), job.min_n, job.max_n), []).append(i)
    kinds = []
    for members in groups.values():
        configs = job_configs(jobs[members[0]])
        speed = np.array([c.speed_per_s for c in configs])
        kinds.append(
            _Kind(
                np.array(members),
                np.array([jobs[i].work for i in members]),
                1.0 / speed,
                np.array([c.n for c in configs]) / speed,
                np.array([c.power_w for c in configs]) / speed,
            )
        )  # fmt: skip
    return kinds


class _Dual:
    """The bound on Σ JCT as a function of (α, λ)."""

    def __init__(self, jobs: Sequence[Job], n_gpus: int, budget_j: float, start_s: float) -> None:
        self.kinds = _kinds(jobs)
        self.count = len(jobs)
        self.n_gpus = n_gpus
        self.budget_j = budget_j
        ready = [max(job.submit_s, start_s) for job in jobs]
        first = min(ready)
        self.delay_s = math.fsum(r - first for r in ready)
        self.waited_s = math.fsum(r - job.submit_s for r, job in zip(ready, jobs, strict=True))

    def unit(self, kind: _Kind, alpha: float, price: float, behind: Floats) -> Floats:
        """min over configurations of the cost of a sample, for each number of jobs from here on, (m,)."""
        base = alpha * kind.time + price * kind.energy
        if alpha >= 1.0:
            return np.full(len(behind), float(base.min()))
        return np.asarray((base + ((1.0 - alpha) / self.n_gpus) * behind[:, None] * kind.gpu_time).min(axis=1))

    def value(self, alpha: float, price: float) -> float:
        """The bound on Σ JCT, s."""
        constant = self.waited_s - (1.0 - alpha) * self.delay_s - (price * self.budget_j if price > 0 else 0.0)
        if alpha >= 1.0:
            none = np.zeros(1)
            return constant + math.fsum(
                float(k.work.sum()) * float(self.unit(k, alpha, price, none)[0]) for k in self.kinds
            )
        if self.count <= MOST_ROWS:
            return constant + self._assign(alpha, price)
        return constant + self._blocks(alpha, price)

    def _assign(self, alpha: float, price: float) -> float:
        behind = np.arange(self.count, 0, -1, dtype=np.float64)
        cost = np.empty((self.count, self.count))
        for kind in self.kinds:
            cost[kind.members] = kind.work[:, None] * self.unit(kind, alpha, price, behind)
        rows, columns = linear_sum_assignment(cost)
        return float(cost[rows, columns].sum())

    def _blocks(self, alpha: float, price: float) -> float:
        """Many jobs: blocks of ranks, each charged as its last (cheapest) rank, and any potentials (weak duality).

        With v_b the potential of a rank in block b, Σ_b |b|·v_b + Σ_i min_b (cost_ib − v_b) is below the assignment
        whatever v is; v is guessed from the jobs' order by size.
        """
        ends = np.unique(np.linspace(0, self.count, BLOCKS + 1).astype(np.int64))
        sizes, lasts = np.diff(ends), ends[1:] - 1
        behind = (self.count - lasts).astype(np.float64)
        units = [self.unit(kind, alpha, price, behind) for kind in self.kinds]
        size = np.empty(self.count)
        for kind, unit in zip(self.kinds, units, strict=True):
            size[kind.members] = kind.work * unit[len(unit) // 2]
        order = np.argsort(size, kind="stable")
        block = np.empty(self.count, dtype=np.int64)
        block[order] = np.searchsorted(ends, np.arange(self.count), side="right") - 1
        # One more block along is worth what its jobs' cost falls by, on average.
        falls = np.zeros(len(sizes))
        for kind, unit in zip(self.kinds, units, strict=True):
            here = block[kind.members]
            ahead = np.minimum(here + 1, len(sizes) - 1)
            falls += np.bincount(here, weights=kind.work * (unit[ahead] - unit[here]), minlength=len(sizes))
        v = np.concatenate(([0.0], np.cumsum((falls / sizes)[:-1])))
        total = float((sizes * v).sum())
        for kind, unit in zip(self.kinds, units, strict=True):
            total += float((kind.work[:, None] * unit - v).min(axis=1).sum())
        return total


def preemptive_bound_s(jobs: Sequence[Job], n_gpus: int, budget_j: float | None = None, start_s: float = 0.0) -> float:
    """Average JCT that no schedule within the budget beats, s.

    Args:
        jobs: what is to be run.
        n_gpus: GPUs of the cluster, all pools together.
        budget_j: energy, J; None = unlimited.
        start_s: no job runs before.
    """
    if not jobs:
        return 0.0
    dual = _Dual(jobs, n_gpus, budget_j if budget_j is not None else math.inf, start_s)
    if budget_j is None:
        return max(dual.value(alpha, 0.0) for alpha in (1.0, *ALPHAS)) / len(jobs)
    best, exponent = _best_price(dual, 1.0, -30.0, 4.0, 24)
    best = max(best, dual.value(1.0, 0.0))
    for alpha in ALPHAS:
        low = -30.0 if exponent is None else exponent - 4.0
        found, _ = _best_price(dual, alpha, low, 4.0 if exponent is None else exponent + 4.0, 7)
        best = max(best, found, dual.value(alpha, 0.0))
    return best / len(jobs)


def _best_price(dual: _Dual, alpha: float, low: float, high: float, steps: int) -> tuple[float, float | None]:
    """Maximum over log2 λ in an interval by golden sections (the dual is concave in λ), and where it is."""
    ratio = (math.sqrt(5.0) - 1.0) / 2.0
    best, where = -math.inf, None
    a, b = high - ratio * (high - low), low + ratio * (high - low)
    left, right = dual.value(alpha, 2.0**a), dual.value(alpha, 2.0**b)
    for _ in range(steps):
        if left >= right:
            if left > best:
                best, where = left, a
            high, b, right = b, a, left
            a = high - ratio * (high - low)
            left = dual.value(alpha, 2.0**a)
        else:
            if right > best:
                best, where = right, b
            low, a, left = a, b, right
            b = low + ratio * (high - low)
            right = dual.value(alpha, 2.0**b)
    return best, where
