"""How far a schedule's JCT and energy may be off, given what the models do not know.

A model's error is shared by all jobs of that model: one draw of each model is one possible truth. Under a draw each
segment still does its work, in its own time and at its own power; time spent waiting, and the energy of idle GPUs and
nodes, stretch with the GPU time of all jobs together. What a draw would change about the decisions themselves is not
followed; tests hold the result against simulations of the truth.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array

from pfprofile.cluster.speed_table import SpeedTable
from pfprofile.plan.outcome import Outcome

Floats = NDArray[np.float64]
N_DRAWS = 400
#: the interval of JCT that is reported
LEVEL = 0.9


@dataclass(frozen=True, slots=True)
class Spread:
    """Draws of one schedule.

    Attributes:
        energy_j: total energy, (d,).
        jct_lo_s, jct_hi_s: interval of each job's JCT at `LEVEL`.
    """

    energy_j: Floats
    jct_lo_s: list[float]
    jct_hi_s: list[float]

    def probability(self, budget_j: float) -> float:
        """Share of the draws within a budget."""
        return float(np.mean(self.energy_j <= budget_j))

    def quantile_j(self, confidence: float) -> float:
        """Energy that is enough with this confidence, J; the next draw above, never between two."""
        return float(np.quantile(self.energy_j, confidence, method="higher"))


class ModelDraws:
    """Ratios of drawn to predicted step time and power of every configuration, drawn once a table.

    Args:
        seed: of the draws; each model has its own stream, each draw is one truth for all tables of a model.
        n_draws: how many.
    """

    def __init__(self, seed: int = 0, n_draws: int = N_DRAWS) -> None:
        self.seed, self.n_draws = seed, n_draws
        self._ratios: dict[int, tuple[Floats, Floats]] = {}

    def ratios(self, table: SpeedTable) -> tuple[Floats, Floats]:
        """Time and power ratios, (draws, configurations)."""
        key = id(table)
        if key not in self._ratios:
            points = table.points()
            predicted = table.model.predict(points)
            # The stream depends on what the model is, not on the order in which models are met.
            stream = int.from_bytes(table.model.digest.encode()[-8:], "big") % 2**31
            time_s, power_w = table.model.draws(points, self.n_draws, (self.seed + stream) % 2**31)
            self._ratios[key] = (time_s / predicted.step_time_s, power_w / predicted.power_w)
        return self._ratios[key]


def spread_of(outcome: Outcome, draws: ModelDraws) -> Spread:
    """Draw a recorded schedule's truths.

    Args:
        outcome: with segments.
        draws: of its models.
    """
    count = len(outcome.jobs)
    own = np.zeros((count, draws.n_draws))  # time in segments
    gpu_j = np.zeros(draws.n_draws)
    drawn_gpu_time = np.zeros(draws.n_draws)
    spans = np.array([s.end_s - s.start_s for s in outcome.segments])
    jobs = np.array([s.job for s in outcome.segments], dtype=np.int64)
    tables: dict[int, tuple[SpeedTable, list[int]]] = {}
    for i, segment in enumerate(outcome.segments):
        table = outcome.jobs[segment.job].job.tables[segment.pool]
        tables.setdefault(id(table), (table, []))[1].append(i)
    for table, rows in tables.values():
        time, power = draws.ratios(table)
        segments = [outcome.segments[i] for i in rows]
        config = np.array([s.config.index for s in segments])
        runs = np.array([s.kind == "run" for s in segments])
        span, job = spans[rows], jobs[rows]
        run_s, pause_s = span * runs, span * ~runs
        # Everything is linear in the drawn times: sums by job and configuration, times the draws.
        shape = (count, time.shape[1])
        own += coo_array((run_s, (job, config)), shape=shape).tocsr() @ time.T
        own += np.bincount(job, pause_s, count)[:, None]
        power_w = np.array([s.power_w for s in segments])
        n_gpus = np.array([s.config.n for s in segments])
        gpu_j += (time * power) @ np.bincount(config, power_w * run_s, shape[1])
        gpu_j += power @ np.bincount(config, power_w * pause_s, shape[1])
        drawn_gpu_time += time @ np.bincount(config, n_gpus * run_s, shape[1]) + float(n_gpus @ pause_s)
    busy = np.bincount(jobs, spans, count)
    gpu_time = math.fsum(s.config.n * (s.end_s - s.start_s) for s in outcome.segments)
    stretch_all = drawn_gpu_time / gpu_time if gpu_time > 0 else np.ones(draws.n_draws)
    energy_j = gpu_j + (outcome.idle_energy_j + outcome.node_energy_j) * stretch_all
    low, high = (1.0 - LEVEL) / 2.0, (1.0 + LEVEL) / 2.0
    waited = np.array([state.finished_s - state.job.submit_s for state in outcome.jobs]) - busy
    lows, highs = np.quantile(own + np.maximum(waited, 0.0)[:, None] * stretch_all, (low, high), axis=1).tolist()
    return Spread(energy_j, lows, highs)
