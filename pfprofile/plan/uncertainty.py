"""How far a schedule's JCT and energy may be off, given what the models do not know.

A model's error is shared by all jobs of that model: one draw of each model is one possible truth. Under a draw each
segment still does its work, in its own time and at its own power; time spent waiting, and the energy of idle GPUs and
nodes, stretch with the GPU time of all jobs together. What a draw would change about the decisions themselves is not
followed; tests hold the result against simulations of the truth.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

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
    busy = np.zeros(count)
    gpu_j = np.zeros(draws.n_draws)
    gpu_time, drawn_gpu_time = 0.0, np.zeros(draws.n_draws)
    for segment in outcome.segments:
        table = outcome.jobs[segment.job].job.tables[segment.pool]
        time, power = draws.ratios(table)
        k = segment.config.index
        span = segment.end_s - segment.start_s
        stretch = span * (time[:, k] if segment.kind == "run" else np.ones(draws.n_draws))
        own[segment.job] += stretch
        busy[segment.job] += span
        gpu_j += segment.power_w * power[:, k] * stretch
        gpu_time += segment.config.n * span
        drawn_gpu_time += segment.config.n * stretch
    stretch_all = drawn_gpu_time / gpu_time if gpu_time > 0 else np.ones(draws.n_draws)
    energy_j = gpu_j + (outcome.idle_energy_j + outcome.node_energy_j) * stretch_all
    low, high = (1.0 - LEVEL) / 2.0, (1.0 + LEVEL) / 2.0
    waited = np.array([state.finished_s - state.job.submit_s for state in outcome.jobs]) - busy
    lows, highs = np.quantile(own + np.maximum(waited, 0.0)[:, None] * stretch_all, (low, high), axis=1).tolist()
    return Spread(energy_j, lows, highs)
