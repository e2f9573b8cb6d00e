"""Cuts through a profile along one axis: which trials make a line, what is held fixed, said in words."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pfprofile.report.axes import NAMES, value, words
from pfprofile.report.parts import Columns, DataTable, enumerate_words, spread_evenly, table
from pfprofile.units import format_clock, format_duration, format_energy, format_power

MOST_LINES = 5
_POINT: Columns = {
    "n_gpus": ("GPUs", str),
    "n_nodes": ("nodes", str),
    "local_batch": ("batch", str),
    "requested_clock_mhz": ("requested clock", format_clock),
    "achieved_clock_mhz": ("achieved clock", format_clock),
    "power_limit_w": ("power limit", format_power),
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
        held: (axis, value) of every other axis.
        accum_steps: the same in all lines.
    """

    axis: str
    line_axis: str
    lines: tuple[tuple[float | None, tuple[dict[str, Any], ...]], ...]
    failed: tuple[dict[str, Any], ...]
    intro: str
    clocks_mhz: tuple[float, float]
    held: tuple[tuple[str, float | None], ...] = ()
    accum_steps: int = 1

    @property
    def title(self) -> str:
        """Heading of the cut."""
        return NAMES[self.axis].title

    def table(self) -> DataTable:
        """The trials that are drawn."""
        rows = [row for _, trials in self.lines for row in trials] + list(self.failed)
        return table(f"The numbers: {self.title[0].lower()}{self.title[1:]}", rows, _POINT)


def derived(row: dict[str, Any]) -> dict[str, Any]:
    """A trial with throughput (samples/s) and energy a sample (J), null where they cannot be known."""
    samples = row["n_gpus"] * row["local_batch"] * row["accum_steps"]
    time_s, power_w = row["step_time_s"], row["power_w"]
    rate = samples / time_s if time_s else None
    energy = row["n_gpus"] * power_w / rate if rate and power_w is not None else None
    return {**row, "throughput_per_s": rate, "energy_per_sample_j": energy}


def cut(rows: Sequence[dict[str, Any]], axis: str) -> Slice:
    """The cut along ``axis`` that shows most: every other axis is held where the most distinct trials are."""
    ok = [row for row in rows if row["status"] == "ok" and row["step_time_s"]]
    known = [c for row in rows if (c := value(row, "clock")) is not None]
    clocks = (min(known), max(known)) if known else (0.0, 0.0)
    distinct = {value(row, axis) for row in ok} - {None}
    if len(distinct) < 2:
        return Slice(axis, axis, (), (), _nothing(axis, distinct, bool(ok)), clocks)
    accum = _commonest([row["accum_steps"] for row in ok])
    pool = [row for row in ok if row["accum_steps"] == accum and value(row, axis) is not None]
    pool = pool if axis == "gpus" else _fewest_nodes(pool)
    others = [name for name in NAMES if name != axis]
    # Lines by clock read best, in the clock's own colours; fall back where that axis has a single value.
    line_axis = next((name for name in others if len({asked(row, name) for row in pool}) > 1), others[0])
    held = _fullest(pool, axis, line_axis, [name for name in others if name != line_axis])
    lines: dict[float | None, list[dict[str, Any]]] = {}
    for row in pool:
        if _is_held(row, held):
            lines.setdefault(asked(row, line_axis), []).append(row)
    full = sorted((k for k, v in lines.items() if len({value(r, axis) for r in v}) > 1), key=_order)
    if not full:
        return Slice(axis, line_axis, (), (), f"No two trials differ in {NAMES[axis].what} alone.", clocks)
    chosen = spread_evenly(full, MOST_LINES)
    failed = [
        row for row in rows
        if row["status"] != "ok" and row["accum_steps"] == accum and value(row, axis) is not None
        and _is_held(row, held) and asked(row, line_axis) in chosen
    ]  # fmt: skip
    several = {name for name, _ in held if len({asked(row, name) for row in ok}) > 1}
    intro = _intro(held, several, accum, len(full), len(chosen), line_axis)
    drawn = tuple((k, tuple(lines[k])) for k in chosen)
    return Slice(axis, line_axis, drawn, tuple(failed), intro, clocks, held, accum)


def asked(row: dict[str, Any], axis: str) -> float | None:
    """Value that makes trials one line; a clock counts as asked for (not locked = None), not as reached."""
    item: float | None = row[NAMES[axis].column]
    return item


def fewest_nodes(rows: Sequence[dict[str, Any]]) -> dict[int, int]:
    """The least number of nodes that each GPU count was measured on."""
    least: dict[int, int] = {}
    for row in rows:
        least[row["n_gpus"]] = min(row["n_nodes"], least.get(row["n_gpus"], row["n_nodes"]))
    return least


def _fewest_nodes(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    least = fewest_nodes(rows)
    return [row for row in rows if row["n_nodes"] == least[row["n_gpus"]]]


def _is_held(row: dict[str, Any], held: Sequence[tuple[str, float | None]]) -> bool:
    return all(asked(row, name) == item for name, item in held)


def _order(item: float | None) -> float:
    return float("inf") if item is None else item


def _commonest(values: Sequence[int]) -> int:
    counts = Counter(values)
    return max(counts, key=lambda v: (counts[v], -v))


def _fullest(
    pool: Sequence[dict[str, Any]], axis: str, line_axis: str, names: Sequence[str]
) -> tuple[tuple[str, float | None], ...]:
    seen: dict[tuple[float | None, ...], set[tuple[Any, Any]]] = {}
    for row in pool:
        key = tuple(asked(row, name) for name in names)
        seen.setdefault(key, set()).add((value(row, axis), asked(row, line_axis)))
    # Of equally full values: few GPUs, for one GPU is what people know; but the largest batch, clock and limit.
    sign = [-1.0 if name == "gpus" else 1.0 for name in names]
    best = max(seen, key=lambda k: (len(seen[k]), *(s * _order(v) for s, v in zip(sign, k, strict=True))))
    return tuple(zip(names, best, strict=True))


def _intro(
    held: Sequence[tuple[str, float | None]], several: set[str], accum: int, full: int, shown: int, line_axis: str
) -> str:
    # A limit that never changes, or is unknown, is not worth a word; what was never locked is.
    parts = [words(n, v) for n, v in held if n in several or (n != "limit" and (n != "clock" or v is None))]
    if accum > 1:
        parts.append(f"{accum} accumulation steps")
    some = (
        f" {shown} of {full} {NAMES[line_axis].what}s are drawn; the last table holds every trial."
        if shown < full
        else ""
    )
    return f"Held fixed: {enumerate_words(parts)}.{some}" if parts else some.strip()


def _nothing(axis: str, distinct: set[float | None], any_ok: bool) -> str:
    if not any_ok:
        return "No trial ended well with a step time, so there is nothing to draw."
    name = NAMES[axis]
    if not distinct:
        return f"The {name.what} was neither locked nor recorded. To see this axis: {name.how}."
    return f"Only one {name.what} was measured ({words(axis, next(iter(distinct)))}). To see this axis: {name.how}."
