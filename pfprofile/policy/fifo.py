"""First in, first out: jobs start in order of arrival with the GPUs they asked for, at the fastest clock."""

from __future__ import annotations

from pfprofile.policy.base import Choice, Decision, State
from pfprofile.policy.grant import rigid_count


class Fifo:
    """Rigid and without preemption; the first job that does not fit holds up those behind it."""

    name = "fifo"

    def decide(self, state: State) -> Decision:
        """Start waiting jobs in order while they fit."""
        free = list(state.free)
        changes: dict[int, Choice | None] = {}
        for job in sorted(state.waiting.values(), key=lambda waiting: waiting.index):
            pool = next((p for p in job.job.tables if rigid_count(job.job, p) <= free[p]), None)
            if pool is None:
                break
            config = job.job.tables[pool].fastest(rigid_count(job.job, pool))
            free[pool] -= config.n
            changes[job.index] = Choice(pool, config)
        return Decision(changes, may_move=False)
