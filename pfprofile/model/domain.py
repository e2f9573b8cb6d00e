"""What a model may speak about: axes with one value are refused, points outside the measured ranges are flagged."""

from __future__ import annotations

import numpy as np

from pfprofile.errors import InputError
from pfprofile.model.document import Clocks, Domain
from pfprofile.model.observations import Observations
from pfprofile.model.points import Bools, Floats, Points

#: clocks closer than this to a measured one count as it
CLOCK_TOLERANCE = 0.005


def domain_of(obs: Observations, default_mhz: float, gpus_per_node: int | None, oom_batches: list[int]) -> Domain:
    """The distinct values of each axis of a data set."""
    local, across = (obs.n_nodes <= 1) & (obs.n_gpus > 1), obs.n_nodes > 1
    clock = np.where(np.isfinite(obs.requested_mhz), obs.requested_mhz, np.nan)
    if not np.isfinite(clock).any():
        clock = obs.clock_mhz
    clock = np.where(np.isfinite(clock), clock, default_mhz)
    widest = int(np.max(np.ceil(obs.n_gpus / obs.n_nodes)))

    def whole(values: Floats) -> list[int]:
        return [int(v) for v in np.unique(values)]

    return Domain(
        n_gpus=whole(obs.n_gpus),
        n_nodes=whole(obs.n_nodes),
        local_batch=whole(obs.local_batch),
        accum_steps=whole(obs.accum_steps),
        clock_mhz=[float(v) for v in np.unique(clock[np.isfinite(clock)])],
        power_limit_w=[float(v) for v in np.unique(obs.power_limit_w[np.isfinite(obs.power_limit_w)])],
        gpus_one_node=whole(obs.n_gpus[local]),
        gpus_per_node_across=[float(v) for v in np.unique(obs.n_gpus[across] / obs.n_nodes[across])],
        max_local_batch=int(obs.local_batch.max()),
        oom_local_batch=min((b for b in oom_batches if b > obs.local_batch.max()), default=None),
        gpus_per_node=gpus_per_node or widest,
    )


def refuse_unspoken(domain: Domain, clocks: Clocks, workload: str, points: Points) -> None:
    """Refuse points on an axis of which only one value was measured.

    Raises:
        InputError: it names the axis, the value that was measured and what to measure.
    """
    axes = (
        ("n_gpus", domain.n_gpus, points.n_gpus, "GPU count", "--gpus"),
        ("n_nodes", domain.n_nodes, points.n_nodes, "node count", None),
        ("local_batch", domain.local_batch, points.local_batch, "local batch", "--batch-sizes"),
    )
    for _, known, asked, words, option in axes:
        other = np.unique(asked[asked != known[0]])
        if len(known) == 1 and len(other):
            value = int(other[0])
            how = (
                f"measure both: pfprofile sweep {workload} {option} {known[0]},{value}"
                if option
                else f"measure points that span {value} nodes"
            )
            raise InputError(
                f"{workload}: only one {words} was measured ({known[0]}); {value} cannot be predicted", how
            )
    _refuse_clocks(domain, clocks, workload, points.sm_clock_mhz[np.isfinite(points.sm_clock_mhz)])


def _refuse_clocks(domain: Domain, clocks: Clocks, workload: str, asked: Floats) -> None:
    if not len(asked):
        return
    if not domain.clock_mhz or clocks.f_max_mhz is None:
        raise InputError(
            f"{workload}: no clock was recorded; {asked[0]:g} MHz cannot be predicted",
            f"measure locked clocks: pfprofile sweep {workload} --freqs auto",
        )
    if len(domain.clock_mhz) > 1:
        return
    only = domain.clock_mhz[0]
    other = asked[np.abs(asked / only - 1) > CLOCK_TOLERANCE]
    if len(other):
        raise InputError(
            f"{workload}: only one clock was measured ({only:g} MHz); {other[0]:g} MHz cannot be predicted",
            f"measure several: pfprofile sweep {workload} --freqs auto",
        )


def outside(domain: Domain, clocks: Clocks, points: Points) -> Bools:
    """Which points lie outside the measured ranges, or in a corner of which nothing was measured."""
    n, k, b = (a.astype(np.float64) for a in (points.n_gpus, points.n_nodes, points.local_batch))
    out = _beyond(n, domain.n_gpus) | _beyond(k, domain.n_nodes) | _beyond(b, domain.local_batch)
    within, across = (k <= 1) & (n > 1), k > 1
    out |= within & _beyond(n, domain.gpus_one_node)
    out |= across & _beyond(n / k, domain.gpus_per_node_across)
    if domain.clock_mhz:
        default = clocks.default_mhz if clocks.default_mhz is not None else clocks.f_max_mhz
        f = np.where(np.isfinite(points.sm_clock_mhz), points.sm_clock_mhz, default or np.nan)
        out |= (f < domain.clock_mhz[0] * (1 - CLOCK_TOLERANCE)) | (f > domain.clock_mhz[-1] * (1 + CLOCK_TOLERANCE))
    return out


def _beyond(values: Floats, known: list[int] | list[float]) -> Bools:
    if not known:
        return np.ones(len(values), dtype=np.bool_)
    return (values < min(known)) | (values > max(known))
