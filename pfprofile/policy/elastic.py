"""What elastic policies share: jobs and their steps up in GPUs, and from shares to changes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from heapq import heapify, heappop, heappush

from pfprofile.policy.base import Choice, JobState, State
from pfprofile.policy.grant import Changes


@dataclass(slots=True, eq=False)
class Share:
    """A job's part of a pool.

    Attributes:
        job: whose.
        left: samples still to do.
        counts, speeds: GPU counts it may have, ascending, and samples/s at each.
        step: position in both; −1 = it has nothing.
    """

    job: JobState
    left: float
    counts: Sequence[int]
    speeds: Sequence[float]
    step: int = -1

    @property
    def n(self) -> int:
        """GPUs that it has been given."""
        return self.counts[self.step] if self.step >= 0 else 0

    @property
    def least_s(self) -> float:
        """Time left on the fewest GPUs, s."""
        return self.left / self.speeds[0]

    def extra(self) -> int:
        """GPUs that one step up takes."""
        return self.counts[self.step + 1] - self.n

    def grows(self) -> bool:
        """Whether there is a step up that makes it faster."""
        return self.step + 1 < len(self.counts)


def shares_by_pool(state: State) -> dict[int, list[Share]]:
    """Every job in one pool: where it runs or ran, else where the fewest GPUs are spoken for; by arrival."""
    spoken = [0.0] * len(state.cluster.pools)
    found: dict[int, list[Share]] = {}
    for job in state.active():
        pools = [job.pool] if job.pool >= 0 else list(job.job.tables)
        pool = min(pools, key=lambda p: (spoken[p] / state.cluster.pools[p].n_gpus, p))
        counts, speeds = _steps(job, pool)
        spoken[pool] += counts[0]
        found.setdefault(pool, []).append(Share(job, job.remaining_at(state.now_s), counts, speeds))
    return found


def _steps(job: JobState, pool: int) -> tuple[Sequence[int], Sequence[float]]:
    """GPU counts and their speeds, as long as more GPUs are faster; kept in the table."""
    table, least, most = job.job.tables[pool], job.job.min_n, job.job.max_n
    found: tuple[Sequence[int], Sequence[float]] | None = table.cache.get(("steps", least, most))
    if found is None:
        counts: list[int] = []
        speeds: list[float] = []
        for n in table.counts(least, most):
            speed = table.fastest(n).speed_per_s
            if not speeds or speed > speeds[-1]:
                counts.append(n)
                speeds.append(speed)
        found = table.cache["steps", least, most] = (tuple(counts), tuple(speeds))
    return found


def admit(shares: Sequence[Share], room: int) -> int:
    """Give the fewest GPUs in order while they fit; returns what is left."""
    for share in shares:
        if share.step < 0 and share.counts[0] <= room:
            share.step = 0
            room -= share.counts[0]
    return room


def grow(shares: Sequence[Share], room: int, worth: Callable[[Share], float]) -> int:
    """Steps up, largest worth first, while they fit; jobs that have nothing are left out. Returns what is left."""
    heap = [(-worth(s), s.job.index, s) for s in shares if s.step >= 0 and s.grows()]
    heapify(heap)
    while heap and room > 0:
        _, index, share = heappop(heap)
        extra = share.extra()
        if extra > room:
            continue
        room -= extra
        share.step += 1
        if share.grows():
            heappush(heap, (-worth(share), index, share))
    return room


def worth_growing(job: JobState, n: int, now_s: float) -> bool:
    """Whether more GPUs save a running job more time than its restart takes."""
    held = job.config
    if held is None:
        return True
    faster = job.job.tables[job.pool].fastest(n)
    left = job.remaining_at(now_s)
    return left / held.speed_per_s > left / faster.speed_per_s + job.job.restart_s(n)


def resize(state: State, pool: int, shares: Sequence[Share]) -> Changes:
    """Changes that lead to the shares: no growth that its restart eats up, no shrink that nobody needs."""
    final = [(s, s.n) for s in shares]
    for i, (share, n) in enumerate(final):
        held = share.job.config
        if held is not None and n > held.n and not worth_growing(share.job, n, state.now_s):
            final[i] = (share, held.n)
    spare = state.cluster.pools[pool].n_gpus - sum(n for _, n in final)
    changes: Changes = {}
    for share, n in final:
        held = share.job.config
        if held is not None and 0 < n < held.n and held.n - n <= spare:
            spare -= held.n - n
            continue
        if held is not None and n == 0:
            changes[share.job.index] = None
        elif n and (held is None or held.n != n):
            changes[share.job.index] = Choice(pool, share.job.job.tables[pool].fastest(n))
    return changes
