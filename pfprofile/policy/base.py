"""What a policy sees and says. Policies are pure: state in, choices out; placement and time are somebody else's."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

from pfprofile.cluster.nodes import Cluster
from pfprofile.cluster.speed_table import Config, SpeedTable


@dataclass(frozen=True, slots=True)
class Job:
    """A job whose work and options are known.

    Attributes:
        name: unique.
        submit_s: arrival, s.
        work: samples to process.
        min_n, max_n: GPU counts allowed, powers of two, in each pool of ``tables``.
        tables: its speed table in each pool it may run in, by pool index.
        deadline_s: latest finish, s from the plan's start; infinite = none.
        rescale_s: fixed cost of a checkpoint and restart; None = 30 + 2·(log2 n + 1).
        asked_n: GPUs asked for, where somebody did; 0 = ``min_n``.
    """

    name: str
    submit_s: float
    work: float
    min_n: int
    max_n: int
    tables: Mapping[int, SpeedTable]
    deadline_s: float = math.inf
    rescale_s: float | None = None
    asked_n: int = 0

    @property
    def rigid_n(self) -> int:
        """GPUs that a policy without elasticity gives it."""
        return self.asked_n or self.min_n

    def restart_s(self, n: int) -> float:
        """Time lost when it is restarted on ``n`` GPUs, s."""
        return 30.0 + 2.0 * n.bit_length() if self.rescale_s is None else self.rescale_s


@dataclass(slots=True, eq=False)
class JobState:
    """A job on its way. Times in s, work in samples.

    Attributes:
        job: what was asked for.
        index: position in the simulation's list; the tie-breaker everywhere.
        remaining: work left at ``since_s``.
        since_s: when ``remaining`` was brought up to date.
        ready_s: when the current restart is over.
        config: how it runs now; None = it waits.
        pool: where it runs, or ran last.
        attained_gpu_s: GPU time received until ``since_s``.
        started_s, finished_s: NaN until they happen.
        options: scratch of the policy: hull and limits that fit this job.
    """

    job: Job
    index: int
    remaining: float
    since_s: float
    ready_s: float = 0.0
    config: Config | None = None
    pool: int = -1
    attained_gpu_s: float = 0.0
    started_s: float = math.nan
    finished_s: float = math.nan
    rescales: int = 0
    options: object = None

    def remaining_at(self, now_s: float) -> float:
        """Work left at a time not before ``since_s``."""
        config = self.config
        if config is None:
            return self.remaining
        busy_s = now_s - (self.ready_s if self.ready_s > self.since_s else self.since_s)
        return self.remaining - config.speed_per_s * busy_s if busy_s > 0 else self.remaining

    def attained_at(self, now_s: float) -> float:
        """GPU time received until now, GPU-s."""
        return self.attained_gpu_s + (self.config.n * (now_s - self.since_s) if self.config is not None else 0.0)


@dataclass(slots=True)
class State:
    """What a policy is shown at an event.

    Attributes:
        now_s: the time.
        cluster: its pools.
        running, waiting: arrived and unfinished jobs by index, with and without GPUs.
        arrived, finished: what changed since the last decision.
        bounced: jobs that wait although they were chosen: no block was free, or the power cap stopped them.
        shortened: a job was placed with fewer GPUs than chosen.
        free: unallocated GPUs of each pool.
        power_cap_w: limit on the cluster's power; infinite = none.
        always_on: nodes stay on without work.
        nodes_on: nodes in use, of each pool.
        spent_j: energy used so far.
        share_j: the part of it that P'(n, f) of the running jobs explains.
        preview_w: the cluster's power if these changes were placed now, W.
    """

    now_s: float
    cluster: Cluster
    running: dict[int, JobState]
    waiting: dict[int, JobState]
    arrived: list[JobState] = field(default_factory=list)
    finished: list[JobState] = field(default_factory=list)
    bounced: list[JobState] = field(default_factory=list)
    shortened: bool = False
    free: list[int] = field(default_factory=list)
    power_cap_w: float = math.inf
    always_on: bool = False
    nodes_on: list[int] = field(default_factory=list)
    spent_j: float = 0.0
    share_j: float = 0.0
    preview_w: Callable[[Mapping[int, Choice | None]], float] = lambda changes: 0.0

    def active(self) -> list[JobState]:
        """Arrived and unfinished jobs in order of arrival."""
        return sorted((*self.running.values(), *self.waiting.values()), key=lambda job: job.index)


@dataclass(frozen=True, slots=True)
class Choice:
    """Run in this pool with this configuration; ``least_n`` is how far placement may halve it (0 = not at all)."""

    pool: int
    config: Config
    least_n: int = 0


@dataclass(frozen=True, slots=True)
class Decision:
    """What to change: a choice starts or changes a job, None stops it; jobs not named stay as they are.

    Attributes:
        changes: by job index, in the order in which they should be placed where that matters.
        review_s: ask again at this time even if nothing happens; infinite = no need.
        consolidate_price: λ at which a node may be emptied by moving its tenants: the energy saved, at this price,
            must exceed the time and energy of their restarts. 0 = never.
        may_move: placement may move other jobs to make a block free.
    """

    changes: dict[int, Choice | None]
    review_s: float = math.inf
    consolidate_price: float = 0.0
    may_move: bool = True


@runtime_checkable
class Policy(Protocol):
    """Who gets what. A new instance is made for each simulation, so it may remember what it was shown."""

    name: str

    def decide(self, state: State) -> Decision:
        """Choices at an event. Nothing in ``state`` may be changed."""
