"""Profiles and models as bars in a terminal: time and energy against clock, throughput against GPUs."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from statistics import median
from typing import TYPE_CHECKING, Any

from pfprofile.report.axes import value
from pfprofile.report.blocks import Bars, bar_chart
from pfprofile.report.parts import spread_evenly
from pfprofile.report.slices import cut, derived
from pfprofile.units import format_clock, format_duration, format_energy

if TYPE_CHECKING:
    from pfprofile.model import FittedModel

#: rows of one chart
MOST_ROWS = 14
QUANTITIES = ("step_time_s", "throughput_per_s", "energy_per_sample_j")
Point = Mapping[str, Any]


def profile_charts(rows: Sequence[dict[str, Any]], width: int, *, blocks: bool) -> list[str]:
    """Charts of a profile's trials along the axes that have more than one value; each begins with what is held fixed.

    Args:
        rows: of the profile.
        width: of the terminal, characters.
        blocks: whether it can show block characters.
    """
    found: list[str] = []
    told = [derived(row) for row in rows]
    for axis in ("clock", "gpus"):
        piece = cut(told, axis)
        if not piece.lines:
            continue
        # Of equally full lines the last: the largest batch, the highest clock.
        _, trials = max(reversed(piece.lines), key=lambda item: len({value(row, axis) for row in item[1]}))
        found += ["", *_chart(axis, _held(trials[0], axis), _medians(trials, axis), width, blocks)]
    return found


def model_charts(model: FittedModel, width: int, *, blocks: bool) -> list[str]:
    """Charts of what a model predicts over its clocks and GPU counts, inside what was measured."""
    from pfprofile.model.points import Points

    domain = model.document.domain
    batch, gpus = domain.local_batch[-1], domain.n_gpus
    clocks = [f for f in model.supported_clocks_mhz if domain.clock_mhz[0] <= f <= domain.clock_mhz[-1]]
    per_node = model.gpus_per_node
    found: list[str] = []
    if len(clocks) > 1:
        shown = spread_evenly(clocks, MOST_ROWS)
        ask = Points.of(gpus[0], batch, n_nodes=-(-gpus[0] // per_node), sm_clock_mhz=shown)
        at = [(p["sm_clock_mhz"], _predicted(p)) for p in model.predict(ask).rows()]
        found += ["", *_chart("clock", f"predicted: {_gpus(gpus[0])}, batch {batch}", at, width, blocks)]
    if len(gpus) > 1:
        ask = Points.of(gpus, batch, n_nodes=[-(-n // per_node) for n in gpus])
        at = [(float(p["n_gpus"]), _predicted(p)) for p in model.predict(ask).rows()]
        found += ["", *_chart("gpus", f"predicted: batch {batch} per GPU, default clock", at, width, blocks)]
    return found


def _predicted(p: Mapping[str, Any]) -> Point:
    samples = p["n_gpus"] * p["local_batch"] * p["accum_steps"]
    energy_j = p["energy_per_step_j"]
    return {**p, "energy_per_sample_j": None if energy_j is None else energy_j / samples}


def _medians(trials: Sequence[Point], axis: str) -> list[tuple[float, Point]]:
    """The median of each quantity at each value of the axis."""
    by_value: dict[float, list[Point]] = {}
    for row in trials:
        if (at := value(dict(row), axis)) is not None:
            by_value.setdefault(at, []).append(row)
    chosen = spread_evenly(sorted(by_value), MOST_ROWS)
    return [(at, {name: _median([row[name] for row in by_value[at]]) for name in QUANTITIES}) for at in chosen]


def _median(values: Sequence[float | None]) -> float | None:
    known = [v for v in values if v is not None and math.isfinite(v)]
    return median(known) if known else None


def _held(row: Point, axis: str) -> str:
    parts = [f"batch {row['local_batch']} per GPU"]
    if axis == "clock":
        parts.insert(0, _gpus(row["n_gpus"]))
    else:
        clock = row["requested_clock_mhz"]
        parts.append("clock not locked" if clock is None else format_clock(clock))
    if row["accum_steps"] > 1:
        parts.append(f"{row['accum_steps']} accumulation steps")
    return ", ".join(parts)


def _rate(rate_per_s: float) -> str:
    return f"{rate_per_s:,.0f}" if rate_per_s >= 1000 else f"{rate_per_s:.4g}"


def _gpus(count: int) -> str:
    return f"{count} GPU{'' if count == 1 else 's'}"


def _chart(axis: str, words: str, at: Sequence[tuple[float, Point]], width: int, blocks: bool) -> list[str]:
    def column(name: str) -> list[float | None]:
        return [point[name] for _, point in at]

    energy = Bars("energy a sample", column("energy_per_sample_j"), lambda v: format_energy(v, 3), min)
    if axis == "clock":
        labels = [format_clock(v) for v, _ in at]
        columns = [Bars("step time", column("step_time_s"), format_duration, min), energy]
    else:
        labels = [f"{v:g}" for v, _ in at]
        columns = [Bars("throughput, samples/s", column("throughput_per_s"), _rate, max), energy]
    if not any(v is not None for v in energy.values):
        columns.remove(energy)
    return [
        f"{words}   (* best)",
        *bar_chart("SM clock" if axis == "clock" else "GPUs", labels, columns, width, blocks=blocks),
    ]
