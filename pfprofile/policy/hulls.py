"""A job's useful configurations at given prices, as a ladder from few GPUs to many.

The cost of a unit of work is (h + (λ+ν)·P' + μ·n)/speed. Divided by h it depends on ρ = (λ+ν)/h and m = μ/h only, and
for a fixed ρ the configurations that are least for some m are the lower hull of (n/speed, (1 + ρ·P')/speed). Ladders
are kept for a geometric grid of ρ, eight values an octave, so that jobs of one kind share them.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from pfprofile.cluster.speed_table import Config, SpeedTable, lower_hull

#: ρ and λ lie on BASE_PRICE · 2^(k/8); one unit of λ is a second of JCT for a joule
BASE_PRICE = 2.0**-40
STEPS_PER_OCTAVE = 8


@dataclass(frozen=True, slots=True)
class Ladder:
    """Configurations by falling GPU price.

    Attributes:
        rungs: from the one for a very high price of GPUs to the best at none.
        worth: for each rung but the first, m = μ/h below which it beats the one before it; falling. Infinite where
            the rung before is only there because GPUs may be too few.
        least: n of the first rung.
        rho: ρ, 1/W.
    """

    rungs: tuple[Config, ...]
    worth: tuple[float, ...]
    least: int
    rho: float
    _falling: tuple[float, ...]

    @property
    def best(self) -> Config:
        """The choice where GPUs are free."""
        return self.rungs[-1]

    def rung_at(self, m: float) -> int:
        """Index of the choice at a GPU price."""
        return bisect_left(self._falling, -m)

    def below(self, n: int) -> Config | None:
        """The highest rung with at most ``n`` GPUs."""
        for config in reversed(self.rungs):
            if config.n <= n:
                return config
        return None


def grid_index(price: float) -> int | None:
    """Nearest index on the price grid; None for zero."""
    return None if price <= 0 else round(STEPS_PER_OCTAVE * math.log2(price / BASE_PRICE))


def grid_price(index: int | None) -> float:
    """The price at an index of the grid."""
    return 0.0 if index is None else float(BASE_PRICE * 2.0 ** (index / STEPS_PER_OCTAVE))


def ladder(table: SpeedTable, index: int | None, least: int, most: int) -> Ladder:
    """The ladder of a table at a price index, for GPU counts from ``least`` to ``most``; kept in the table."""
    key = (index, least, most)
    found: Ladder | None = table.cache.get(key)
    if found is None:
        found = table.cache[key] = _build(table, grid_price(index), least, most)
    return found


def _build(table: SpeedTable, rho: float, least: int, most: int) -> Ladder:
    configs = [c for n in table.counts(least, most) for c in table.by_n[n]]
    gpu_time = np.array([c.n / c.speed_per_s for c in configs])
    cost = np.array([(1.0 + rho * c.power_w) / c.speed_per_s for c in configs])
    chain = lower_hull(gpu_time, cost)[::-1]  # rising GPU time, falling cost
    rungs = [configs[i] for i in chain]
    worth = [(cost[a] - cost[b]) / (gpu_time[b] - gpu_time[a]) for a, b in pairwise(chain)]
    # Fewer GPUs than the hull's first rung: never cheaper, but there may be no more to be had.
    first = rungs[0].n
    forced = [
        min(table.by_n[n], key=lambda c: ((1.0 + rho * c.power_w) / c.speed_per_s, c.power_w))
        for n in table.counts(least, most)
        if n < first
    ]
    rungs = [*forced, *rungs]
    worth = [math.inf] * len(forced) + [float(w) for w in worth]
    return Ladder(tuple(rungs), tuple(worth), min(c.n for c in rungs), rho, tuple(-w for w in worth))


def price_breaks(table: SpeedTable, least: int, most: int) -> list[float]:
    """The ρ at which the best configuration changes where GPUs are free, rising, 1/W."""
    configs = [c for n in table.counts(least, most) for c in table.by_n[n]]
    time = np.array([1.0 / c.speed_per_s for c in configs])
    energy = np.array([c.power_w / c.speed_per_s for c in configs])
    chain = lower_hull(time, energy)[::-1]
    return [float((time[b] - time[a]) / (energy[a] - energy[b])) for a, b in pairwise(chain)]
