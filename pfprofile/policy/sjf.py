"""Shortest job first: of the jobs that wait, the shortest that fits starts; nobody is stopped."""

from __future__ import annotations

from pfprofile.policy.base import Decision, State
from pfprofile.policy.grant import grant, rigid_left_s


class Sjf:
    """Rigid and without preemption; needs to know how long a job takes on the GPUs it asked for."""

    name = "sjf"

    def decide(self, state: State) -> Decision:
        """Start waiting jobs, shortest first, while any fits."""
        order = sorted(state.waiting.values(), key=lambda job: (rigid_left_s(job, state.now_s), job.index))
        return Decision(grant(state, order, room=list(state.free)))
