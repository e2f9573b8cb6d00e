"""PowerFlow (Gu et al., arXiv 2304.06381) as a third party reads it, since its algorithm is not public.

Every job starts with its fewest GPUs at its slowest useful clock. Then the step (twice the GPUs, or the next clock)
with the highest relative priority (ΔJCT/JCT) / (ΔE/E) is taken again and again, while GPUs and the energy budget last.
The priority does not depend on how much work is left, so a job type's steps are computed once.
"""

from __future__ import annotations

import math
from heapq import heapify, heappop, heappush

from pfprofile.cluster.speed_table import Config, SpeedTable
from pfprofile.policy.base import Choice, Decision, JobState, State
from pfprofile.policy.elastic import Share, shares_by_pool
from pfprofile.policy.grant import Changes

#: clocks that are looked at for each GPU count
MOST_CLOCKS = 8

#: where a job stands: (position among its GPU counts, position among that count's clocks)
Spot = tuple[int, int]


class _Steps:
    """A job type's configurations and its steps up."""

    def __init__(self, table: SpeedTable, least: int, most: int) -> None:
        self.groups = [_thin(table.by_n[n]) for n in table.counts(least, most)]
        self.least_j = min(c.power_w / c.speed_per_s for group in self.groups for c in group)
        self._known: dict[tuple[Spot, bool], tuple[float, Spot] | None] = {}

    def at(self, spot: Spot) -> Config:
        """The configuration at a spot."""
        return self.groups[spot[0]][spot[1]]

    def next(self, spot: Spot, clock_only: bool) -> tuple[float, Spot] | None:
        """The step with the highest priority, and that priority; None = there is none that is faster."""
        key = (spot, clock_only)
        if key not in self._known:
            i, j = spot
            spots = [(i, j + 1)] if j + 1 < len(self.groups[i]) else []
            if not clock_only and i + 1 < len(self.groups):
                spots.append((i + 1, _like(self.groups[i + 1], self.at(spot))))
            rated = [(self._priority(spot, s), s) for s in spots]
            self._known[key] = max((r for r in rated if r[0] > 0), default=None)
        return self._known[key]

    def _priority(self, here: Spot, there: Spot) -> float:
        a, b = self.at(here), self.at(there)
        faster = 1.0 - a.speed_per_s / b.speed_per_s
        dearer = (b.power_w / b.speed_per_s) / (a.power_w / a.speed_per_s) - 1.0
        if faster <= 0:
            return 0.0
        return faster / dearer if dearer > 0 else math.inf


def _thin(group: tuple[Config, ...]) -> tuple[Config, ...]:
    """At most so many clocks, evenly over the group, both ends included."""
    if len(group) <= MOST_CLOCKS:
        return group
    last = len(group) - 1
    return tuple(group[round(k * last / (MOST_CLOCKS - 1))] for k in range(MOST_CLOCKS))


def _like(group: tuple[Config, ...], config: Config) -> int:
    """Position of the clock nearest to a configuration's."""
    wanted = config.clock_mhz or 0.0
    return min(range(len(group)), key=lambda k: (abs((group[k].clock_mhz or 0.0) - wanted), k))


def _steps(job: JobState, pool: int) -> _Steps:
    table = job.job.tables[pool]
    key = ("relative", job.job.min_n, job.job.max_n)
    found: _Steps | None = table.cache.get(key)
    if found is None:
        found = table.cache[key] = _Steps(table, job.job.min_n, job.job.max_n)
    return found


class PowerFlow:
    """Elastic in GPUs and clocks.

    Args:
        energy_factor: the energy budget of the jobs that are there, as a multiple of the least energy that can do
            their remaining work; infinite = no budget.
    """

    name = "powerflow"

    def __init__(self, energy_factor: float = 1.5) -> None:
        self.energy_factor = energy_factor

    def decide(self, state: State) -> Decision:
        """Grow every job from its least."""
        changes: Changes = {}
        for pool, shares in shares_by_pool(state).items():
            changes |= self._share(state, pool, shares)
        return Decision(changes)

    def _share(self, state: State, pool: int, shares: list[Share]) -> Changes:
        room = state.cluster.pools[pool].n_gpus
        spots: dict[int, Spot] = {}
        budget_j = 0.0
        heap: list[tuple[float, int, Spot, Share]] = []
        for share in sorted(shares, key=lambda s: (s.least_s, s.job.index)):
            steps = _steps(share.job, pool)
            config = steps.at((0, 0))
            if config.n > room:
                continue
            room -= config.n
            spots[share.job.index] = (0, 0)
            budget_j += share.left * (self.energy_factor * steps.least_j - config.power_w / config.speed_per_s)
            if (found := steps.next((0, 0), room <= 0)) is not None:
                heap.append((-found[0], share.job.index, found[1], share))
        heapify(heap)
        while heap:
            _, index, spot, share = heappop(heap)
            steps = _steps(share.job, pool)
            here, there = steps.at(spots[index]), steps.at(spot)
            extra_j = share.left * (there.power_w / there.speed_per_s - here.power_w / here.speed_per_s)
            fits = there.n - here.n <= room
            if fits and (extra_j <= 0 or extra_j <= budget_j):
                room -= there.n - here.n
                budget_j -= extra_j
                spots[index] = spot
                found = steps.next(spot, room <= 0)
            elif there.n > here.n:
                found = steps.next(spots[index], True)
            else:
                continue
            if found is not None:
                heappush(heap, (-found[0], index, found[1], share))
        return _settle(state, pool, shares, {i: _steps(s.job, pool).at(spots[i]) for s in shares
                                             if (i := s.job.index) in spots})  # fmt: skip


def _settle(state: State, pool: int, shares: list[Share], wanted: dict[int, Config]) -> Changes:
    """Changes of GPUs only where they pay for the restart or somebody needs the room; clocks follow for nothing."""
    final: dict[int, Config] = {}
    unpaid: list[tuple[int, int, Config]] = []
    for share in shares:
        index, held = share.job.index, share.job.config
        target = wanted.get(index)
        if target is None or held is None or held.n == target.n:
            if target is not None:
                final[index] = target
            continue
        group = share.job.job.tables[pool].by_n[held.n]
        kept = group[_like(group, target)]
        if _pays(share, kept, target):
            final[index] = target
        else:
            final[index] = kept
            if target.n < held.n:
                unpaid.append((target.n - held.n, index, target))
    total = sum(c.n for c in final.values())
    for _, index, target in sorted(unpaid, key=lambda item: item[:2]):
        if total <= state.cluster.pools[pool].n_gpus:
            break
        total += target.n - final[index].n
        final[index] = target
    changes: Changes = {}
    for share in shares:
        index, held = share.job.index, share.job.config
        chosen = final.get(index)
        if chosen is not None and chosen is not held:
            changes[index] = Choice(pool, chosen)
        elif chosen is None and held is not None:
            changes[index] = None
    return changes


def _pays(share: Share, kept: Config, target: Config) -> bool:
    """Growth must save more time than the restart takes, a shrink more energy than the restart uses."""
    restart_s = share.job.job.restart_s(target.n)
    if target.n > kept.n:
        return share.left * (1.0 / kept.speed_per_s - 1.0 / target.speed_per_s) > restart_s
    saved_j = share.left * (kept.power_w / kept.speed_per_s - target.power_w / target.speed_per_s)
    return saved_j > kept.power_w * restart_s
