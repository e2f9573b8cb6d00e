"""Points, and the clocks that `--freqs` asks for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pfprofile.errors import UsageError
from pfprofile.units import format_clock, parse_clock

#: Two clocks this close are the same request: lists step 7.5 or 15 MHz and are printed truncated.
CLOCK_TOLERANCE_MHZ = 5.0
#: `--freqs auto` measures at most this many clocks.
AUTO_CLOCKS = 6

Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Point:
    """One configuration to measure; ``sm_clock_mhz`` None = not locked."""

    n_gpus: int
    local_batch: int
    sm_clock_mhz: float | None = None
    accum_steps: int = 1
    n_nodes: int = 1

    @classmethod
    def of_row(cls, row: Mapping[str, Any]) -> Point:
        """The point that a profile's row measured."""
        return cls(row["n_gpus"], row["local_batch"], row["requested_clock_mhz"], row["accum_steps"], row["n_nodes"])

    @property
    def worker_set(self) -> tuple[int, int, int]:
        """What one worker set serves: everything but the clock."""
        return self.n_gpus, self.local_batch, self.accum_steps

    def __str__(self) -> str:
        accum = f" × {self.accum_steps} passes" if self.accum_steps > 1 else ""
        return f"{self.n_gpus} GPU × batch {self.local_batch}{accum} @ {format_clock(self.sm_clock_mhz)}"


def spread(clocks: Sequence[float], count: int = AUTO_CLOCKS) -> list[float]:
    """At most ``count`` clocks of a list, evenly over its range: always the least, a middle one and the greatest."""
    ordered = sorted(set(clocks))
    if len(ordered) <= count:
        return ordered
    low, high = ordered[0], ordered[-1]
    targets = [low + (high - low) * i / (count - 1) for i in range(count)]
    middle = min(range(count), key=lambda i: abs(targets[i] - (low + high) / 2))
    targets[middle] = (low + high) / 2
    return sorted({min(ordered, key=lambda c: abs(c - t)) for t in targets})


def nearest_clock(clock_mhz: float, supported: Sequence[float]) -> float:
    """The supported clock that a person means.

    Raises:
        UsageError: there is none within `CLOCK_TOLERANCE_MHZ`; the maximum or the nearest is named.
    """
    nearest = min(supported, key=lambda c: abs(c - clock_mhz))
    if abs(nearest - clock_mhz) <= CLOCK_TOLERANCE_MHZ:
        return nearest
    if clock_mhz > max(supported):
        raise UsageError(
            f"--freqs: {clock_mhz:g} MHz is above the maximum of {max(supported):g} MHz",
            f"the nearest supported clock is {nearest:g} MHz",
        )
    raise UsageError(f"--freqs: {clock_mhz:g} MHz is not supported", f"the nearest supported clock is {nearest:g} MHz")


def choose_clocks(text: str, supported: Sequence[float]) -> list[float | None]:
    """The clocks that ``auto|all|default|LIST|LO:HI:STEP`` means on a device; [None] = not locked.

    Raises:
        UsageError: not such a text, a clock the device does not have, or none in a range.
    """
    word = text.strip().lower()
    if word == "default":
        return [None]
    if word in ("auto", "all"):
        if not supported:
            return [None]
        return [*(spread(supported) if word == "auto" else sorted(set(supported)))]
    if not supported:
        raise UsageError(f"--freqs {text}: this device offers no clocks to choose from", "use --freqs default")
    if ":" in word:
        return list(clocks_in_range(text, supported))
    return list(dict.fromkeys(nearest_clock(parse_clock(part, what="--freqs"), supported) for part in word.split(",")))


def clocks_in_range(text: str, supported: Sequence[float]) -> list[float]:
    """The supported clocks nearest to LO, LO + STEP, …, HI. Raises UsageError: no range, or nothing lies there."""
    parts = [parse_clock(part, what="--freqs") for part in text.split(":")]
    if len(parts) != 3 or parts[0] > parts[1] or parts[2] <= 0:
        raise UsageError(f"--freqs {text!r} is not a range", "write LO:HI:STEP, for example 600:1410:90")
    low, high, step = parts
    wanted = [low + i * step for i in range(int((high - low) / step + 1e-9) + 1)]
    inside = [c for c in supported if low - CLOCK_TOLERANCE_MHZ <= c <= high + CLOCK_TOLERANCE_MHZ]
    if not inside:
        raise UsageError(
            f"--freqs {text}: no supported clock lies there", f"they span {supported[0]:g}:{supported[-1]:g}"
        )
    return sorted({min(inside, key=lambda c: abs(c - w)) for w in wanted})
