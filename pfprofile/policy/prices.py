"""Sharing a pool's GPUs by price: weights by rank, the smallest GPU price at which demand fits, what is left over."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from pfprofile.cluster.speed_table import Config
from pfprofile.policy.base import JobState
from pfprofile.policy.hulls import Ladder

#: refused steps that are looked at for what is left over
MOST_LEFTOVERS = 48


@dataclass(slots=True)
class Claim:
    """One admitted job's demand.

    Attributes:
        state: the job.
        ladder: its configurations at its energy price.
        weight: h.
        price: λ + ν, s/J.
        needed_per_s: speed that its deadline needs, samples/s; 0 = none.
        rung: the rung it has been given.
    """

    state: JobState
    ladder: Ladder
    weight: float
    price: float
    needed_per_s: float = 0.0
    rung: int = 0

    @property
    def config(self) -> Config:
        """What it has been given; a deadline may ask for a faster clock than the prices would."""
        config = self.ladder.rungs[self.rung]
        return self.hurried(config) if self.needed_per_s else config

    def clock_for(self, n: int) -> Config:
        """The best clock for a GPU count, fast enough for the deadline where one is."""
        config = self.ladder.clock_for(n)
        return self.hurried(config) if self.needed_per_s else config

    def hurried(self, config: Config) -> Config:
        """The configuration, or the slowest clock at its GPU count that meets the deadline."""
        if config.speed_per_s >= self.needed_per_s:
            return config
        group = self.ladder.table.by_n[config.n]
        return next((c for c in group if c.speed_per_s >= self.needed_per_s), group[-1])


@dataclass(frozen=True, slots=True)
class Shares:
    """The outcome: μ, and the steps up that were not taken as (claim, rung), best first."""

    gpu_price: float
    refused: list[tuple[int, int]]


def rank_weights(count: int, theta: float) -> list[float]:
    """h for ranks 1 (longest) … count (shortest): (1 − θ) + θ·A·(i² − (i−1)²)/A²; their mean is 1.

    At θ = 1 and one power law n^0.5 for every speed-up, these are the shares of heSRPT.
    """
    return [(1.0 - theta) + theta * (2 * i - 1) / count for i in range(1, count + 1)]


def share(claims: Sequence[Claim], capacity: int) -> Shares:
    """Give every claim a rung: the smallest μ with Σ n ≤ capacity, then the left-over.

    Each step up a ladder is worth h·m of a GPU's price; sorted by that, a prefix is what any price buys. A claim's
    first rung is given in any case; the caller admits no more jobs than their first rungs fit.
    """
    ladders = [claim.ladder for claim in claims]
    tops = [ladder.top for ladder in ladders]
    if sum([ladder.most_n for ladder in ladders]) <= capacity:
        for claim, top in zip(claims, tops, strict=True):
            claim.rung = top
        return Shares(0.0, [])
    for claim in claims:
        claim.rung = 0
    sizes = np.array(tops)
    if not sizes.sum():
        return Shares(0.0, [])
    weights = np.repeat(np.array([c.weight for c in claims]), sizes)
    worth = np.concatenate([ladder.worth for ladder in ladders]) * weights
    extra = np.concatenate([ladder.extra for ladder in ladders])
    owner = np.repeat(np.arange(len(claims)), sizes)
    order = np.argsort(-worth, kind="stable")  # stable: a claim's own steps stay in their order
    base = sum([ladder.least_n for ladder in ladders])
    fits = np.flatnonzero(base + np.cumsum(extra[order]) <= capacity)
    taken = int(fits[-1]) + 1 if len(fits) else 0
    counts = np.bincount(owner[order[:taken]], minlength=len(claims)).tolist()
    for claim, rung in zip(claims, counts, strict=True):
        claim.rung = rung
    total = base + int(extra[order[:taken]].sum())
    gpu_price = float(worth[order[taken]]) if taken < len(order) else 0.0
    firsts = (np.cumsum(sizes) - sizes).tolist()
    refused: list[tuple[int, int]] = []
    for position in order[taken : taken + MOST_LEFTOVERS].tolist():
        i = int(owner[position])
        claim, k = claims[i], position - firsts[i] + 1
        step = claim.ladder.rungs[k].n - claim.ladder.rungs[claim.rung].n
        if claim.rung == k - 1 and total + step <= capacity:
            claim.rung = k
            total += step
        else:
            refused.append((i, k))
    return Shares(gpu_price, refused)


def unit_cost(config: Config, weight: float, price: float, gpu_price: float) -> float:
    """(h + (λ+ν)·P' + μ·n)/speed, s of JCT a sample."""
    return (weight + price * config.power_w + gpu_price * config.n) / config.speed_per_s


def worth_rescaling(claim: Claim, held: Config, target: Config, gpu_price: float, now_s: float) -> bool:
    """Whether the gain over the remaining work pays for the restart."""
    weight, price = claim.weight, claim.price
    per_s = weight + price * held.power_w  # what the job costs while it is held
    saving = (per_s + gpu_price * held.n) / held.speed_per_s - unit_cost(target, weight, price, gpu_price)
    state = claim.state
    return saving > 0.0 and state.remaining_at(now_s) * saving > per_s * state.job.restart_s(target.n)
