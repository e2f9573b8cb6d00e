"""A policy of one's own: the jobs that asked for most GPUs go first, others are stopped for them."""

from pfprofile.policy.base import Decision, State
from pfprofile.policy.grant import grant


class LargestFirst:
    """Rigid with preemption."""

    name = "largest-first"

    def decide(self, state: State) -> Decision:
        """Hand out GPUs down the list of active jobs, largest first."""
        order = sorted(state.active(), key=lambda job: (-job.job.rigid_n, job.index))
        return Decision(grant(state, order))
