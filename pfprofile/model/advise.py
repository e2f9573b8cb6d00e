"""What a fit does badly and what would help it most: the worst rows, and the next points to measure."""

from __future__ import annotations

import math
from typing import Any, Literal

import numpy as np

from pfprofile.model.document import Advice, ModelDocument, NextPoint, WorstRow
from pfprofile.model.fitted import FittedModel
from pfprofile.model.observations import Observations
from pfprofile.model.points import Floats, Points

N_WORST, N_NEXT = 5, 3
MOST_CANDIDATES = 2000


def worst_rows(obs: Observations, time_s: Floats, power_w: Floats, count: int = N_WORST) -> list[WorstRow]:
    """The points the model misses by most, time and power together."""
    errors: list[tuple[float, int, Literal["time", "power"], float, float]] = []
    parts: tuple[tuple[Literal["time", "power"], Floats, Floats], ...] = (
        ("time", obs.step_time_s, time_s),
        ("power", obs.power_w, power_w),
    )
    for part, measured, predicted in parts:
        for i in map(int, np.flatnonzero(np.isfinite(measured) & np.isfinite(predicted))):
            error = float(predicted[i] / measured[i] - 1)
            errors.append((abs(error), i, part, error, float(measured[i])))
    errors.sort(key=lambda e: (-e[0], e[1]))
    out = []
    for _, i, part, error, value in errors[:count]:
        clock = float(obs.clock_mhz[i])
        out.append(WorstRow(n_gpus=int(obs.n_gpus[i]), n_nodes=int(obs.n_nodes[i]), local_batch=int(obs.local_batch[i]),
                            sm_clock_mhz=clock if math.isfinite(clock) else None, part=part, error=error,
                            measured=value))  # fmt: skip
    return out


def next_points(document: ModelDocument, obs: Observations, count: int = N_NEXT) -> list[NextPoint]:
    """The points whose measurement would tell the model most.

    First an axis of which only one value is known, then, greedily, the candidate that the model is least sure of; each
    choice shrinks the covariance as its measurement would.
    """
    out = _lone_axes(document)[:count]
    candidates = _candidates(document, obs)
    if len(candidates) and len(out) < count:
        out += _least_sure(document, candidates, count - len(out))
    return out


def _lone_axes(document: ModelDocument) -> list[NextPoint]:
    domain, clocks = document.domain, document.clocks
    n, b = domain.n_gpus[0], domain.local_batch[-1]
    k = domain.n_nodes[0]
    out = []
    if len(domain.clock_mhz) == 1 and len(clocks.supported_mhz) > 1:
        lowest = min(clocks.supported_mhz)
        out.append(NextPoint(n_gpus=n, n_nodes=k, local_batch=b, sm_clock_mhz=lowest,
                             reason="only one clock was measured"))  # fmt: skip
    if len(domain.local_batch) == 1:
        out.append(NextPoint(n_gpus=n, n_nodes=k, local_batch=max(1, b // 2) if b > 1 else 2, sm_clock_mhz=None,
                             reason="only one batch was measured"))  # fmt: skip
    if len(domain.n_gpus) == 1:
        out.append(NextPoint(n_gpus=2 * n, n_nodes=max(k, -(-2 * n // domain.gpus_per_node)), local_batch=b,
                             sm_clock_mhz=None, reason="only one GPU count was measured"))  # fmt: skip
    return out


def _candidates(document: ModelDocument, obs: Observations) -> list[tuple[int, int, int, float]]:
    domain = document.domain
    placements = sorted({(int(n), int(k)) for n, k in zip(obs.n_gpus, obs.n_nodes, strict=True)})
    clocks: list[float] = [math.nan]
    if len(domain.clock_mhz) > 1:
        clocks = sorted({domain.clock_mhz[0], *domain.clock_mhz, *_ends(document.clocks.supported_mhz)})
    between = [round(math.sqrt(a * b)) for a, b in zip(domain.local_batch, domain.local_batch[1:], strict=False)]
    batches = sorted({*domain.local_batch, *between})
    measured = {
        (int(n), int(k), int(b), round(f) if math.isfinite(f) else -1)
        for n, k, b, f in zip(obs.n_gpus, obs.n_nodes, obs.local_batch, obs.requested_mhz, strict=True)
    }
    grid = [
        (n, k, b, f) for n, k in placements for b in batches for f in clocks
        if (n, k, b, round(f) if math.isfinite(f) else -1) not in measured
    ]  # fmt: skip
    return grid[:: max(1, len(grid) // MOST_CANDIDATES)]


def _ends(values: list[float]) -> list[float]:
    return [min(values), max(values)] if values else []


def _least_sure(document: ModelDocument, candidates: list[tuple[int, int, int, float]], count: int) -> list[NextPoint]:
    model = FittedModel(document)
    n, k, b, f = np.array(candidates, dtype=np.float64).T
    points = Points.of(n, b, n_nodes=k, sm_clock_mhz=f)
    loadings, rest, noise = model.uncertainty(points)
    covariance = np.array(document.covariance.matrix, dtype=np.float64)
    out = []
    for _ in range(min(count, len(candidates))):
        variance = np.einsum("ij,jk,ik->i", loadings, covariance, loadings) + rest
        best = int(np.argmax(variance))
        spread = math.sqrt(float(variance[best]) + noise**2)
        clock = None if math.isnan(f[best]) else float(f[best])
        out.append(NextPoint(n_gpus=int(n[best]), n_nodes=int(k[best]), local_batch=int(b[best]), sm_clock_mhz=clock,
                             reason=f"its step time is known to {math.expm1(spread):.0%}"))  # fmt: skip
        gain = covariance @ loadings[best]
        covariance = covariance - np.outer(gain, gain) / (float(variance[best]) + noise**2)
        near = (np.log(n / n[best]) ** 2 + np.log(b / b[best]) ** 2 + np.log(k / k[best]) ** 2) < 1
        rest = np.where(near, 0.0, rest)
        rest[best], loadings[best] = 0.0, 0.0
    return out


def advice_of(document: ModelDocument, obs: Observations, time_s: Floats, power_w: Floats) -> Advice:
    """Both, for the model file."""
    return Advice(worst=worst_rows(obs, time_s, power_w), next_points=next_points(document, obs))


def correlations(document: ModelDocument, least: float = 0.9) -> list[dict[str, Any]]:
    """Pairs of fitted parameters that only their combination is known of: |correlation| at least ``least``."""
    names = document.covariance.names
    matrix = np.array(document.covariance.matrix, dtype=np.float64).reshape(len(names), -1)
    sd = np.sqrt(np.maximum(np.diag(matrix), 1e-300))
    strength = matrix / np.outer(sd, sd)
    pairs = [
        {"a": names[i], "b": names[j], "correlation": float(strength[i, j])}
        for i in range(len(names)) for j in range(i)
        if abs(strength[i, j]) >= least
    ]  # fmt: skip
    return sorted(pairs, key=lambda p: -abs(p["correlation"]))
