"""ElasticFlow (Gu et al., ASPLOS '23): deadlines first get the smallest share that meets them, then GPUs go where they
add least GPU time.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from pfprofile.policy.base import Decision, State
from pfprofile.policy.elastic import Share, admit, grow, resize, shares_by_pool
from pfprofile.policy.grant import Changes


class ElasticFlow:
    """Every job best effort: a step up is worth more, the less GPU time it adds; who is shortest is admitted first."""

    name = "elasticflow"

    def decide(self, state: State) -> Decision:
        """Share every pool afresh."""
        changes: Changes = {}
        for pool, shares in shares_by_pool(state).items():
            room = self._deadlines(shares, state.cluster.pools[pool].n_gpus, state.now_s)
            room = admit(sorted(shares, key=lambda s: (s.least_s * s.counts[0], s.job.index)), room)
            grow(shares, room, _added_gpu_s)
            changes |= resize(state, pool, shares)
        return Decision(changes)

    def _deadlines(self, shares: Sequence[Share], room: int, now_s: float) -> int:
        """GPUs left after deadlines have theirs."""
        return room


class ElasticFlowDeadlines(ElasticFlow):
    """With deadlines: the minimum satisfactory share, by earliest deadline. A job whose deadline cannot be met is not
    turned away, as in the paper, but goes on as best effort, so that every policy does the same work.
    """

    name = "elasticflow-deadlines"
    needs_deadlines = True

    def _deadlines(self, shares: Sequence[Share], room: int, now_s: float) -> int:
        for share in sorted(shares, key=lambda s: (s.job.job.deadline_s, s.job.index)):
            left_s = share.job.job.deadline_s - now_s
            if left_s <= 0 or math.isinf(left_s):
                continue
            need = next((i for i, speed in enumerate(share.speeds) if share.left <= speed * left_s), None)
            if need is not None and share.counts[need] <= room:
                share.step = need
                room -= share.counts[need]
        return room


def _added_gpu_s(share: Share) -> float:
    """Minus the GPU time that the next step adds, GPU-s."""
    k = share.step
    return share.left * (share.counts[k] / share.speeds[k] - share.counts[k + 1] / share.speeds[k + 1])
