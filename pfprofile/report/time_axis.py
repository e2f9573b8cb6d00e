"""Time axes in the unit that reads best."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@dataclass(frozen=True, slots=True)
class TimeScale:
    """A unit of time: its name and its length in s."""

    name: str
    unit_s: float

    @classmethod
    def of(cls, longest_s: float) -> TimeScale:
        """The unit for a span."""
        for name, unit_s, least in (("days", 86400.0, 4 * 86400.0), ("h", 3600.0, 3 * 3600.0), ("min", 60.0, 300.0)):
            if longest_s >= least:
                return cls(name, unit_s)
        return cls("s", 1.0)


def time_ticks(axes: Axes, scale: TimeScale) -> None:
    """Round ticks and the unit on a time axis (values already divided by the unit)."""
    from matplotlib.ticker import MaxNLocator

    steps = [1, 1.5, 3, 6, 10] if scale.name in ("min", "s") else [1, 2, 2.4, 4, 6, 10]
    axes.xaxis.set_major_locator(MaxNLocator(nbins=9, steps=steps))
    axes.set_xlabel(f"time ({scale.name})")
