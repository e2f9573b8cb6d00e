"""Points to predict and the predictions: the one interface between models and everybody who uses them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Points:
    """Configurations, as arrays of one length m.

    Attributes:
        n_gpus: GPUs that train together, (m,).
        n_nodes: nodes they sit on, (m,).
        local_batch: samples a GPU takes in one forward pass, (m,).
        accum_steps: forward passes in one optimizer step, (m,).
        sm_clock_mhz: requested SM clock, MHz, (m,); NaN = not locked.
    """

    n_gpus: Ints
    n_nodes: Ints
    local_batch: Ints
    accum_steps: Ints
    sm_clock_mhz: Floats

    @classmethod
    def of(
        cls, n_gpus: Any, local_batch: Any, *, n_nodes: Any = 1, accum_steps: Any = 1, sm_clock_mhz: Any = np.nan
    ) -> Points:
        """Broadcast scalars and sequences to one length."""
        n, k, b, s, f = np.broadcast_arrays(n_gpus, n_nodes, local_batch, accum_steps, sm_clock_mhz)
        n, k, b, s = (np.atleast_1d(a).astype(np.int64) for a in (n, k, b, s))
        return cls(n, k, b, s, np.atleast_1d(f).astype(np.float64))

    def __len__(self) -> int:
        return len(self.n_gpus)


@dataclass(frozen=True, slots=True)
class Predictions:
    """What a model says of points; all arrays (m,). Power is of one GPU; unknown power is NaN.

    Attributes:
        step_time_s: time of one optimizer step, s, with its interval ``_lo``/``_hi``.
        throughput_per_s: samples a second over all GPUs.
        power_w: mean power of one GPU while stepping, W, with its interval.
        energy_per_step_j: n_gpus × power × step time, J.
        extrapolated: the point lies outside the domain that the model was fitted on.
    """

    points: Points
    step_time_s: Floats
    step_time_lo_s: Floats
    step_time_hi_s: Floats
    throughput_per_s: Floats
    power_w: Floats
    power_lo_w: Floats
    power_hi_w: Floats
    energy_per_step_j: Floats
    extrapolated: Bools

    def rows(self) -> Iterator[dict[str, Any]]:
        """One dict a point, with the contract's column names; NaN becomes None."""
        p = self.points
        columns: dict[str, Any] = {
            "n_gpus": p.n_gpus,
            "n_nodes": p.n_nodes,
            "local_batch": p.local_batch,
            "accum_steps": p.accum_steps,
            "sm_clock_mhz": p.sm_clock_mhz,
        }
        for name in PREDICTED:
            columns[name] = getattr(self, name)
        for i in range(len(p)):
            row = {name: values[i].item() for name, values in columns.items()}
            yield {k: None if isinstance(v, float) and v != v else v for k, v in row.items()}


PREDICTED = (
    "step_time_s", "step_time_lo_s", "step_time_hi_s", "throughput_per_s",
    "power_w", "power_lo_w", "power_hi_w", "energy_per_step_j", "extrapolated",
)  # fmt: skip
POINT_COLUMNS = ("n_gpus", "n_nodes", "local_batch", "accum_steps", "sm_clock_mhz")
