"""What goes into a simulation beside jobs, and what comes out."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from pfprofile.cluster.speed_table import Config
from pfprofile.policy.base import JobState


@dataclass(frozen=True, slots=True)
class Segment:
    """A stretch of one job's life on the same GPUs at the same clock; ``kind`` is run or rescale."""

    job: int
    kind: str
    start_s: float
    end_s: float
    pool: int
    config: Config
    gpus: tuple[str, ...]

    @property
    def power_w(self) -> float:
        """Power of the job's GPUs, W."""
        return self.config.n * self.config.gpu_w

    @property
    def energy_j(self) -> float:
        """Energy of the job's GPUs, J."""
        return self.power_w * (self.end_s - self.start_s)


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a simulation found. Energies in J, times in s.

    Attributes:
        jobs: final states, in the order given.
        job_energy_j: energy of each job's GPUs.
        segments: only if recorded; by start, then job.
    """

    jobs: list[JobState]
    job_energy_j: list[float]
    gpu_energy_j: float
    idle_energy_j: float
    node_energy_j: float
    start_s: float
    end_s: float
    peak_w: float
    rescales: int
    migrations: int
    segments: list[Segment]

    @property
    def energy_j(self) -> float:
        """Total."""
        return self.gpu_energy_j + self.idle_energy_j + self.node_energy_j

    @property
    def avg_jct_s(self) -> float:
        """Mean of finish − submit."""
        return math.fsum(j.finished_s - j.job.submit_s for j in self.jobs) / len(self.jobs)

    @property
    def makespan_s(self) -> float:
        """From the first arrival to the last finish."""
        return self.end_s - self.start_s


@dataclass(frozen=True, slots=True)
class Seat:
    """A job that already runs. ``gpus`` are (node, index); None = anywhere, at the cost of a restart."""

    pool: int
    config: Config
    gpus: tuple[tuple[int, int], ...] | None


@dataclass(frozen=True, slots=True)
class Options:
    """How to simulate.

    Attributes:
        power_cap_w: never exceeded; infinite = none.
        always_on: nodes stay on from the first arrival to the last finish.
        record: keep segments.
        start_s: nothing happens before; earlier arrivals wait for it.
        under_way: by job index, where a job already sits when the simulation starts.
    """

    power_cap_w: float = math.inf
    always_on: bool = False
    record: bool = True
    start_s: float = 0.0
    under_way: Mapping[int, Seat] = field(default_factory=dict)
