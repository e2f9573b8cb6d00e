"""From shares to changes: a restart must pay for itself, and everything must fit at once."""

from __future__ import annotations

from collections.abc import Sequence

from pfprofile.cluster.speed_table import Config
from pfprofile.policy.prices import Claim, unit_cost, worth_rescaling

#: a clock that is better by less than this is left as it is
NOTICEABLE = 1.003


def settle(claims: Sequence[Claim], capacity: int, gpu_price: float, now_s: float) -> list[Config]:
    """The configuration of each claim after the rescale test.

    Running jobs whose change would not pay keep their GPUs (their clock still follows the prices); then room is made
    for every newcomer's least by the shrinks that cost least, and what is left goes to newcomers and growth by gain.

    Args:
        claims: admitted jobs with their shares.
        capacity: GPUs of the pool.
        gpu_price: μ of the shares.
        now_s: the time.
    """
    final: list[Config] = []
    forced: list[tuple[float, int, Config]] = []  # shrinks that do not pay, by loss for each GPU set free
    upward: list[tuple[float, int, Config]] = []  # growth, best first
    total = 0
    for i, claim in enumerate(claims):
        held, target = claim.state.config, claim.config
        if held is None:
            chosen = claim.hurried(claim.ladder.rungs[0])
            if target.n > chosen.n:
                upward.append((-_gain(claim, chosen, target, now_s), i, target))
            else:
                chosen = target
        elif target.n == held.n and not claim.needed_per_s:
            chosen = claim.ladder.clock_for(held.n)
            if chosen is not held and unit_cost(held, claim.weight, claim.price, 0.0) <= NOTICEABLE * unit_cost(
                chosen, claim.weight, claim.price, 0.0
            ):
                chosen = held
        else:
            chosen = kept = claim.clock_for(held.n)
            must = kept.speed_per_s < claim.needed_per_s
            if target.n > held.n and (must or worth_rescaling(claim, kept, target, gpu_price, now_s)):
                upward.append((-_gain(claim, kept, target, now_s), i, target))
            elif target.n < held.n and worth_rescaling(claim, kept, target, gpu_price, now_s):
                chosen = target
            elif target.n < held.n:
                forced.append((-_gain(claim, kept, target, now_s), i, target))
        final.append(chosen)
        total += chosen.n
    if total > capacity:
        total = _make_room(claims, final, sorted(forced, key=lambda f: f[:2]), total, capacity)
    upward.sort(key=lambda item: item[:2])
    for _, i, target in upward:
        room = capacity - total + final[i].n
        config = target
        if target.n > room:
            lower = claims[i].ladder.below(room)
            if lower is None or lower.n <= final[i].n:
                continue
            config = claims[i].hurried(lower)
            held = claims[i].state.config
            if held is not None and not worth_rescaling(claims[i], final[i], config, gpu_price, now_s):
                continue
        total += config.n - final[i].n
        final[i] = config
    return final


def _gain(claim: Claim, held: Config, target: Config, now_s: float) -> float:
    """Fall of the cost over the remaining work, for each GPU that changes hands."""
    saving = unit_cost(held, claim.weight, claim.price, 0.0) - unit_cost(target, claim.weight, claim.price, 0.0)
    return claim.state.remaining_at(now_s) * saving / abs(target.n - held.n)


def _make_room(
    claims: Sequence[Claim], final: list[Config], forced: list[tuple[float, int, Config]], total: int, capacity: int
) -> int:
    """Shrink running jobs until the total fits: to their shares first, then further down, largest first."""
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
        n = max(count for count in claims[i].ladder.table.by_n if count < final[i].n)
        total += n - final[i].n
        final[i] = claims[i].clock_for(n)
    return total
