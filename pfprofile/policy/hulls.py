"""A job's useful configurations at given prices, as a ladder from few GPUs to many.

The cost of a unit of work is (h + (λ+ν)·P' + μ·n)/speed. Divided by h it depends on ρ = (λ+ν)/h and m = μ/h only, and
for a fixed ρ the configurations that are least for some m are the lower hull of (n/speed, (1 + ρ·P')/speed). Ladders
are kept for a geometric grid of ρ, eight values an octave, so that jobs of one kind share them.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pfprofile.cluster.speed_table import Config, SpeedTable, lower_hull

#: ρ and λ lie on BASE_PRICE · 2^(k/8); one unit of λ is a second of JCT for a joule
BASE_PRICE = 2.0**-40
STEPS_PER_OCTAVE = 8


@dataclass(frozen=True, slots=True, eq=False)
class Ladder:
    """Configurations by falling GPU price.

    Attributes:
        rungs: from the one for a very high price of GPUs to the best at none.
        worth: for each rung but the first, m = μ/h below which it beats the one before it; falling, (k − 1,).
            Infinite where the rung before is only there because GPUs may be too few.
        extra: GPUs that each step up takes, (k − 1,).
        index: ρ as an index of the price grid; None = 0.
        falling: minus ``worth``.
        top: index of the last rung.
        least_n, most_n: GPUs of the first and of the last rung.
    """

    table: SpeedTable
    rungs: tuple[Config, ...]
    worth: NDArray[np.float64]
    extra: NDArray[np.int64]
    index: int | None
    falling: tuple[float, ...]
    top: int
    least_n: int
    most_n: int

    @property
    def best(self) -> Config:
        """The choice where GPUs are free."""
        return self.rungs[-1]

    def rung_at(self, m: float) -> int:
        """Index of the choice at a GPU price."""
        return bisect_left(self.falling, -m)

    def below(self, n: int) -> Config | None:
        """The highest rung with at most ``n`` GPUs."""
        for config in reversed(self.rungs):
            if config.n <= n:
                return config
        return None

    def clock_for(self, n: int) -> Config:
        """The best clock for a GPU count at this ladder's energy price."""
        key = (self.index, n)
        found: Config | None = self.table.cache.get(key)
        if found is None:
            rho = grid_price(self.index)
            found = min(self.table.by_n[n], key=lambda c: ((1.0 + rho * c.power_w) / c.speed_per_s, c.power_w))
            self.table.cache[key] = found
        return found


def grid_index(price: float) -> int | None:
    """Nearest index on the price grid; None for zero."""
    return None if price <= 0 else round(STEPS_PER_OCTAVE * math.log2(price / BASE_PRICE))


def grid_indices(price: float, weights: Sequence[float]) -> Sequence[int | None]:
    """Nearest indices on the price grid of a price over each weight."""
    if price <= 0:
        return [None] * len(weights)
    found: list[int | None] = (
        np.rint(STEPS_PER_OCTAVE * np.log2(price / np.asarray(weights) / BASE_PRICE)).astype(np.int64).tolist()
    )
    return found


def grid_price(index: int | None) -> float:
    """The price at an index of the grid."""
    return 0.0 if index is None else float(BASE_PRICE * 2.0 ** (index / STEPS_PER_OCTAVE))


def ladder(table: SpeedTable, index: int | None, least: int, most: int) -> Ladder:
    """The ladder of a table at a price index, for GPU counts from ``least`` to ``most``; kept in the table."""
    key = (index, least, most)
    found: Ladder | None = table.cache.get(key)
    if found is None:
        found = table.cache[key] = _build(table, index, least, most)
    return found


def _arrays(table: SpeedTable, least: int, most: int) -> tuple[list[Config], Any, Any, Any]:
    """Configurations between two GPU counts with their time, GPU time and energy a sample; kept in the table."""
    key = ("arrays", least, most)
    found: tuple[list[Config], Any, Any, Any] | None = table.cache.get(key)
    if found is None:
        configs = [c for n in table.counts(least, most) for c in table.by_n[n]]
        time = np.array([1.0 / c.speed_per_s for c in configs])
        counts = np.array([c.n for c in configs], dtype=np.float64)
        power_w = np.array([c.power_w for c in configs])
        found = table.cache[key] = (configs, time, counts * time, power_w * time)
    return found


def _build(table: SpeedTable, index: int | None, least: int, most: int) -> Ladder:
    rho = grid_price(index)
    configs, time, gpu_time, energy = _arrays(table, least, most)
    cost = time + rho * energy
    chain = lower_hull(gpu_time, cost)[::-1]  # rising GPU time, falling cost
    rungs = [configs[i] for i in chain]
    worth = [float((cost[a] - cost[b]) / (gpu_time[b] - gpu_time[a])) for a, b in pairwise(chain)]
    # Fewer GPUs than the hull's first rung: never cheaper, but there may be no more to be had.
    forced = [
        min(table.by_n[n], key=lambda c: ((1.0 + rho * c.power_w) / c.speed_per_s, c.power_w))
        for n in table.counts(least, most)
        if n < rungs[0].n
    ]
    rungs = [*forced, *rungs]
    worth = [math.inf] * len(forced) + worth
    extra = np.array([b.n - a.n for a, b in pairwise(rungs)], dtype=np.int64)
    falling = tuple(-w for w in worth)
    top = len(rungs) - 1
    return Ladder(table, tuple(rungs), np.array(worth), extra, index, falling, top, rungs[0].n, rungs[-1].n)


def price_breaks(table: SpeedTable, least: int, most: int) -> list[float]:
    """The ρ at which the best configuration changes where GPUs are free, rising, 1/W."""
    _, time, _, energy = _arrays(table, least, most)
    chain = lower_hull(time, energy)[::-1]
    return [float((time[b] - time[a]) / (energy[a] - energy[b])) for a, b in pairwise(chain)]
