"""An analytic stand-in for a fitted model: power-law compute, ring synchronisation, cubic clock power."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from pfprofile.model.points import Floats, Points, Predictions
from pfprofile.profile import WorkloadFacts


@dataclass(frozen=True)
class Double:
    """Step time (a + b·local_batch)·accum/clock share + c·log2 n (·3 over nodes); power s + d·clock³·load."""

    workload: str = "resnet50"
    device_name: str = "NVIDIA A100-SXM4"
    overhead_s: float = 0.02
    sample_s: float = 0.0012
    sync_s: float = 0.012
    static_w: float = 90.0
    dynamic_w: float = 260.0
    clocks: tuple[float, ...] = tuple(float(c) for c in range(600, 1411, 90))
    max_local_batch: int | None = 512
    idle_power_w: float | None = 55.0
    has_power: bool = True
    gpus_per_node: int = 8
    source: str = "synthetic"
    error: float = 0.03
    facts: WorkloadFacts = field(default_factory=lambda: WorkloadFacts("image", 100_000, 64, 256))

    @property
    def supported_clocks_mhz(self) -> tuple[float, ...]:
        return self.clocks

    @property
    def default_clock_mhz(self) -> float | None:
        return self.clocks[-1] if self.clocks else None

    @property
    def digest(self) -> str:
        return f"double-{self.workload}-{self.sample_s}"

    def _truth(self, p: Points) -> tuple[Floats, Floats]:
        top = self.clocks[-1] if self.clocks else 1410.0
        share = np.where(np.isnan(p.sm_clock_mhz), top, p.sm_clock_mhz) / top
        compute = (self.overhead_s + self.sample_s * p.local_batch) * p.accum_steps * (0.25 + 0.75 / share)
        sync = self.sync_s * np.log2(p.n_gpus) * np.where(p.n_nodes > 1, 2.0, 1.0)
        time = compute + sync
        return time, self.static_w + self.dynamic_w * share**2.6 * compute / time

    def predict(self, points: Points, level: float = 0.9) -> Predictions:
        time, power = self._truth(points)
        samples = points.n_gpus * points.local_batch * points.accum_steps
        wide = 1.64 * self.error
        return Predictions(
            points, time, time * (1 - wide), time * (1 + wide), samples / time, power, power * (1 - wide),
            power * (1 + wide), points.n_gpus * power * time, np.zeros(len(points), dtype=bool),
        )  # fmt: skip

    def draws(self, points: Points, n_draws: int, seed: int) -> tuple[Floats, Floats]:
        time, power = self._truth(points)
        rng = np.random.default_rng(seed)
        shared = rng.normal(0.0, self.error, (n_draws, 2))
        return time * np.exp(shared[:, :1]), power * np.exp(shared[:, 1:])
