"""What a log of sensors holds, whichever tool wrote it: readings by GPU, facts of each GPU, and what was not read."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path

from pfprofile.errors import InputError

#: line numbers named in a notice
SHOWN_LINES = 5


@dataclass(slots=True)
class Reading:
    """One look at one GPU; None = not told.

    Attributes:
        line: where it stands in its file.
        time_s: seconds since 1970 (or since the log's start, where it has no timestamps).
        energy_j: an energy counter's state.
        limits: what the driver named as limiting the clock; None = it was not asked.
    """

    line: int
    gpu: str = ""
    time_s: float | None = None
    power_w: float | None = None
    energy_j: float | None = None
    sm_clock_mhz: float | None = None
    temperature_c: float | None = None
    memory_bytes: float | None = None
    limits: frozenset[str] | None = None


@dataclass(slots=True)
class GpuFacts:
    """What a log says of a GPU beside its readings; None = not told."""

    index: str | None = None
    uuid: str | None = None
    bus_id: str | None = None
    name: str | None = None
    host: str | None = None
    driver_version: str | None = None
    power_limit_w: float | None = None
    mig: bool | None = None

    def learn(self, other: GpuFacts) -> None:
        """Take over what was not known so far; of power limits the lowest counts."""
        for f in fields(self):
            new = getattr(other, f.name)
            if getattr(self, f.name) is None:
                setattr(self, f.name, new)
        if self.power_limit_w is not None and other.power_limit_w is not None:
            self.power_limit_w = min(self.power_limit_w, other.power_limit_w)


@dataclass(slots=True)
class Log:
    """The readings of one or several files that belong to one run.

    Attributes:
        facts: by GPU id.
        skipped: (file, line, why) of lines that could not be read.
        marks: (number of readings before it, text) of lines that are no readings: markers a person may name.
        interval_hint: the tool's own default interval, to be named where timestamps are missing.
    """

    readings: list[Reading] = field(default_factory=list)
    facts: dict[str, GpuFacts] = field(default_factory=dict)
    skipped: list[tuple[Path, int, str]] = field(default_factory=list)
    marks: list[tuple[int, str]] = field(default_factory=list)
    notices: list[str] = field(default_factory=list)
    interval_hint: str = "1s"
    _last: dict[str, GpuFacts] = field(default_factory=dict)

    def add(self, reading: Reading, facts: GpuFacts) -> None:
        """Keep a reading under its GPU's id: UUID, else bus address, else index (with its host)."""
        place = facts.index if facts.host is None or facts.index is None else f"{facts.host}:{facts.index}"
        reading.gpu = facts.uuid or facts.bus_id or place or ""
        self.readings.append(reading)
        if self._last.get(reading.gpu) is not facts:
            self.facts.setdefault(reading.gpu, GpuFacts()).learn(facts)
            self._last[reading.gpu] = facts

    def skip(self, path: Path, line: int, why: str, text: str = "") -> None:
        """Count a line that is no reading; its text may be a marker."""
        self.skipped.append((path, line, why))
        self.marks.append((len(self.readings), text.strip()))


def skipped_notices(skipped: Sequence[tuple[Path, int, str]]) -> Iterator[str]:
    """One line a file: how many lines were not read, which, and why the first."""
    by_file: dict[Path, list[tuple[int, str]]] = {}
    for path, line, why in skipped:
        by_file.setdefault(path, []).append((line, why))
    for path, items in by_file.items():
        shown = ", ".join(str(line) for line, _ in items[:SHOWN_LINES]) + (" ..." if len(items) > SHOWN_LINES else "")
        which, verb = ("line", "was") if len(items) == 1 else ("lines", "were")
        yield f"{path}: {len(items)} {which} {verb} not read ({which} {shown}): {items[0][1]}"


def nothing_left(paths: Sequence[Path], skipped: Sequence[tuple[Path, int, str]], what: str, hint: str) -> InputError:
    """The error for files in which nothing could be read."""
    cause = (
        f"; {len(skipped)} lines were not read, the first is line {skipped[0][1]}: {skipped[0][2]}" if skipped else ""
    )
    return InputError(f"{paths[0]}: no {what}{cause}", hint)
