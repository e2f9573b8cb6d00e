"""What the data say before any fit: sizes of times and powers, for priors; and what is known of GPUs."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pfprofile.model.observations import Observations
from pfprofile.model.points import Floats


@dataclass(frozen=True, slots=True)
class Facts:
    """Figures that priors are made of.

    Attributes:
        floor_s: half the shortest pass, s.
        sample_s: time of a sample in the largest batch, s.
        sync_local_s, sync_across_s: synchronisation in a node and between nodes, s.
        static_power_w: static power of a GPU in use, W.
        dynamic_j: dynamic energy of a pass of the typical batch, J.
        typical_batch: the largest local batch.
        voltage_slope, voltage_knee: voltage over relative clock.
        has_clock_axis: more than one clock (or power limit) was measured.
    """

    floor_s: float
    sample_s: float
    sync_local_s: float
    sync_across_s: float
    static_power_w: float
    dynamic_j: float
    typical_batch: float
    voltage_slope: float
    voltage_knee: float
    has_clock_axis: bool


@dataclass(frozen=True, slots=True)
class DevicePrior:
    """Voltage knee (relative clock), voltage slope and active static power (W) that were measured on a GPU model."""

    voltage_knee: float
    voltage_slope: float
    static_power_w: float


#: word in the device name -> measured figures (DVFS studies of these GPUs; middle of the published ranges)
DEVICE_PRIORS: dict[str, DevicePrior] = {
    "a100": DevicePrior(0.78, 1.2, 57.0),
    "a40": DevicePrior(0.67, 0.95, 70.0),
    "v100": DevicePrior(0.75, 1.5, 28.0),
    "titan xp": DevicePrior(0.73, 1.06, 66.0),
}
_UNKNOWN_KNEE, _UNKNOWN_SLOPE = 0.65, 0.8
#: a GPU in use draws about this much more than a measured idle one before it does any work, W
ACTIVE_OVER_IDLE_W = 10.0


def device_prior(device_name: str) -> DevicePrior | None:
    """What is known of a GPU model, by its name."""
    words = device_name.lower().replace("-", " ")
    return next((prior for word, prior in DEVICE_PRIORS.items() if word in words), None)


def facts_of(obs: Observations, phi: Floats, device_name: str = "", idle_power_w: float | None = None) -> Facts:
    """Read the figures off the data; never fails on few rows."""
    few = obs.n_gpus == obs.n_gpus.min()
    top = few & (phi >= 0.9 * phi[few].max())
    passes = obs.step_time_s / obs.accum_steps
    largest = obs.local_batch[top] == obs.local_batch[top].max()
    sample = float(np.median((passes / obs.local_batch)[top][largest]))
    floor = 0.5 * float(passes[top].min())
    compute = np.sqrt(floor**2 + (sample * obs.local_batch) ** 2) * obs.accum_steps
    excess = np.maximum(obs.step_time_s - compute, 0.1 * obs.step_time_s)
    within, across = (obs.n_nodes <= 1) & (obs.n_gpus > 1), obs.n_nodes > 1
    fallback = 0.1 * float(np.median(obs.step_time_s))
    local = float(np.median(excess[within])) if within.any() else fallback
    far = float(np.median(excess[across])) if across.any() else fallback
    batch = float(obs.local_batch.max())
    known = np.isfinite(obs.power_w)
    most = float(obs.power_w[known].max()) if known.any() else 300.0
    prior = device_prior(device_name)
    static = 0.35 * most
    if idle_power_w is not None:
        static = idle_power_w + ACTIVE_OVER_IDLE_W
    elif prior is not None:
        static = prior.static_power_w
    return Facts(
        floor_s=floor,
        sample_s=sample,
        sync_local_s=local,
        sync_across_s=far,
        static_power_w=min(static, 0.8 * most),
        dynamic_j=0.5 * most * sample * batch,
        typical_batch=batch,
        voltage_slope=prior.voltage_slope if prior else _UNKNOWN_SLOPE,
        voltage_knee=prior.voltage_knee if prior else _UNKNOWN_KNEE,
        has_clock_axis=obs.n_clock_levels > 1,
    )
