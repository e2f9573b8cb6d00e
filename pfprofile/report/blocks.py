"""Bars of block characters for a terminal: one row a value, one column a quantity, the numbers beside the bars."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

#: eighths of a character cell, from none to whole
_EIGHTHS = " ▏▎▍▌▋▊▉█"
#: what the characters above need of a terminal's encoding; elsewhere a bar is made of '#'
BLOCKS = _EIGHTHS.strip()


@dataclass(frozen=True, slots=True)
class Bars:
    """One column of bars.

    Attributes:
        heading: above it.
        values: one a row; None = unknown, drawn as ``-``.
        show: value → text beside its bar.
        best: which end is marked: min, max, or None.
    """

    heading: str
    values: Sequence[float | None]
    show: Callable[[float], str]
    best: Callable[[Sequence[float]], float] | None = None


def bar_chart(heading: str, labels: Sequence[str], columns: Sequence[Bars], width: int, *, blocks: bool) -> list[str]:
    """Lines of a chart, none wider than ``width`` (at least 40) characters.

    All bars begin at zero, so that lengths compare as the values do.

    Args:
        heading: above the labels.
        labels: one a row.
        columns: as many values as labels each.
        width: of the terminal.
        blocks: whether it can show block characters.
    """
    side = max(len(text) for text in (heading, *labels))
    texts = [[_text(column, value) for value in column.values] for column in columns]
    widths = [max(map(len, column), default=0) for column in texts]
    room = max(width, 40) - side - sum(w + 3 for w in widths)
    longest = max(4, room // max(1, len(columns)))
    spans = [longest + 1 + w for w in widths]
    head = [column.heading[:span].ljust(span) for column, span in zip(columns, spans, strict=True)]
    lines = ["  ".join([heading.rjust(side), *head]).rstrip()]
    for i, label in enumerate(labels):
        cells = [label.rjust(side)]
        for column, shown, span in zip(columns, texts, spans, strict=True):
            bar = _bar(column.values[i], column.values, longest, blocks)
            cells.append((f"{bar} {shown[i]}" if bar else shown[i]).ljust(span))
        lines.append("  ".join(cells).rstrip())
    return lines


def _text(column: Bars, value: float | None) -> str:
    if value is None or not math.isfinite(value):
        return "-"
    known = [v for v in column.values if v is not None and math.isfinite(v)]
    best = column.best is not None and len(set(known)) > 1 and value == column.best(known)
    return column.show(value) + (" *" if best else "")


def _bar(value: float | None, values: Sequence[float | None], longest: int, blocks: bool) -> str:
    known = [v for v in values if v is not None and math.isfinite(v)]
    if value is None or not math.isfinite(value) or not known or max(known) <= 0 or value <= 0:
        return ""
    cells = value / max(known) * longest
    if not blocks:
        return "#" * max(1, round(cells))
    whole, eighths = divmod(max(1, round(cells * 8)), 8)
    return "█" * whole + _EIGHTHS[eighths].strip()


def can_show_blocks(encoding: str | None) -> bool:
    """Whether text of this encoding can carry block characters."""
    try:
        BLOCKS.encode(encoding or "ascii")
    except (UnicodeEncodeError, LookupError):
        return False
    return True
