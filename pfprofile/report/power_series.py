"""Cluster power over time from a schedule's segments."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pfprofile.report.schedule_file import Schedule, Segment, split_gpu

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class PowerSeries:
    """Power as steps: value i holds from ``edges_s[i]`` to ``edges_s[i + 1]``.

    Attributes:
        edges_s: times, s, (m + 1,), ascending.
        jobs_w: power of the GPUs at work, W, (m,), from the segments.
        standing_w: power of idle GPUs and nodes, W, (m,): the schedule holds only their energies, which are shared
            out evenly over the time in which nodes have tenants. None where the schedule does not say.
        unknown: segments whose power is null.
    """

    edges_s: Floats
    jobs_w: Floats
    standing_w: Floats | None
    unknown: int

    @property
    def total_w(self) -> Floats:
        """All that is known, W, (m,)."""
        return self.jobs_w if self.standing_w is None else self.jobs_w + self.standing_w


def power_series(schedule: Schedule) -> PowerSeries | None:
    """Add up the segments; None where there is none."""
    segments = [s for s in schedule.segments if s.end_s > s.start_s]
    if not segments:
        return None
    edges = np.unique(np.array([t for s in segments for t in (s.start_s, s.end_s)], dtype=np.float64))
    jobs_w = _steps(edges, [(s.start_s, s.end_s, s.job_power_w or 0.0) for s in segments])
    unknown = sum(s.job_power_w is None for s in segments)
    return PowerSeries(edges, jobs_w, _standing(schedule, segments, edges), unknown)


def _steps(edges: Floats, spans: Sequence[tuple[float, float, float]]) -> Floats:
    change = np.zeros(len(edges))
    start, end, height = (np.array(column) for column in zip(*spans, strict=True))
    np.add.at(change, np.searchsorted(edges, start), height)
    np.add.at(change, np.searchsorted(edges, end), -height)
    return np.maximum(np.cumsum(change)[:-1], 0.0)


def _standing(schedule: Schedule, segments: Sequence[Segment], edges: Floats) -> Floats | None:
    idle, node = schedule.totals.idle_energy_j, schedule.totals.node_energy_j
    if idle is None and node is None:
        return None
    energy = (idle or 0.0) + (node or 0.0)
    on = _nodes_on(segments, edges)
    node_seconds = float(np.sum(on * np.diff(edges)))
    return on * (energy / node_seconds) if node_seconds > 0 else None


def _nodes_on(segments: Sequence[Segment], edges: Floats) -> Floats:
    """Nodes with at least one tenant, (m,)."""
    spans: dict[str, list[tuple[float, float]]] = {}
    for segment in segments:
        for node in {split_gpu(gpu)[0] for gpu in segment.gpus}:
            spans.setdefault(node, []).append((segment.start_s, segment.end_s))
    merged: list[tuple[float, float, float]] = []
    for times in spans.values():
        times.sort()
        begin, end = times[0]
        for start, stop in times[1:]:
            if start > end:
                merged.append((begin, end, 1.0))
                begin, end = start, stop
            end = max(end, stop)
        merged.append((begin, end, 1.0))
    return _steps(edges, merged) if merged else np.zeros(len(edges) - 1)


def energy_j(series: PowerSeries) -> float:
    """Energy of the GPUs at work under the steps, J."""
    return float(np.sum(series.jobs_w * np.diff(series.edges_s)))


def peak(series: PowerSeries) -> tuple[float, float]:
    """(time s, power W) of the highest step."""
    i = int(np.argmax(series.total_w))
    return float(series.edges_s[i]), float(series.total_w[i])
