"""Gandiva (Xiao et al., OSDI '18): when GPUs are short, jobs take turns on them in time slices; jobs are moved so that
blocks fit. Two jobs on one GPU at a time (its packing) are left out: no public data say how fast they would be.
"""

from __future__ import annotations

import math

from pfprofile.policy.base import Decision, State
from pfprofile.policy.grant import grant


class Gandiva:
    """Round robin over all jobs, rigid.

    Args:
        slice_s: length of a turn. The paper's minute supposes that a job is suspended within a second; here every
            turn costs a checkpoint and restart, so turns are longer.
    """

    name = "gandiva"

    def __init__(self, slice_s: float = 600.0) -> None:
        self.slice_s = slice_s
        self._turn: dict[int, int] = {}
        self._until_s: dict[int, float] = {}
        self._last = 0

    def decide(self, state: State) -> Decision:
        """Whoever has had a turn goes to the back, if somebody waits."""
        now_s = state.now_s
        for job in (*state.arrived, *state.waiting.values()):
            if job.index not in self._turn:
                self._to_back(job.index)
        for job in state.finished:
            self._turn.pop(job.index, None)
            self._until_s.pop(job.index, None)
        if not state.waiting:
            return Decision({})
        spent = [job for job in state.running.values() if self._until_s.get(job.index, now_s) <= now_s]
        for job in sorted(spent, key=lambda job: self._turn[job.index]):
            self._to_back(job.index)
        changes = grant(state, sorted(state.active(), key=lambda job: self._turn[job.index]))
        for index, choice in changes.items():
            if choice is not None:
                self._until_s[index] = now_s + self.slice_s
            else:
                self._until_s.pop(index, None)
        for job in spent:
            if changes.get(job.index, job) is not None:
                self._until_s[job.index] = now_s + self.slice_s
        return Decision(changes, review_s=min((t for t in self._until_s.values() if t > now_s), default=math.inf))

    def _to_back(self, index: int) -> None:
        self._last += 1
        self._turn[index] = self._last
