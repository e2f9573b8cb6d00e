"""Themis (Mahajan et al., NSDI '20): GPUs are leased; when a lease ends they go to the job that is treated worst, by
finish-time fairness ρ = (time until it will be done, shared) ÷ (time it would take by itself).
"""

from __future__ import annotations

import math

from pfprofile.policy.base import Decision, JobState, State
from pfprofile.policy.grant import grant, rigid_left_s, rigid_unit_s


class Themis:
    """Rigid; the auction is reduced to its outcome for one bid a job: the highest ρ first.

    Args:
        lease_s: how long GPUs stay with a job while others wait.
    """

    name = "themis"

    def __init__(self, lease_s: float = 1200.0) -> None:
        self.lease_s = lease_s
        self._until_s: dict[int, float] = {}

    def decide(self, state: State) -> Decision:
        """Leases that run are kept; the rest is given out by ρ."""
        now_s = state.now_s
        for job in state.finished:
            self._until_s.pop(job.index, None)
        if not state.waiting:
            return Decision({})
        leased = [job for job in state.running.values() if self._until_s.get(job.index, now_s) > now_s]
        ids = {job.index for job in leased}
        others = [job for job in state.active() if job.index not in ids]
        others.sort(key=lambda job: (-_unfairness(job, now_s), job.config is None, job.index))
        changes = grant(state, [*leased, *others])
        for job in others:
            keeps = changes[job.index] is not None if job.index in changes else job.config is not None
            if keeps:
                self._until_s[job.index] = now_s + self.lease_s
            else:
                self._until_s.pop(job.index, None)
        return Decision(changes, review_s=min(self._until_s.values(), default=math.inf))


def _unfairness(job: JobState, now_s: float) -> float:
    """ρ with the GPUs asked for as what the job would have by itself."""
    pool = job.pool if job.pool >= 0 else next(iter(job.job.tables))
    alone_s = job.job.work * rigid_unit_s(job.job, pool)
    return (now_s - job.job.submit_s + rigid_left_s(job, now_s)) / alone_s
