"""What the default policy remembers of one pool between events."""

from __future__ import annotations

from bisect import insort
from dataclasses import dataclass

from pfprofile.policy.base import JobState
from pfprofile.policy.hulls import Ladder
from pfprofile.policy.prices import Claim


@dataclass(slots=True, eq=False)
class Fit:
    """How a job fits a pool at the current energy price.

    Attributes:
        pool: the pool's index.
        ladder: its ladder at weight 1.
        least: its fewest GPUs.
        unit_s: time of a sample on the fewest GPUs at the fastest clock, s.
    """

    pool: int
    ladder: Ladder
    least: int
    unit_s: float


class Book:
    """One pool's members and the prices of the last full pricing.

    Attributes:
        capacity: GPUs.
        members: arrived, unfinished jobs by index.
        queue: those that wait, shortest first (deadlines before all others).
        wanted: Σ n of all members if GPUs were free.
        least: Σ of their fewest GPUs.
        urgent: members with a deadline.
        changed: arrivals and finishes since the last full pricing.
        at_best: everybody has what they would want if GPUs were free.
    """

    __slots__ = (
        "at_best", "capacity", "changed", "claims", "gpu_price", "least", "lengths", "members", "queue", "refused",
        "theta", "urgent", "wanted",
    )  # fmt: skip

    def __init__(self, capacity: int) -> None:
        self.capacity = capacity
        self.members: dict[int, JobState] = {}
        self.queue: list[tuple[float, int, JobState]] = []
        self.wanted = self.least = self.urgent = self.changed = 0
        self.at_best = True
        self.gpu_price = self.theta = 0.0
        self.lengths: list[float] = []
        self.claims: list[Claim] = []
        self.refused: list[tuple[int, int]] = []

    def join(self, job: JobState, fit: Fit) -> None:
        """A job arrives."""
        self.members[job.index] = job
        self.wanted += fit.ladder.best.n
        self.least += fit.least
        self.changed += 1
        self.urgent += job.job.deadline_s < float("inf")

    def part(self, job: JobState, fit: Fit) -> None:
        """A job finishes."""
        del self.members[job.index]
        self.wanted -= fit.ladder.best.n
        self.least -= fit.least
        self.changed += 1
        self.urgent -= job.job.deadline_s < float("inf")

    def wait(self, job: JobState, length: float) -> None:
        """A job goes into the queue."""
        insort(self.queue, (length, job.index, job))
