"""Fixed configurations, everybody at once: the Lagrangian dual and the exact optimum by MILP.

    min Σ_i work_i / speed(x_i)   with   Σ n ≤ G in each pool   and   Σ work_i · P'(x_i)/speed(x_i) ≤ B

one configuration x_i a job for its whole life, all jobs started together. The linear relaxation of this multiple-choice
problem has the value of its Lagrangian dual in (μ, λ), so it is solved as such.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import Bounds, LinearConstraint, milp
from scipy.sparse import csr_matrix

from pfprofile.cluster.speed_table import Config
from pfprofile.errors import InfeasibleError
from pfprofile.policy.base import Job

Floats = NDArray[np.float64]
#: a MILP stops here with the best it has, and says how far off that may be
TIME_LIMIT_S = 60.0


@dataclass(frozen=True, slots=True)
class StaticProblem:
    """All options of all jobs, flat; every array (m,).

    Attributes:
        owner: the job of each option.
        pool, n: where it runs and on how many GPUs.
        time_s, energy_j: of the job's whole work.
        configs: the options themselves.
        capacity: GPUs of each pool.
        budget_j: energy; infinite = none.
    """

    count: int
    owner: NDArray[np.int64]
    pool: NDArray[np.int64]
    n: NDArray[np.int64]
    time_s: Floats
    energy_j: Floats
    configs: list[Config]
    capacity: list[int]
    budget_j: float


def static_problem(jobs: Sequence[Job], capacity: Sequence[int], budget_j: float | None) -> StaticProblem:
    """Gather the options of jobs for pools of ``capacity`` GPUs."""
    owner, pool, configs, work = [], [], list[Config](), []
    for i, job in enumerate(jobs):
        for p, table in job.tables.items():
            for n in table.counts(job.min_n, job.max_n):
                for config in table.by_n[n]:
                    owner.append(i)
                    pool.append(p)
                    configs.append(config)
                    work.append(job.work)
    speed = np.array([c.speed_per_s for c in configs])
    time_s = np.array(work) / speed
    return StaticProblem(
        len(jobs), np.array(owner), np.array(pool), np.array([c.n for c in configs]), time_s,
        time_s * np.array([c.power_w for c in configs]), configs, list(capacity),
        math.inf if budget_j is None else budget_j,
    )  # fmt: skip


def _solve(problem: StaticProblem, *, whole: bool, gap: float = 0.0) -> tuple[Any, float]:
    m = len(problem.configs)
    columns = np.arange(m)
    one_each = csr_matrix((np.ones(m), (problem.owner, columns)), shape=(problem.count, m))
    fit = csr_matrix((problem.n.astype(float), (problem.pool, columns)), shape=(len(problem.capacity), m))
    limits = [LinearConstraint(one_each, 1, 1), LinearConstraint(fit, -np.inf, np.array(problem.capacity, float))]
    if math.isfinite(problem.budget_j):
        # Scaled: HiGHS works to absolute tolerances.
        limits.append(LinearConstraint(csr_matrix(problem.energy_j / problem.budget_j), -np.inf, 1.0))
    scale = float(problem.time_s.mean())
    found = milp(
        problem.time_s / scale, integrality=np.full(m, int(whole)), bounds=Bounds(0, 1), constraints=limits,
        options={"mip_rel_gap": gap, "time_limit": TIME_LIMIT_S},
    )  # fmt: skip
    if found.x is None:
        raise InfeasibleError(
            "no fixed configurations fit the GPUs and the budget at once", "raise --budget, or plan without --exact"
        )
    return found, scale


def static_bound_s(problem: StaticProblem) -> float:
    """Average JCT that no choice of fixed configurations beats (the dual's value), s.

    Raises:
        InfeasibleError: not even fractions of configurations fit.
    """
    found, scale = _solve(problem, whole=False)
    value: float = float(found.fun) * scale / problem.count * (1.0 - 1e-9)
    return value


def exact_choice(problem: StaticProblem, gap: float = 1e-6) -> tuple[list[int], float]:
    """The best fixed configurations by MILP: an option index a job, and a proven lower bound on the average JCT, s.

    Raises:
        InfeasibleError: nothing fits.
    """
    found, scale = _solve(problem, whole=True, gap=gap)
    chosen = np.flatnonzero(found.x > 0.5)
    picks = [0] * problem.count
    for option in chosen.tolist():
        picks[int(problem.owner[option])] = option
    proven = float(found.mip_dual_bound) if found.mip_dual_bound is not None else float(found.fun)
    return picks, min(proven, float(found.fun)) * scale / problem.count * (1.0 - 1e-9)
