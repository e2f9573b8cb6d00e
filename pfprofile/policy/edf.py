"""Earliest deadline first: in order of deadline, each job gets all the GPUs it can have, up to a limit."""

from __future__ import annotations

from pfprofile.policy.base import Decision, JobState, State
from pfprofile.policy.elastic import worth_growing
from pfprofile.policy.grant import grant


class Edf:
    """Jobs without a deadline come last, in order of arrival.

    Args:
        max_gpus: most GPUs for one job; 64 in the simulator that the fig10 results were made with.
    """

    name = "edf"
    needs_deadlines = True

    def __init__(self, max_gpus: int = 64) -> None:
        self.max_gpus = max_gpus

    def decide(self, state: State) -> Decision:
        """The earliest deadline takes what it can."""

        def size(job: JobState, pool: int, room: int) -> int:
            counts = job.job.tables[pool].counts(job.job.min_n, min(room, max(job.job.min_n, self.max_gpus)))
            counts = [n for n in counts if n <= job.job.max_n]
            if not counts:
                return 0
            held = job.config.n if job.config is not None and job.pool == pool else 0
            if held and held < counts[-1] and not worth_growing(job, counts[-1], state.now_s):
                return held
            return counts[-1]

        order = sorted(state.active(), key=lambda job: (job.job.deadline_s, job.index))
        return Decision(grant(state, order, size))
