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
#: jobs above which neighbours in size share a block of ranks
MOST_ROWS = 192


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

    def __init__(self, jobs: Sequence[Job], n_gpus: int, budget_j: float) -> None:
        self.kinds = _kinds(jobs)
        self.count = len(jobs)
        self.n_gpus = n_gpus
        self.budget_j = budget_j
        first = min(job.submit_s for job in jobs)
        self.delay_s = math.fsum(job.submit_s - first for job in jobs)

    def unit(self, kind: _Kind, alpha: float, price: float, behind: Floats) -> Floats:
        """min over configurations of the cost of a sample, for each number of jobs from here on, (m,)."""
        base = alpha * kind.time + price * kind.energy
        if alpha >= 1.0:
            return np.full(len(behind), float(base.min()))
        return np.asarray((base + ((1.0 - alpha) / self.n_gpus) * behind[:, None] * kind.gpu_time).min(axis=1))

    def value(self, alpha: float, price: float) -> float:
        """The bound on Σ JCT, s."""
        constant = -(1.0 - alpha) * self.delay_s - (price * self.budget_j if price > 0 else 0.0)
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
        """Many jobs: potentials from a coarse problem, made feasible for the fine one (weak duality keeps it valid)."""
        behind = np.arange(self.count, 0, -1, dtype=np.float64)
        units = [self.unit(kind, alpha, price, behind) for kind in self.kinds]
        # Each kind's jobs, longest last; a guess of the order: by the cost of the work in the middle rank.
        size = np.empty(self.count)
        for kind, unit in zip(self.kinds, units, strict=True):
            size[kind.members] = kind.work * unit[self.count // 2]
        order = np.argsort(size, kind="stable")
        rank = np.empty(self.count, dtype=np.int64)
        rank[order] = np.arange(self.count)
        # v_r: what one more rank is worth to the job sitting there; on top, what each job can make of its best rank.
        steps = np.zeros(self.count)
        for kind, unit in zip(self.kinds, units, strict=True):
            places = rank[kind.members]
            ahead = np.minimum(places + 1, self.count - 1)
            steps[places] = kind.work * (unit[ahead] - unit[places])
        v = np.concatenate(([0.0], np.cumsum(steps[:-1])))
        total = float(v.sum())
        for kind, unit in zip(self.kinds, units, strict=True):
            total += float(_least_rest(kind.work, unit, v).sum())
        return total


def _least_rest(work: Floats, unit: Floats, v: Floats) -> Floats:
    """min over ranks of work·unit − v for each job, (m,): the lower envelope of lines in ``work``."""
    out = np.empty(len(work))
    for begin in range(0, len(work), 256):
        part = work[begin : begin + 256]
        out[begin : begin + 256] = (part[:, None] * unit - v).min(axis=1)
    return out


def preemptive_bound_s(jobs: Sequence[Job], n_gpus: int, budget_j: float | None = None) -> float:
    """Average JCT that no schedule within the budget beats, s.

    Args:
        jobs: what is to be run.
        n_gpus: GPUs of the cluster, all pools together.
        budget_j: energy, J; None = unlimited.
    """
    if not jobs:
        return 0.0
    dual = _Dual(jobs, n_gpus, budget_j if budget_j is not None else math.inf)
    best = 0.0
    for alpha in (1.0, 0.0, 0.05, 0.15, 0.3, 0.5, 0.75):
        best = max(best, _best_price(dual, alpha) if budget_j is not None else dual.value(alpha, 0.0))
    return best / len(jobs)


def _best_price(dual: _Dual, alpha: float) -> float:
    """Maximum over λ ≥ 0 of a concave function: octaves first, then golden sections around the best."""
    exponents = np.arange(-30.0, 3.0, 2.0)
    values = [dual.value(alpha, float(2.0**e)) for e in exponents]
    i = int(np.argmax(values))
    low, high = exponents[max(0, i - 1)], exponents[min(len(exponents) - 1, i + 1)]
    best = max(values[i], dual.value(alpha, 0.0))
    ratio = (math.sqrt(5.0) - 1.0) / 2.0
    for _ in range(8):
        a, b = high - ratio * (high - low), low + ratio * (high - low)
        left, right = dual.value(alpha, float(2.0**a)), dual.value(alpha, float(2.0**b))
        best = max(best, left, right)
        low, high = (low, b) if left >= right else (a, high)
    return best
