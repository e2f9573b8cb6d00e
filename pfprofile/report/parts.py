"""What a report is made of: sections of groups of pictures, each group with its numbers as a table."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from unicodedata import east_asian_width

from pfprofile.report.time_axis import TimeScale

#: rows of a table that are written into a page; a longer one says how many it leaves out
ROW_LIMIT = 400


@dataclass(frozen=True, slots=True)
class DataTable:
    """Numbers to read without the picture.

    Attributes:
        columns: (heading, is it numeric) of each column.
        rows: cells as text, at most `ROW_LIMIT`.
        omitted: rows left out.
    """

    caption: str
    columns: tuple[tuple[str, bool], ...]
    rows: tuple[tuple[str, ...], ...]
    omitted: int = 0


@dataclass(frozen=True, slots=True)
class Panel:
    """One picture: its heading, what it shows in words, and the SVG; without an SVG the words stand alone."""

    title: str
    description: str
    svg: str = ""
    wide: bool = False


@dataclass(frozen=True, slots=True)
class Group:
    """Pictures that belong together, what is held fixed in them, and their numbers."""

    title: str
    intro: str = ""
    panels: tuple[Panel, ...] = ()
    tables: tuple[DataTable, ...] = ()
    open_tables: bool = False
    key: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Section:
    """One artifact.

    Attributes:
        kind: profile, model, schedule or comparison.
        sources: measured, synthetic and/or imported; empty = the file does not say.
        facts: (name, value) pairs under the heading.
    """

    kind: str
    heading: str
    file_name: str
    sources: tuple[str, ...]
    facts: tuple[tuple[str, str], ...] = ()
    notes: tuple[str, ...] = ()
    groups: tuple[Group, ...] = field(default=())


#: a column: key in the row -> (heading, value to text)
Columns = Mapping[str, tuple[str, Callable[[Any], str]]]


def table(caption: str, rows: Iterable[Mapping[str, Any]], columns: Columns, *, missing: str = "unknown") -> DataTable:
    """Rows as text, at most `ROW_LIMIT`; null and NaN show as ``missing``, columns without any value are left out."""
    rows = list(rows)
    shown = [key for key in columns if any(not is_unknown(row.get(key)) for row in rows)] or list(columns)
    numeric = {k: all(isinstance(r.get(k), (int, float, type(None))) for r in rows) for k in shown}
    cells = tuple(
        tuple(missing if is_unknown(row.get(key)) else columns[key][1](row[key]) for key in shown)
        for row in rows[:ROW_LIMIT]
    )
    return DataTable(caption, tuple((columns[k][0], numeric[k]) for k in shown), cells, max(0, len(rows) - ROW_LIMIT))


def in_one_unit(columns: Columns, rows: Iterable[Mapping[str, Any]], keys: Sequence[str]) -> Columns:
    """The columns with these durations in the one unit that suits the longest, so that they compare at a glance."""
    longest = max((abs(row[key]) for row in rows for key in keys if not is_unknown(row.get(key))), default=0.0)
    scale = TimeScale.of(longest)
    changed = {key: (f"{columns[key][0]} ({scale.name})", lambda v: f"{v / scale.unit_s:.2f}") for key in keys}
    return {key: changed.get(key, column) for key, column in columns.items()}


def is_unknown(value: Any) -> bool:
    """Null or NaN."""
    return value is None or (isinstance(value, float) and value != value)


def spread_evenly(values: Sequence[Any], most: int) -> list[Any]:
    """At most ``most`` of the values, both ends among them."""
    if len(values) <= most:
        return list(values)
    step = (len(values) - 1) / (most - 1)
    return [values[round(i * step)] for i in range(most)]


def columns_of(text: str) -> int:
    """Width in columns of a terminal font; East Asian wide characters take two."""
    return sum(2 if east_asian_width(sign) in "WF" else 1 for sign in text)


def shorten(text: str, most: int) -> str:
    """At most ``most`` columns: the middle goes, since names tend to differ at their ends."""
    if columns_of(text) <= most:
        return text
    head = tail = ""
    for i in range(len(text)):
        longer_head, longer_tail = text[: (i + 2) // 2], text[len(text) - (i + 1) // 2 :]
        if columns_of(longer_head) + columns_of(longer_tail) + 1 > most:
            break
        head, tail = longer_head, longer_tail
    return f"{head}…{tail}"


def enumerate_words(words: Sequence[str]) -> str:
    """``a``, ``a and b``, ``a, b and c``."""
    return " and ".join([", ".join(words[:-1]), words[-1]]) if len(words) > 1 else "".join(words)
