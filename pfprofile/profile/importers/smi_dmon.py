"""`import nvidia-smi-dmon`: the columns of ``nvidia-smi dmon``, with or without date and time."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from pfprofile.errors import InputError
from pfprofile.profile.importers import cells
from pfprofile.profile.importers.base import OF_LOGS, Imported, ImportOptions
from pfprofile.profile.importers.readings import GpuFacts, Log, Reading
from pfprofile.profile.importers.text import read_lines
from pfprofile.profile.importers.trial import trial_of

HINT = "log with: nvidia-smi dmon -s pucm -o DT"
_KNOWN = ("gpu", "pwr", "gtemp", "sm", "pclk", "mclk", "fb")
_UNITS = {"idx", "w", "c", "%", "mhz", "mb", "yyyymmdd", "hh:mm:ss", "flags", "bool"}


class NvidiaSmiDmon:
    """nvidia-smi dmon."""

    name = "nvidia-smi-dmon"
    summary = "output of nvidia-smi dmon"
    takes = OF_LOGS

    def read(self, paths: Sequence[Path], options: ImportOptions) -> Imported:
        """See `Importer.read`; several files are parts of one run."""
        log = Log()
        for path in paths:
            _read(path, log)
        return trial_of(log, paths, options, HINT)


def _words(text: str) -> list[str]:
    body = text.strip().removeprefix("#")
    return [w.strip() for w in body.split(",")] if "," in body else body.split()


def _read(path: Path, log: Log) -> None:
    header: list[str] | None = None
    clock = _Midnight()
    for number, text in read_lines(path):
        words = _words(text)
        lower = [w.lower() for w in words]
        if lower and all(w in _UNITS for w in lower):
            continue  # the line of units below a header
        if "gpu" in lower and any(w in _KNOWN[1:] for w in lower):
            if header is not None and lower != header:
                raise InputError(
                    f"{path}: line {number} has another header: {' '.join(lower)!r}, the file began with "
                    f"{' '.join(header)!r}",
                    "split the file there and import the parts one by one",
                )
            header = lower  # dmon repeats its header every few lines
        elif header is None or len(words) != len(header) or not words[header.index("gpu")].isdigit():
            log.skip(path, number, f"no reading: {text.strip()[:60]!r}", text)
        else:
            _take(path, number, dict(zip(header, words, strict=True)), log, clock)
    if header is None:
        raise InputError(f"{path}: no header of nvidia-smi dmon found (# gpu pwr ...)", HINT)
    if "pwr" not in header:
        log.notices.append(f"{path}: no column pwr: power and energy stay unknown; {HINT}")


class _Midnight:
    """Times of day without a date, carried over midnight."""

    def __init__(self) -> None:
        self.last_s, self.day = 0.0, 0

    def seconds(self, second: float) -> float:
        if second < self.last_s - 43200:
            self.day += 1
        self.last_s = second
        return self.day * 86400 + second


def _take(path: Path, number: int, row: dict[str, str], log: Log, clock: _Midnight) -> None:
    date, time = row.get("date"), row.get("time")
    time_s = None
    if date is not None and time is not None:
        time_s = cells.timestamp(f"{date} {time}")
    elif time is not None and (second := cells.time_of_day(time)) is not None:
        time_s = clock.seconds(second)
    if time is not None and time_s is None:
        log.skip(path, number, f"{date or ''} {time} is no time", time)
        return
    log.add(
        Reading(
            line=number,
            time_s=time_s,
            power_w=cells.number(row.get("pwr", "-"), cells.POWER),
            sm_clock_mhz=cells.number(row.get("pclk", "-"), cells.CLOCK),
            temperature_c=cells.number(row.get("gtemp", "-"), cells.TEMPERATURE),
            memory_bytes=cells.number(row.get("fb", "-"), cells.MEMORY, "MB"),
        ),
        GpuFacts(index=row["gpu"]),
    )
