"""Cuts through a profile along one axis: which trials make a line, what is held fixed, said in words."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pfprofile.report.parts import Columns, DataTable, enumerate_words, spread_evenly, table
from pfprofile.units import format_clock, format_duration, format_energy, format_power

AXES = ("clock", "batch", "gpus")
MOST_LINES = 5

#: axis -> (column, title, label with unit, what to do where it has one value)
NAMES = {
    "clock": ("requested_clock_mhz", "Against SM clock", "SM clock (MHz)", "sweep --freqs auto"),
    "batch": ("local_batch", "Against batch size", "batch per GPU (samples)", "sweep --batch-sizes auto"),
    "gpus": ("n_gpus", "Against GPU count", "GPUs", "sweep --gpus 1,2,4"),
}
_POINT: Columns = {
    "n_gpus": ("GPUs", str),
    "n_nodes": ("nodes", str),
    "local_batch": ("batch", str),
    "requested_clock_mhz": ("requested clock", format_clock),
    "achieved_clock_mhz": ("achieved clock", format_clock),
    "step_time_s": ("step time", format_duration),
    "throughput_per_s": ("throughput /s", lambda v: f"{v:.4g}"),
    "power_w": ("power of one GPU", format_power),
    "energy_per_sample_j": ("energy a sample", format_energy),
    "limited_by": ("limited by", str),
    "status": ("status", str),
}


@dataclass(frozen=True, slots=True)
class Slice:
    """Trials along one axis.

    Attributes:
        line_axis: the axis whose value tells the lines apart.
        lines: (value of that axis, its trials), ascending.
        failed: trials that failed at the values that are held.
        intro: what is held fixed, or why there is nothing to see.
        clocks_mhz: lowest and highest clock of the whole profile, the ends of the colour scale.
        held_axis, held, accum_steps: what is the same in all lines.
    """

    axis: str
    line_axis: str
    lines: tuple[tuple[float | None, tuple[dict[str, Any], ...]], ...]
    failed: tuple[dict[str, Any], ...]
    intro: str
    clocks_mhz: tuple[float, float]
    held_axis: str = ""
    held: float | None = None
    accum_steps: int = 1

    @property
    def title(self) -> str:
        """Heading of the cut."""
        return NAMES[self.axis][1]

    def table(self) -> DataTable:
        """The trials that are drawn."""
        rows = [row for _, trials in self.lines for row in trials] + list(self.failed)
        return table(f"The numbers: {self.title[0].lower()}{self.title[1:]}", rows, _POINT)


def value(row: dict[str, Any], axis: str) -> float | None:
    """Where a trial sits on an axis: the clock it was asked for, or that it ran at where none was."""
    if axis == "clock":
        asked: float | None = row["requested_clock_mhz"]
        return asked if asked is not None else row["achieved_clock_mhz"]
    return float(row[NAMES[axis][0]])


def cut(rows: Sequence[dict[str, Any]], axis: str) -> Slice:
    """The cut along ``axis`` that shows most: every other axis is held where the most distinct trials are."""
    ok = [row for row in rows if row["status"] == "ok" and row["step_time_s"]]
    known = [c for row in rows if (c := value(row, "clock")) is not None]
    clocks = (min(known), max(known)) if known else (0.0, 0.0)
    distinct = {value(row, axis) for row in ok} - {None}
    if len(distinct) < 2:
        return Slice(axis, axis, (), (), _nothing(axis, distinct, bool(ok)), clocks)
    accum = _commonest([row["accum_steps"] for row in ok])
    pool = [row for row in ok if row["accum_steps"] == accum]
    first, second = [name for name in AXES if name != axis]
    # Lines by clock read best in the clock's own colours; fall back where that axis has a single value.
    line_axis = first if len({_group_value(row, first) for row in pool}) > 1 else second
    held_axis = second if line_axis == first else first
    held = _fullest(pool, axis, line_axis, held_axis)
    pool = [row for row in pool if _group_value(row, held_axis) == held]
    lines: dict[float | None, list[dict[str, Any]]] = {}
    for row in pool:
        if value(row, axis) is not None:
            lines.setdefault(_group_value(row, line_axis), []).append(row)
    full = sorted((k for k, v in lines.items() if len({value(r, axis) for r in v}) > 1), key=_order)
    chosen = spread_evenly(full, MOST_LINES)
    failed = [
        row for row in rows
        if row["status"] != "ok" and row["accum_steps"] == accum and value(row, axis) is not None
        and _group_value(row, held_axis) == held and _group_value(row, line_axis) in chosen
    ]  # fmt: skip
    if not chosen:
        return Slice(axis, line_axis, (), (), f"No two trials differ in {NAMES[axis][2]} alone.", clocks)
    intro = _intro(held_axis, held, accum, len(full), len(chosen), line_axis)
    drawn = tuple((k, tuple(lines[k])) for k in chosen)
    return Slice(axis, line_axis, drawn, tuple(failed), intro, clocks, held_axis, held, accum)


def _group_value(row: dict[str, Any], axis: str) -> float | None:
    """Value that makes trials one line; a clock counts as asked (not locked = None), not as reached."""
    asked: float | None = row[NAMES[axis][0]]
    return asked


def _order(item: float | None) -> float:
    return float("inf") if item is None else item


def _commonest(values: Sequence[int]) -> int:
    counts = Counter(values)
    return max(counts, key=lambda v: (counts[v], -v))


def _fullest(pool: Sequence[dict[str, Any]], axis: str, line_axis: str, held_axis: str) -> float | None:
    seen: dict[float | None, set[tuple[Any, Any]]] = {}
    for row in pool:
        seen.setdefault(_group_value(row, held_axis), set()).add((value(row, axis), _group_value(row, line_axis)))
    # Of equally full values: few GPUs, for one GPU is what people know; but the largest batch and the highest clock.
    sign = -1.0 if held_axis == "gpus" else 1.0
    return max(seen, key=lambda held: (len(seen[held]), sign * _order(held)))


def words(axis: str, item: float | None) -> str:
    """A value of an axis in words: ``8 GPUs``, ``batch 32``, ``1410 MHz``."""
    if axis == "clock":
        return "not locked" if item is None else f"{item:g} MHz"
    return f"batch {item:g}" if axis == "batch" else f"{item:g} GPU{'' if item == 1 else 's'}"


def _intro(held_axis: str, held: float | None, accum: int, full: int, shown: int, line_axis: str) -> str:
    parts = [words(held_axis, held) if held_axis != "clock" or held is not None else "clock not locked"]
    if accum > 1:
        parts.append(f"{accum} accumulation steps")
    what = {"clock": "clocks", "batch": "batch sizes", "gpus": "GPU counts"}[line_axis]
    some = f" {shown} of {full} {what} are drawn; the last table holds every trial." if shown < full else ""
    return f"Held fixed: {enumerate_words(parts)}.{some}"


def _nothing(axis: str, distinct: set[float | None], any_ok: bool) -> str:
    if not any_ok:
        return "No trial ended well, so there is nothing to draw."
    what = {"clock": "SM clock", "batch": "batch size", "gpus": "GPU count"}[axis]
    if not distinct:
        return f"The {what} was neither locked nor recorded. To see this axis: {NAMES[axis][3]}."
    return f"Only one {what} was measured ({words(axis, next(iter(distinct)))}). To see this axis: {NAMES[axis][3]}."
