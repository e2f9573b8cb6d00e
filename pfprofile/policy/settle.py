"""From shares to changes: a restart must pay for itself, and everything must fit at once."""

from __future__ import annotations

from collections.abc import Sequence

from pfprofile.cluster.speed_table import Config
from pfprofile.policy.prices import Claim, best_at, unit_cost, worth_rescaling


def settle(claims: Sequence[Claim], capacity: int, gpu_price: float, now_s: float, pool: int) -> list[Config]:
    """The configuration of each claim after the rescale test.

    Running jobs whose change would not pay keep their GPUs (their clock still follows the prices); then room is made
    for every newcomer's least by the shrinks that cost least, and what is left goes to newcomers and growth by gain.

    Args:
        claims: admitted jobs with their shares.
        capacity: GPUs of the pool.
        gpu_price: μ of the shares.
        now_s: the time.
        pool: the pool's index.
    """
    final: list[Config] = []
    forced: list[tuple[float, int, Config]] = []  # shrinks that do not pay, by loss per GPU set free
    upward: list[tuple[float, int, Config]] = []  # growth, best first
    total = 0
    for i, claim in enumerate(claims):
        held, target = claim.state.config, claim.config
        table = claim.state.job.tables[pool]
        if held is None:
            least = claim.ladder.rungs[0]
            final.append(least)
            if target.n > least.n:
                upward.append((-_gain(claim, least, target, gpu_price, now_s), i, target))
            elif target is not least:
                final[i] = target
        else:
            kept = best_at(claim, held.n, table.by_n[held.n])
            final.append(kept)
            if target.n != held.n:
                pays = worth_rescaling(claim, kept, target, gpu_price, now_s)
                if target.n > held.n and pays:
                    upward.append((-_gain(claim, kept, target, gpu_price, now_s), i, target))
                elif target.n < held.n and pays:
                    final[i] = target
                elif target.n < held.n:
                    loss = -_gain(claim, kept, target, gpu_price, now_s)
                    forced.append((loss, i, target))
        total += final[i].n
    if total > capacity:
        total = _make_room(claims, final, sorted(forced), total, capacity, now_s, pool)
    upward.sort(key=lambda item: item[:2])
    for _, i, target in upward:
        room = capacity - total + final[i].n
        config = target
        if target.n > room:
            lower = claims[i].ladder.below(room)
            if lower is None or lower.n <= final[i].n:
                continue
            config = lower
            held = claims[i].state.config
            if held is not None and not worth_rescaling(claims[i], final[i], config, gpu_price, now_s):
                continue
        total += config.n - final[i].n
        final[i] = config
    return final


def _gain(claim: Claim, held: Config, target: Config, gpu_price: float, now_s: float) -> float:
    """Fall of the cost over the remaining work, for each GPU that changes hands."""
    saving = unit_cost(held, claim.weight, claim.price, 0.0) - unit_cost(target, claim.weight, claim.price, 0.0)
    return claim.state.remaining_at(now_s) * saving / abs(target.n - held.n)


def _make_room(
    claims: Sequence[Claim],
    final: list[Config],
    forced: list[tuple[float, int, Config]],
    total: int,
    capacity: int,
    now_s: float,
    pool: int,
) -> int:
    """Shrink running jobs until the total fits: to their shares first, then further down, dearest last."""
    for _, i, target in forced:
        if total <= capacity:
            return total
        total += target.n - final[i].n
        final[i] = target
    while total > capacity:
        options = [(final[i].n, i) for i, c in enumerate(claims) if final[i].n > c.ladder.rungs[0].n]
        if not options:
            return total
        _, i = max(options)
        table = claims[i].state.job.tables[pool]
        n = max(count for count in table.by_n if count < final[i].n)
        total += n - final[i].n
        final[i] = best_at(claims[i], n, table.by_n[n])
    return total
