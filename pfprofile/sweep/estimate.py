"""What a sweep will cost, for --dry-run: time by habit, energy from a model of the same job on the same device."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from pfprofile.errors import InputError
from pfprofile.profile.places import device_slug, workload_slug
from pfprofile.sweep.space import Point


@dataclass(frozen=True, slots=True)
class Estimate:
    """Time and energy of the planned trials; None = unknown.

    Attributes:
        time_s: s.
        energy_j: of the GPUs, J.
        basis: where the energy comes from, or why it is unknown.
    """

    time_s: float
    energy_j: float | None
    basis: str


def estimate(
    points: Sequence[Point], workload: str, device_name: str, window_s: float, steps: int | None, overhead_s: float
) -> Estimate:
    """Estimate trials measured for ``window_s`` (or ``steps``) each, after ``overhead_s`` of start and warm-up.

    Warm-up draws the window's power; start-up draws less, so that the energy is rather too high.
    """
    from pfprofile.model import Points, load_model

    plain_s = len(points) * (window_s + overhead_s)
    name = f"{device_slug(device_name)}/{workload_slug(workload)}"
    try:
        model = load_model(name)
        said = model.predict(Points.of(
            [p.n_gpus for p in points], [p.local_batch for p in points], n_nodes=[p.n_nodes for p in points],
            accum_steps=[p.accum_steps for p in points], sm_clock_mhz=[p.sm_clock_mhz or np.nan for p in points],
        ))  # fmt: skip
    except InputError as error:
        return Estimate(plain_s, None, f"energy unknown: {error.message}")
    window = np.maximum(said.step_time_s * steps, 0.0) if steps else np.maximum(window_s, 5 * said.step_time_s)
    each_s = window + overhead_s
    basis = f"by the model {name} ({model.source})"
    if not model.has_power:
        return Estimate(float(each_s.sum()), None, f"time {basis}; energy unknown: the model has no power")
    energy = sum(n * p * t for n, p, t in zip([q.n_gpus for q in points], said.power_w, each_s, strict=True))
    return Estimate(float(each_s.sum()), float(energy), basis)
