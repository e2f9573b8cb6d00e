"""Earliest deadline first: in order of deadline, each job takes all the GPUs it can have, up to a limit, whether or not
it is faster with them (as in the simulator that the fig10 results were made with).
"""

from __future__ import annotations

from pfprofile.policy.base import Decision, JobState, State
from pfprofile.policy.grant import grant


class Edf:
    """Jobs without a deadline come last, in order of arrival.

    Args:
        max_gpus: most GPUs for one job.
    """

    name = "edf"
    needs_deadlines = True

    def __init__(self, max_gpus: int = 64) -> None:
        self.max_gpus = max_gpus

    def decide(self, state: State) -> Decision:
        """The earliest deadline takes what it can."""

        def size(job: JobState, pool: int, room: int) -> int:
            most = min(room, job.job.max_n, max(job.job.min_n, self.max_gpus))
            return max(job.job.tables[pool].counts(job.job.min_n, most), default=0)

        order = sorted(state.active(), key=lambda job: (job.job.deadline_s, job.index))
        return Decision(grant(state, order, size))
