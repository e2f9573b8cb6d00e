"""`import nvidia-smi`: the CSV of ``nvidia-smi --query-gpu=... --format=csv``, old and new names, any units."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from pfprofile.errors import InputError
from pfprofile.profile.importers import cells
from pfprofile.profile.importers.base import OF_LOGS, Imported, ImportOptions
from pfprofile.profile.importers.readings import GpuFacts, Log, Reading
from pfprofile.profile.importers.text import read_lines
from pfprofile.profile.importers.trial import trial_of

#: what we read ← the names that drivers have given it, the best first
NAMES: dict[str, tuple[str, ...]] = {
    "timestamp": ("timestamp",),
    "index": ("index",),
    "uuid": ("uuid", "gpu_uuid"),
    "bus_id": ("pci.bus_id", "gpu_bus_id"),
    "name": ("name", "gpu_name"),
    "host": ("hostname",),
    "driver_version": ("driver_version",),
    "power": ("power.draw.instant", "power.draw", "power.draw.average"),
    "clock": ("clocks.current.sm", "clocks.sm", "clocks.current.graphics", "clocks.gr", "clocks.current.gr"),
    "temperature": ("temperature.gpu",),
    "memory": ("memory.used",),
    "limit": ("enforced.power.limit", "power.limit"),
    "mig": ("mig.mode.current",),
    "reasons": ("clocks_event_reasons.active", "clocks_throttle_reasons.active"),
}
#: of these, those that a GPU keeps while it is logged
_OF_THE_GPU = ("index", "uuid", "bus_id", "name", "host", "driver_version", "limit", "mig")
#: single reasons, by the end of their names
_REASONS = {"sw_power_cap": "power", "hw_thermal_slowdown": "thermal", "sw_thermal_slowdown": "thermal",
            "hw_slowdown": "hardware", "hw_power_brake_slowdown": "hardware"}  # fmt: skip
#: bits of the reasons' mask (NVML): what they mean to us
BITS = ((0x4, "power"), (0x20, "thermal"), (0x40, "thermal"), (0x8, "hardware"), (0x80, "hardware"))
#: fields that make a line a header, beside those above
_OTHER = (
    "count",
    "pstate",
    "serial",
    "utilization.gpu",
    "utilization.memory",
    "memory.total",
    "memory.free",
    "fan.speed",
)
_KNOWN = frozenset(name for names in NAMES.values() for name in names) | frozenset(_OTHER)
_FIELD = re.compile(r"([A-Za-z][\w.]*)(?:\s*\[([^\]]*)\])?")
HINT = (
    "log with: nvidia-smi --query-gpu=timestamp,index,uuid,name,power.draw.instant,clocks.sm,temperature.gpu,"
    "memory.used --format=csv -lms 100"
)


class NvidiaSmi:
    """nvidia-smi's query CSV."""

    name = "nvidia-smi"
    summary = "CSV of nvidia-smi --query-gpu"
    takes = OF_LOGS | {"columns"}

    def read(self, paths: Sequence[Path], options: ImportOptions) -> Imported:
        """See `Importer.read`; several files are parts of one run."""
        log = Log()
        for path in paths:
            _read(path, options.columns, log)
        return trial_of(log, paths, options, HINT)


def _split(text: str) -> list[str]:
    return [cell.strip().strip('"').strip() for cell in text.split("," if "," in text else ";")]


def _header(row: list[str]) -> list[tuple[str, str | None]] | None:
    """(field, unit) of each column if the line is a header, else None."""
    fields: list[tuple[str, str | None]] = []
    for cell in row:  # a line of data is left at its first cell
        match = _FIELD.fullmatch(cell)
        if match is None:
            return None
        fields.append((match[1], match[2]))
    return fields if any(name in _KNOWN for name, _ in fields) else None


def _read(path: Path, columns: str | None, log: Log) -> None:
    header: list[tuple[str, str | None]] | None = None
    header_text, told = "", False
    if columns is not None:
        header, header_text, told = _header(_split(columns)), columns, True
        if header is None:
            raise InputError(
                f"--columns {columns!r} names no field of nvidia-smi", f"known are {', '.join(sorted(_KNOWN))}"
            )
    layout = _Layout(header or [])
    for number, text in read_lines(path, blanks=True):
        if not text.strip(" \t\0"):
            log.skip(path, number, "blank")
            continue
        row = _split(text)
        fields = _header(row)
        if fields is not None:
            if header is not None and fields != header and not told:
                raise InputError(
                    f"{path}: line {number} has another header: {text.strip()!r}, the file began with {header_text!r}",
                    "split the file there and import the parts one by one",
                )
            if header is not None:
                log.skip(path, number, "a repeated header", text)
            header, header_text, told = fields, text.strip(), False
            layout = _Layout(header)
        elif header is None:
            if _looks_like_data(row):
                raise InputError(
                    f"{path}: line {number}: data without a header: {text.strip()[:80]!r}",
                    "name its columns as they were asked for: --columns timestamp,index,power.draw,clocks.sm",
                )
            if len(row) > 1 and all(_FIELD.fullmatch(cell) for cell in row):
                raise InputError(f"{path}: line {number}: a header, but not of nvidia-smi: {text.strip()[:80]!r}",
                                 "another tool's? see pfprofile import --help; any CSV: import table")  # fmt: skip
            log.skip(path, number, "no header and no reading", text)
        elif len(row) != len(header):
            log.skip(path, number, f"{len(row)} fields, expected {len(header)}: {text.strip()[:60]!r}", text)
        else:
            _take(path, number, row, layout, log)
    if header is None:
        raise InputError(f"{path}: no header of nvidia-smi --query-gpu found", HINT)
    if not any(name in NAMES["power"] for name, _ in header):
        log.notices.append(f"{path}: no column power.draw: power and energy stay unknown")


