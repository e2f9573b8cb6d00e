"""Tiresias (Gu et al., NSDI '19), 2D-LAS discretised: the GPU time a job has had decides its queue; earlier queues go
first, within a queue whoever came first. Nothing about a job's length need be known.
"""

from __future__ import annotations

import math
from bisect import bisect_right

from pfprofile.policy.base import Decision, State
from pfprofile.policy.grant import grant

#: attained GPU time that is as good as a limit, GPU-s
ROUNDING_GPU_S = 1e-3


class Tiresias:
    """Rigid with preemption.

    Args:
        limits_gpu_s: attained GPU time at which a job drops to the next queue; the defaults are those of the
            simulator that the fig10 results were made with.
    """

    name = "tiresias"

    def __init__(self, limits_gpu_s: tuple[float, ...] = (3250.0, 7200.0)) -> None:
        self.limits_gpu_s = limits_gpu_s

    def decide(self, state: State) -> Decision:
        """All jobs by queue and arrival; look again when the next job drops."""
        now_s, review_s = state.now_s, math.inf
        keys = []
        for job in (*state.running.values(), *state.waiting.values()):
            had = job.attained_at(now_s) + ROUNDING_GPU_S
            queue = bisect_right(self.limits_gpu_s, had)
            keys.append((queue, job.index, job))
            if job.config is not None and queue < len(self.limits_gpu_s):
                review_s = min(review_s, now_s + (self.limits_gpu_s[queue] - had + ROUNDING_GPU_S) / job.config.n)
        order = (job for _, _, job in sorted(keys, key=lambda key: key[:2]))
        return Decision(grant(state, order), review_s if state.waiting else math.inf)
