"""What a command of one's own may name in braces: one list, so that what was swept can be scheduled as it is."""

from __future__ import annotations

import string
from collections.abc import Collection

from pfprofile.errors import nearest

#: known at every point of a sweep; ``clock`` and ``sm_clock_mhz`` are one: the locked SM clock, MHz, or "default"
OF_A_POINT = (
    "n_gpus", "n_nodes", "gpus_per_node", "local_batch", "accum_steps", "global_batch", "clock", "sm_clock_mhz",
)  # fmt: skip
#: and in a schedule: optimizer steps of this stretch, done before it, done after it
OF_A_STRETCH = (*OF_A_POINT, "steps", "first_step", "last_step")
BRACES = "write {{ and }} for braces of its own"


def used_in(text: str) -> set[str]:
    """The names in braces. Raises ValueError: a brace is open."""
    return {name for _, name, _, _ in string.Formatter().parse(text) if name is not None}


def trouble(names: Collection[str], known: Collection[str]) -> str | None:
    """What is wrong with the first unknown name, with the nearest known one; None = nothing."""
    unknown = sorted(set(names) - set(known))
    return f"unknown placeholder {{{unknown[0]}}}{nearest(unknown[0], known)}" if unknown else None


def clock_word(clock_mhz: float | None) -> str:
    """``1410``, or ``default`` where the clock is not locked."""
    return "default" if clock_mhz is None else f"{clock_mhz:g}"