def _looks_like_data(row: list[str]) -> bool:
    return len(row) > 1 and sum(cells.timestamp(c) is not None or c[:1].isdigit() for c in row) * 2 > len(row)


class _Layout:
    """Where a header has what we read; made once a header, asked for every line."""

    def __init__(self, header: list[tuple[str, str | None]]) -> None:
        at = {name: (i, unit) for i, (name, unit) in enumerate(header)}
        self._places = {what: [at[name] for name in names if name in at] for what, names in NAMES.items()}
        self._reasons = [
            (at[prefix + end][0], limit)
            for end, limit in _REASONS.items()
            for prefix in ("clocks_event_reasons.", "clocks_throttle_reasons.")
            if prefix + end in at
        ]
        self._told = [i for what in _OF_THE_GPU for i, _ in self._places[what]]
        #: cells that describe a GPU → the facts they tell (a log repeats them on every line)
        self._facts: dict[tuple[str, ...], GpuFacts] = {}

    def text(self, row: list[str], what: str) -> str | None:
        """The cell of the first name that has a value."""
        return next((row[i] for i, _ in self._places[what] if not cells.is_unknown(row[i])), None)

    def number(self, row: list[str], what: str, factors: dict[str, float]) -> float | None:
        """The number of the first name that has one, in the inner unit."""
        for i, unit in self._places[what]:
            if (value := cells.number(row[i], factors, unit)) is not None:
                return value
        return None

    def has(self, what: str) -> bool:
        """Whether the file has such a column."""
        return bool(self._places[what])

    def limits(self, row: list[str]) -> frozenset[str] | None:
        """What limits the clock; None where the file has no such column, or it holds nothing."""
        mask = self.text(row, "reasons")
        if mask is not None and re.fullmatch(r"0x[0-9A-Fa-f]{1,16}", mask):
            bits = int(mask, 16)
            return frozenset(name for bit, name in BITS if bits & bit)
        told = [(row[i], limit) for i, limit in self._reasons if row[i] in ("Active", "Not Active")]
        return frozenset(limit for cell, limit in told if cell == "Active") if told else None

    def facts(self, row: list[str]) -> GpuFacts:
        """What the line says of its GPU."""
        key = tuple(row[i] for i in self._told)
        if (known := self._facts.get(key)) is not None:
            return known
        uuid, mig = self.text(row, "uuid"), self.text(row, "mig")
        sliced = uuid is not None and uuid.upper().startswith("MIG")
        facts = GpuFacts(
            index=self.text(row, "index"),
            uuid=uuid,
            bus_id=self.text(row, "bus_id"),
            name=self.text(row, "name"),
            host=self.text(row, "host"),
            driver_version=self.text(row, "driver_version"),
            power_limit_w=self.number(row, "limit", cells.POWER),
            mig=True if sliced else None if mig is None else mig.lower() == "enabled",
        )
        self._facts[key] = facts
        return facts


def _take(path: Path, number: int, row: list[str], layout: _Layout, log: Log) -> None:
    when = layout.text(row, "timestamp")
    time_s = cells.timestamp(when) if when is not None else None
    if layout.has("timestamp") and time_s is None:
        log.skip(path, number, f"{(when or '')[:40]!r} is no timestamp", when or "")
        return
    facts = layout.facts(row)
    power_w = layout.number(row, "power", cells.POWER)
    if facts.mig:
        note = f"{path}: MIG is on: the power readings are the whole GPU's, a slice has none of its own"
        if note not in log.notices:
            log.notices.append(note)
        if (facts.uuid or "").upper().startswith("MIG"):
            power_w = None
    log.add(
        Reading(
            line=number,
            time_s=time_s,
            power_w=power_w,
            sm_clock_mhz=layout.number(row, "clock", cells.CLOCK),
            temperature_c=layout.number(row, "temperature", cells.TEMPERATURE),
            memory_bytes=layout.number(row, "memory", cells.MEMORY),
            limits=layout.limits(row),
        ),
        facts,
    )
