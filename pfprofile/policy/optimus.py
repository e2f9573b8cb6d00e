"""Optimus (Peng et al., EuroSys '18): every job gets its fewest GPUs, then the next GPU goes wherever it shortens the
remaining time most.
"""

from __future__ import annotations

from pfprofile.policy.base import Decision, State
from pfprofile.policy.elastic import Share, admit, grow, resize, shares_by_pool
from pfprofile.policy.grant import Changes


class Optimus:
    """Elastic; admission in order of arrival, marginal gain of time for each GPU."""

    name = "optimus"

    def decide(self, state: State) -> Decision:
        """Share every pool afresh."""
        changes: Changes = {}
        for pool, shares in shares_by_pool(state).items():
            grow(shares, admit(shares, state.cluster.pools[pool].n_gpus), _saving_s)
            changes |= resize(state, pool, shares)
        return Decision(changes)


def _saving_s(share: Share) -> float:
    """Time that the next step saves for each GPU it takes, s."""
    slow, fast = share.speeds[share.step], share.speeds[share.step + 1]
    return share.left * (1.0 / slow - 1.0 / fast) / share.extra()
