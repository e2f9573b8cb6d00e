"""CSV-like files read line by line: a damaged line costs that line, a second header is noticed."""

from __future__ import annotations

import csv
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from pfprofile.errors import InputError, UsageError, nearest
from pfprofile.profile.importers.text import read_lines


@dataclass(frozen=True, slots=True)
class Row:
    """One line by column name."""

    line: int
    cells: dict[str, str]

    def __getitem__(self, name: str) -> str:
        return self.cells.get(name, "")


@dataclass(frozen=True, slots=True)
class Delimited:
    """The rows of one file and what was not read."""

    header: tuple[str, ...]
    rows: list[Row]
    skipped: list[tuple[Path, int, str]]


def read_delimited(path: Path, delimiter: str, is_header: Callable[[Sequence[str]], bool], what: str) -> Delimited:
    """Read a file whose header is told by its names.

    Args:
        is_header: whether these cells are the format's header.
        what: the format in words, for errors.

    Raises:
        InputError: no header, or two different ones in one file.
    """
    header: tuple[str, ...] | None = None
    rows: list[Row] = []
    skipped: list[tuple[Path, int, str]] = []
    for number, text in read_lines(path):
        found = _cells(text, delimiter)
        if found is not None and is_header(found):
            if header is not None and tuple(found) != header:
                raise InputError(
                    f"{path}: line {number} has another header: {text.strip()[:200]!r}, the file began with "
                    f"{delimiter.join(header)[:200]!r}",
                    "split the file there and import the parts one by one",
                )
            if header is not None:
                skipped.append((path, number, "a repeated header"))
            header = tuple(found)
        elif header is None:
            skipped.append((path, number, f"before the header: {text.strip()[:60]!r}"))
        elif found is None or len(found) != len(header):
            count = "unreadable" if found is None else f"{len(found)} fields"
            skipped.append((path, number, f"{count}, expected {len(header)}: {text.strip()[:60]!r}"))
        else:
            rows.append(Row(number, dict(zip(header, found, strict=True))))
    if header is None:
        raise InputError(f"{path}: no header of {what} found")
    return Delimited(header, rows, skipped)


def _cells(text: str, delimiter: str) -> list[str] | None:
    try:
        row = next(csv.reader([text], delimiter=delimiter))
    except (csv.Error, StopIteration):
        return None
    return [cell.strip() for cell in row]


def matching(rows: list[Row], conditions: dict[str, str], header: Sequence[str], path: Path) -> list[Row]:
    """The rows in which every named column equals the given text (`--where`).

    Raises:
        UsageError: an unknown column.
        InputError: no row is left.
    """
    for column, wanted in conditions.items():
        if column not in header:
            raise UsageError(f"--where: {path} has no column {column!r}{nearest(column, header)}")
        rows = [row for row in rows if row[column] == wanted]
        if not rows:
            raise InputError(f"{path}: no row has {column} = {wanted}")
    return rows
