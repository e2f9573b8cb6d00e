"""Where energy falls below the budget on a grid of λ, with few simulations: for more jobs than a full grid is worth.

Energy falls along the grid (up to where lone jobs keep nodes on), so the schedule to take is the one at the first price
that keeps the budget. A closed form of the energy (`StaticEnergy`) says where that should be; each simulation corrects
its level, and the search ends when a price keeps the budget and the one below it does not. The answer is the full
grid's wherever energy and JCT change with λ in one direction.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from pfprofile.cluster.speed_table import SpeedTable
from pfprofile.policy.base import Job
from pfprofile.policy.hulls import Ladder, grid_index, ladder


def first_within(
    expected_j: Callable[[int], float], within: Callable[[int], bool], energy_j: Callable[[int], float],
    budget_j: float, count: int,
) -> int | None:  # fmt: skip
    """The first position of a grid whose schedule keeps the budget.

    Args:
        expected_j: a guess of the energy at a position, J; only its shape matters.
        within: whether the schedule at a position keeps all limits; called once a position.
        energy_j: its energy, J; asked only after ``within``.
        budget_j: the budget, J.
        count: positions.

    Returns:
        The position; None where the search found none that keeps the budget.
    """
    low, high, level, asked = -1, count, 1.0, 0
    known: dict[int, float] = {}
    while high - low > 1:
        if low in known and high in known:
            guess = _between(low, high, known, budget_j, halve=asked % 3 == 2)
        else:
            inside = range(low + 1, high)
            likely = (k for k in inside if level * expected_j(k) <= budget_j)
            guess = next(likely, high - 1 if high in known else min(inside, key=expected_j))
        fits = within(guess)
        asked += 1
        known[guess] = energy_j(guess)
        level = known[guess] / expected_j(guess)
        low, high = (low, guess) if fits else (guess, high)
    return high if high < count else None


def _between(low: int, high: int, known: dict[int, float], budget_j: float, *, halve: bool) -> int:
    """Where a straight line of log energy meets the budget; now and then the middle, so that it cannot creep."""
    guess = (low + high) // 2
    if not halve and known[low] > budget_j > 0 and known[high] < known[low]:
        share = math.log(known[low] / budget_j) / math.log(known[low] / known[high])
        guess = low + round(share * (high - low))
    return min(high - 1, max(low + 1, guess))


@dataclass(frozen=True, slots=True)
class _Kind:
    """Jobs with the same options in one pool: how many run in a stage, and the samples each of them does in it."""

    table: SpeedTable
    least: int
    most: int
    count: int
    samples: float


class StaticEnergy:
    """Energy of all jobs if they ran at once and made headway alike, J.

    Half of the jobs are done after a first stage, half of the others after a second one, and so on. In each stage the
    GPUs of a pool go to the steps up the ladders that are worth most for a GPU, as in `policy.prices.share`, for kinds
    of jobs instead of jobs. Idle power and restarts are left out.
    """

    def __init__(self, jobs: Sequence[Job], n_gpus: Sequence[int]) -> None:
        by_pool: dict[int, list[Job]] = {}
        for job in jobs:
            by_pool.setdefault(next(iter(job.tables)), []).append(job)
        self._stages = [(n_gpus[pool], kinds) for pool, own in by_pool.items() for kinds in _stages(own, pool)]
        self._known: dict[int | None, float] = {}

    def at(self, price: float) -> float:
        """At an energy price λ, s/J."""
        index = grid_index(price)
        if index not in self._known:
            self._known[index] = math.fsum(_stage_j(kinds, index, n_gpus) for n_gpus, kinds in self._stages)
        return self._known[index]


def _stages(jobs: Sequence[Job], pool: int) -> list[list[_Kind]]:
    """The kinds of a pool's jobs in each stage; headway is counted in time on the fewest GPUs at the fastest clock."""
    kinds: dict[tuple[int, int, int], list[float]] = {}
    speeds: dict[tuple[int, int, int], float] = {}
    tables: dict[tuple[int, int, int], SpeedTable] = {}
    for job in jobs:
        table = job.tables[pool]
        key = (id(table), job.min_n, job.max_n)
        if key not in speeds:
            tables[key] = table
            speeds[key] = table.fastest(table.counts(job.min_n, job.max_n)[0]).speed_per_s
        kinds.setdefault(key, []).append(job.work / speeds[key])
    lengths = sorted(length for own in kinds.values() for length in own)
    stages, begin, left = [], 0.0, len(lengths)
    while left:
        left //= 2
        end = lengths[-1 - left]
        stage = []
        for key, own in kinds.items():
            spans = [min(length, end) - begin for length in own if length > begin]
            if spans:
                samples = math.fsum(spans) / len(spans) * speeds[key]
                stage.append(_Kind(tables[key], key[1], key[2], len(spans), samples))
        stages.append(stage)
        begin = end
    return stages


def _stage_j(kinds: Sequence[_Kind], index: int | None, n_gpus: int) -> float:
    ladders = [ladder(kind.table, index, kind.least, kind.most) for kind in kinds]
    on = [kind.count for kind in kinds]  # so many jobs stand on the rung that was reached last
    total_j = math.fsum(k.count * k.samples * _sample_j(steps, 0) for k, steps in zip(kinds, ladders, strict=True))
    free = n_gpus - sum(k.count * steps.rungs[0].n for k, steps in zip(kinds, ladders, strict=True))
    steps_up = [(f, i, k) for i, steps in enumerate(ladders) for k, f in enumerate(steps.falling, start=1)]
    for _, i, k in sorted(steps_up):
        extra = ladders[i].rungs[k].n - ladders[i].rungs[k - 1].n
        on[i] = on[i] if extra <= 0 else min(on[i], max(0, free) // extra)
        free -= on[i] * extra
        total_j += on[i] * kinds[i].samples * (_sample_j(ladders[i], k) - _sample_j(ladders[i], k - 1))
    return total_j


def _sample_j(steps: Ladder, rung: int) -> float:
    config = steps.rungs[rung]
    return config.power_w / config.speed_per_s
