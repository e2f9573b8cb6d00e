"""The axes that a workload is profiled along: how each is called, and where a trial sits on it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Axis:
    """One axis.

    Attributes:
        column: of the profile.
        title: heading of the pictures along it.
        label: below them, with unit.
        what: one value of it is called so.
        how: what to do to measure more of it.
    """

    column: str
    title: str
    label: str
    what: str
    how: str


#: in the order in which they are shown, and in which lines are told apart by them
NAMES: dict[str, Axis] = {
    "clock": Axis("requested_clock_mhz", "Against SM clock", "SM clock (MHz)", "SM clock", "sweep --freqs auto"),
    "batch": Axis(
        "local_batch", "Against batch size", "batch per GPU (samples)", "batch size", "sweep --batch-sizes auto"
    ),
    "gpus": Axis("n_gpus", "Against GPU count", "GPUs", "GPU count", "sweep --gpus 1,2,4"),
    "limit": Axis(
        "power_limit_w", "Against power limit", "power limit (W)", "power limit", "profile under other power limits"
    ),
}
#: axes that are shown even where they have a single value, to say so
ALWAYS = ("clock", "batch", "gpus")


def value(row: dict[str, Any], axis: str) -> float | None:
    """Where a trial sits on an axis: the clock it was asked for, or that it ran at where none was."""
    found: float | None = row[NAMES[axis].column]
    if axis == "clock" and found is None:
        found = row["achieved_clock_mhz"]
    return None if found is None else float(found)


def words(axis: str, item: float | None) -> str:
    """A value of an axis in words: ``8 GPUs``, ``batch 32``, ``1410 MHz``."""
    if axis == "clock":
        return "clock not locked" if item is None else f"{item:g} MHz"
    if axis == "limit":
        return "power limit unknown" if item is None else f"{item:g} W"
    return f"batch {item:g}" if axis == "batch" else f"{item:g} GPU{'' if item == 1 else 's'}"


def short_words(axis: str, item: float | None) -> str:
    """The same beside the end of a line, where there is little room."""
    return "unlocked" if axis == "clock" and item is None else words(axis, item)


def shown_axes(rows: list[dict[str, Any]]) -> list[str]:
    """Axes worth a heading for these trials: the limit only where it varies."""
    limits = {row["power_limit_w"] for row in rows} - {None}
    return [axis for axis in NAMES if axis in ALWAYS or len(limits) > 1]
