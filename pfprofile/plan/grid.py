"""The fixed grid of energy prices λ that a budget search simulates.

It depends on the jobs only, never on the budget: so a larger budget chooses among more of the same schedules, and its
average JCT is never longer.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from pfprofile.cluster.speed_table import SpeedTable
from pfprofile.policy.base import Job
from pfprofile.policy.hulls import STEPS_PER_OCTAVE, grid_index, grid_price, ladder, price_breaks

#: above so many jobs the grid has two steps an octave instead of four
COARSER_ABOVE = 300
#: prices that change the energy of everybody's best by less than this are left out
LEAST_CHANGE = 0.005


def price_grid(jobs: Sequence[Job]) -> list[float]:
    """λ = 0, a geometric grid over which configurations change, and a last one at which only energy counts."""
    kinds: dict[tuple[int, int, int], list[float]] = {}
    tables: dict[tuple[int, int, int], SpeedTable] = {}
    for job in jobs:
        table = next(iter(job.tables.values()))
        key = (id(table), job.min_n, job.max_n)
        tables[key] = table
        kinds.setdefault(key, []).append(job.work)
    every = [(t, job.min_n, job.max_n) for job in jobs for t in job.tables.values()]
    breaks = [b for t, low, high in {(id(t), a, z): (t, a, z) for t, a, z in every}.values()
              for b in price_breaks(t, low, high)]  # fmt: skip
    if not breaks:
        return [0.0]
    first, last = grid_index(min(breaks)), grid_index(max(breaks))
    assert first is not None and last is not None
    step = STEPS_PER_OCTAVE // (4 if len(jobs) <= COARSER_ABOVE else 2)
    work = {key: math.fsum(amounts) for key, amounts in kinds.items()}

    def energy_j(index: int | None) -> float:
        best = ((key, ladder(tables[key], index, key[1], key[2]).best) for key in work)
        return math.fsum(work[key] * c.power_w / c.speed_per_s for key, c in best)

    end = last + STEPS_PER_OCTAVE
    top_j, bottom_j = energy_j(None), energy_j(end)
    indices = list(range(first // step * step - step, end, step))
    if top_j <= bottom_j * (1.0 + LEAST_CHANGE):
        return [0.0, grid_price(end)]
    spread_j = top_j - bottom_j
    inside = [k for k in indices if LEAST_CHANGE < (energy_j(k) - bottom_j) / spread_j < 1.0 - LEAST_CHANGE]
    return [0.0, *(grid_price(k) for k in inside), grid_price(end)]
