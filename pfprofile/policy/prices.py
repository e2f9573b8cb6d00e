"""Sharing a pool's GPUs by price: weights by rank, the smallest GPU price at which demand fits, what is left over."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pfprofile.cluster.speed_table import Config
from pfprofile.policy.base import JobState
from pfprofile.policy.hulls import Ladder


@dataclass(slots=True)
class Claim:
    """One admitted job's demand.

    Attributes:
        state: the job.
        ladder: its configurations at its energy price.
        weight: h.
        price: λ + ν, s/J.
        rung: the rung it has been given.
    """

    state: JobState
    ladder: Ladder
    weight: float
    price: float
    rung: int = 0

    @property
    def config(self) -> Config:
        """What it has been given."""
        return self.ladder.rungs[self.rung]


@dataclass(frozen=True, slots=True)
class Shares:
    """The outcome: μ, and the steps up that were not taken as (worth of a GPU, claim, rung), best first."""

    gpu_price: float
    refused: list[tuple[float, int, int]]


def rank_weights(count: int, theta: float) -> list[float]:
    """h for ranks 1 (longest) … count (shortest): (1 − θ) + θ·A·(i² − (i−1)²)/A²; their mean is 1.

    At θ = 1 and one power law n^0.5 for every speed-up, these are the shares of heSRPT.
    """
    return [(1.0 - theta) + theta * (2 * i - 1) / count for i in range(1, count + 1)]


def share(claims: Sequence[Claim], capacity: int) -> Shares:
    """Give every claim a rung: the smallest μ with Σ n ≤ capacity, then the left-over.

    Each step up a ladder is worth h·m of a GPU's price; sorted by that, a prefix is what any price buys.
    A claim's first rung is given in any case; the caller admits no more jobs than their first rungs fit.
    """
    total = sum(c.ladder.rungs[-1].n for c in claims)
    if total <= capacity:
        for claim in claims:
            claim.rung = len(claim.ladder.rungs) - 1
        return Shares(0.0, [])
    steps = [
        (-claim.weight * worth, i, k)
        for i, claim in enumerate(claims)
        for k, worth in enumerate(claim.ladder.worth, start=1)
    ]
    steps.sort()
    total = sum(c.ladder.rungs[0].n for c in claims)
    taken = 0
    for position, (_, i, k) in enumerate(steps, start=1):
        rungs = claims[i].ladder.rungs
        total += rungs[k].n - rungs[k - 1].n
        if total <= capacity:
            taken = position
    for claim in claims:
        claim.rung = 0
    for _, i, k in steps[:taken]:
        claims[i].rung = k
    total = sum(c.config.n for c in claims)
    refused: list[tuple[float, int, int]] = []
    for value, i, k in steps[taken:]:
        claim = claims[i]
        extra = claim.ladder.rungs[k].n - claim.config.n
        if claim.rung == k - 1 and total + extra <= capacity:
            claim.rung = k
            total += extra
        else:
            refused.append((-value, i, k))
    return Shares(-steps[taken][0] if taken < len(steps) else 0.0, refused)


def unit_cost(config: Config, weight: float, price: float, gpu_price: float) -> float:
    """(h + (λ+ν)·P' + μ·n)/speed, s of JCT a sample."""
    return (weight + price * config.power_w + gpu_price * config.n) / config.speed_per_s


def best_at(claim: Claim, n: int, table_configs: Sequence[Config]) -> Config:
    """The least cost among the configurations of one GPU count (μ does not matter)."""
    weight, price = claim.weight, claim.price
    return min(table_configs, key=lambda c: ((weight + price * c.power_w) / c.speed_per_s, c.power_w))


def worth_rescaling(claim: Claim, held: Config, target: Config, gpu_price: float, now_s: float) -> bool:
    """Whether the gain over the remaining work pays for the restart."""
    weight, price = claim.weight, claim.price
    saving = unit_cost(held, weight, price, gpu_price) - unit_cost(target, weight, price, gpu_price)
    loss = (weight + price * held.power_w) * claim.state.job.restart_s(target.n)
    return claim.state.remaining_at(now_s) * saving > loss
