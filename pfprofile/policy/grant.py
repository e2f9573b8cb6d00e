"""What rigid policies share: GPUs go down a list of jobs in order of priority, whoever has them now."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from pfprofile.policy.base import Choice, Job, JobState, State

Changes = dict[int, Choice | None]
#: (job, pool, GPUs left there) → GPUs to give; 0 = none
Size = Callable[[JobState, int, int], int]


def capacity(state: State) -> list[int]:
    """GPUs of each pool, in use or not."""
    return [pool.n_gpus for pool in state.cluster.pools]


def rigid_count(job: Job, pool: int) -> int:
    """GPUs for a job that is never resized: what it asked for, or the nearest count that its table has."""
    table = job.tables[pool]
    key = ("rigid", job.rigid_n, job.min_n, job.max_n)
    found: int | None = table.cache.get(key)
    if found is None:
        counts = table.counts(job.min_n, job.max_n)
        found = table.cache[key] = next((n for n in counts if n >= job.rigid_n), counts[-1])
    return found


def rigid_unit_s(job: Job, pool: int) -> float:
    """Time of a sample on the GPUs that the job asked for, s."""
    return 1.0 / job.tables[pool].fastest(rigid_count(job, pool)).speed_per_s


def rigid_left_s(job: JobState, now_s: float) -> float:
    """Time left on the GPUs asked for, in the pool it is in or the first one it may run in, s."""
    pool = job.pool if job.pool >= 0 else next(iter(job.job.tables))
    return job.remaining_at(now_s) * rigid_unit_s(job.job, pool)


def _asked(job: JobState, pool: int, room: int) -> int:
    n = rigid_count(job.job, pool)
    return n if n <= room else 0


def grant(state: State, order: Iterable[JobState], size: Size = _asked, *, room: list[int] | None = None) -> Changes:
    """Give each job in order what ``size`` says; who comes away empty is stopped.

    Args:
        state: what the policy was shown.
        order: jobs, most important first. A job in nobody's list stays as it is.
        size: GPUs for a job, given what is left in a pool.
        room: GPUs to hand out in each pool (used up); default all.
    """
    room = capacity(state) if room is None else room
    changes: Changes = {}
    for job in order:
        held = job.config
        pools = list(job.job.tables)
        if held is not None and len(pools) > 1:
            pools.sort(key=lambda pool: pool != job.pool)
        for pool in pools:
            n = size(job, pool, room[pool])
            if n:
                room[pool] -= n
                if held is None or held.n != n or job.pool != pool:
                    changes[job.index] = Choice(pool, job.job.tables[pool].fastest(n))
                break
        else:
            if held is not None:
                changes[job.index] = None
    return changes
