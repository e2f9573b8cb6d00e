"""Speed and power of one job type at every (GPU count, clock): asked of the model once, then plain Python.

``speed_per_s`` is samples a second over all GPUs. ``power_w`` is P'(n, f) = n·(GPU power + node power / GPUs per node):
what a decision is priced with. Totals charge real nodes and real idle GPUs instead.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from pfprofile.cluster.nodes import Pool
from pfprofile.errors import InputError
from pfprofile.model.interface import PerformanceModel
from pfprofile.model.points import Points, Predictions


@dataclass(frozen=True, slots=True)
class Config:
    """One way to run a job.

    Attributes:
        index: position in its table.
        n: GPUs.
        n_nodes: nodes they sit on when packed.
        local_batch: samples a GPU takes in one pass.
        accum_steps: passes in one step.
        clock_mhz: requested SM clock; None = not locked.
        speed_per_s: samples a second over all GPUs.
        gpu_w: power of one GPU, W.
        power_w: P'(n, f), W.
    """

    index: int
    n: int
    n_nodes: int
    local_batch: int
    accum_steps: int
    clock_mhz: float | None
    speed_per_s: float
    gpu_w: float
    power_w: float


@dataclass(slots=True)
class SpeedTable:
    """All useful configurations of one (model, global batch) in one pool.

    Attributes:
        configs: ordered by GPU count, then by speed; clocks that no price would choose are left out.
        by_n: configurations of each GPU count, slowest first.
        extrapolated: the model was asked outside its fitted domain, for want of anything inside.
        cache: for the policies' hulls.
    """

    model: PerformanceModel
    global_batch: int
    pool: Pool
    configs: tuple[Config, ...]
    extrapolated: bool
    by_n: dict[int, tuple[Config, ...]] = field(init=False)
    cache: dict[Any, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        groups: dict[int, list[Config]] = {}
        for config in self.configs:
            groups.setdefault(config.n, []).append(config)
        self.by_n = {n: tuple(group) for n, group in groups.items()}

    def counts(self, least: int, most: int) -> list[int]:
        """GPU counts between two limits for which there is a configuration, ascending."""
        return [n for n in self.by_n if least <= n <= most]

    def fastest(self, n: int) -> Config:
        """The fastest clock at a GPU count."""
        return self.by_n[n][-1]

    def points(self) -> Points:
        """The configurations as points of the model."""
        return _points([(c.n, c.n_nodes, c.local_batch, c.accum_steps, c.clock_mhz) for c in self.configs])


def split_batch(global_batch: int, n: int, max_local_batch: int | None) -> tuple[int, int]:
    """Local batch and accumulation steps for ``n`` GPUs: fewest passes that fit; both are rounded up."""
    accum = 1 if max_local_batch is None else max(1, math.ceil(global_batch / (n * max_local_batch)))
    return math.ceil(global_batch / (n * accum)), accum


def build_table(model: PerformanceModel, global_batch: int, pool: Pool, least: int = 1) -> SpeedTable:
    """Ask a model for every power of two of GPUs in a pool and every supported clock.

    Args:
        model: fitted, with power.
        global_batch: samples in one step, kept whatever the GPU count.
        pool: where the job would run.
        least: fewest GPUs anybody will ask for; above what was measured the table is extrapolated.

    Raises:
        InputError: the model has no power, or cannot speak about any configuration.
    """
    label = f"model {model.workload} on {model.device_name}"
    if not model.has_power:
        raise InputError(f"{label}: no power was measured, so energy cannot be planned", "profile it with power")
    clocks: list[float | None] = list(model.supported_clocks_mhz) or [None]
    options: list[tuple[int, int, int, int, float | None]] = []
    n = 1
    while n <= min(pool.max_job_gpus, global_batch):
        local, accum = split_batch(global_batch, n, model.max_local_batch)
        options += [(n, pool.nodes_for(n), local, accum, clock) for clock in clocks]
        n *= 2
    found, reason = _predict(model, options, global_batch)
    usable = [(o, r) for o, r in found if r[0] > 0 and math.isfinite(r[0]) and math.isfinite(r[1]) and r[1] > 0]
    inside = [(o, r) for o, r in usable if not r[2]]
    kept = inside if any(o[0] >= least for o, _ in inside) else usable
    if not kept:
        raise InputError(f"{label}: no configuration can be predicted for a global batch of {global_batch}", reason)
    return SpeedTable(model, global_batch, pool, _useful(kept, pool), extrapolated=kept is not inside)


#: (GPUs, nodes, local batch, accumulation steps, clock) and (speed, power of one GPU, extrapolated)
Option = tuple[int, int, int, int, float | None]
Answer = tuple[float, float, bool]


def _points(options: list[Option]) -> Points:
    n, k, b, s, f = zip(*options, strict=True)
    clocks = [math.nan if clock is None else clock for clock in f]
    return Points.of(n, b, n_nodes=k, accum_steps=s, sm_clock_mhz=clocks)


def _predict(
    model: PerformanceModel, options: list[Option], global_batch: int
) -> tuple[list[tuple[Option, Answer]], str]:
    """Predictions of all options; where the model refuses the lot, each GPU count by itself."""
    try:
        return _rows(options, model.predict(_points(options)), global_batch), ""
    except InputError as error:
        reason = str(error)
    rows = []
    for n in dict.fromkeys(o[0] for o in options):
        part = [o for o in options if o[0] == n]
        try:
            rows += _rows(part, model.predict(_points(part)), global_batch)
        except InputError as error:
            reason = str(error)
    return rows, reason


def _rows(options: list[Option], found: Predictions, global_batch: int) -> list[tuple[Option, Answer]]:
    # A batch that does not divide is rounded up on every GPU; only the global batch itself counts as progress.
    speed = global_batch / found.step_time_s
    values = zip(speed.tolist(), found.power_w.tolist(), found.extrapolated.tolist(), strict=True)
    return list(zip(options, values, strict=True))


def _useful(rows: list[tuple[Option, Answer]], pool: Pool) -> tuple[Config, ...]:
    """Only clocks on the lower hull of (time, energy) per sample: no price of time and energy picks another."""
    share_w = pool.node_w / pool.gpus_per_node
    configs: list[Config] = []
    for n in dict.fromkeys(o[0] for o, _ in rows):
        group = [(1 / r[0], n * (r[1] + share_w) / r[0], o, r) for o, r in rows if o[0] == n]
        group.sort(key=lambda g: (-g[0], g[1]))
        times = np.array([g[0] for g in group])
        energies = np.array([g[1] for g in group])
        for i in lower_hull(times, energies):
            _, _, (_, nodes, local, accum, clock), (speed, gpu_w, _) = group[i]
            power_w = n * (gpu_w + share_w)
            configs.append(Config(len(configs), n, nodes, local, accum, clock, speed, gpu_w, power_w))
    return tuple(configs)


def lower_hull(x: np.ndarray[Any, np.dtype[np.float64]], y: np.ndarray[Any, np.dtype[np.float64]]) -> list[int]:
    """Indices of points that minimise x + ρ·y for some ρ ≥ 0 (ρ = ∞ included), from largest x to smallest.

    Args:
        x, y: coordinates, (m,).
    """
    order = np.lexsort((y, x)).tolist()
    xs, ys = x.tolist(), y.tolist()  # Python's floats are several times as fast, one at a time, as numpy's
    chain: list[int] = []
    for i in order:
        px, py = xs[i], ys[i]
        if chain and py >= ys[chain[-1]]:
            continue
        while len(chain) >= 2:
            ax, ay = xs[chain[-2]], ys[chain[-2]]
            bx, by = xs[chain[-1]], ys[chain[-1]]
            if (by - ay) * (px - ax) >= (py - ay) * (bx - ax):
                chain.pop()
            else:
                break
        chain.append(i)
    return chain[::-1]
