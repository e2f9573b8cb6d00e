"""Shortest remaining time first: the jobs that would be done soonest have the GPUs; others are stopped for them."""

from __future__ import annotations

from pfprofile.policy.base import Decision, State
from pfprofile.policy.grant import grant, rigid_left_s


class Srtf:
    """Rigid with preemption; a running job counts as shorter by the restart that stopping it would cost."""

    name = "srtf"

    def decide(self, state: State) -> Decision:
        """All jobs in order of what is left."""
        now_s = state.now_s
        keys = [(rigid_left_s(job, now_s), job.index, job) for job in state.waiting.values()]
        for job in state.running.values():
            assert job.config is not None
            keys.append((rigid_left_s(job, now_s) - job.job.restart_s(job.config.n), job.index, job))
        return Decision(grant(state, (job for _, _, job in sorted(keys, key=lambda key: key[:2]))))
