"""AFS (Hwang et al., NSDI '21, "Elastic Resource Sharing for Distributed Deep Learning"), with known lengths (AFS-L):
a GPU goes to the shorter of two jobs unless the longer one would gain relatively more from it.
"""

from __future__ import annotations

from collections.abc import Sequence

from pfprofile.policy.base import Decision, State
from pfprofile.policy.elastic import Share, admit, resize, shares_by_pool
from pfprofile.policy.grant import Changes


class Afs:
    """Elastic; GPU counts are powers of two, so gains are taken for each GPU of a step."""

    name = "afs"

    def decide(self, state: State) -> Decision:
        """Share every pool afresh."""
        changes: Changes = {}
        for pool, shares in shares_by_pool(state).items():
            order = sorted(shares, key=lambda s: (s.least_s, s.job.index))
            room = admit(order, state.cluster.pools[pool].n_gpus)
            _share(order, room)
            changes |= resize(state, pool, shares)
        return Decision(changes)


def _share(order: Sequence[Share], room: int) -> None:
    """Step after step to the winner of a walk from the shortest job to the longest.

    Between a shorter job s and a longer l, with throughputs p now and p' a step up, l wins if
    (p'_l − p_l)/p'_l ≥ (p'_s − p_s)/p_s.
    """
    rows = [row for s in order if s.step >= 0 and (row := _gains(s)) is not None]
    while rows and room > 0:
        best = 0
        short = rows[0][1]
        for i in range(1, len(rows)):
            if rows[i][0] >= short:
                best, short = i, rows[i][1]
        share = rows[best][2]
        extra = share.extra()
        row = None
        if extra <= room:
            room -= extra
            share.step += 1
            row = _gains(share)
        if row is None:
            del rows[best]
        else:
            rows[best] = row


def _gains(share: Share) -> tuple[float, float, Share] | None:
    """What the next step is worth for each GPU, as the longer and as the shorter of two; None = no step."""
    if not share.grows():
        return None
    slow, fast, extra = share.speeds[share.step], share.speeds[share.step + 1], share.extra()
    return (fast - slow) / (fast * extra), (fast - slow) / (slow * extra), share
