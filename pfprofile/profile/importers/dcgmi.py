"""`import dcgmi-dmon`: the columns of ``dcgmi dmon -e ...``."""

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

HINT = "log with: dcgmi dmon -e 155,156,100,150,252 -d 1000"
#: short names that dcgmi prints → what they are; 156 counts millijoules
_COLUMNS = {
    "POWER": "power",
    "PWR": "power",
    "TOTEC": "energy",
    "SMCLK": "clock",
    "TMPTR": "temperature",
    "FBUSD": "memory",
    "PMLMT": "limit",
    "DVCCTR": "reasons",
    "CTR": "reasons",
}
#: what `ts` and the like put before every line, headers too
_STAMP = re.compile(r"(\S*\d{1,2}:\d{2}:\d{2}\S*|\d{4}-\d{2}-\d{2} \d{2}:\d{2}:\d{2}\S*)\s+(?=#|Entity|ID|Id)")
_ROW = re.compile(
    r"(?:(?P<when>\S+[ T]?\d{1,2}:\d{2}:\d{2}\S*)\s+)?"
    r"(?P<kind>GPU-I|GPU-CI|GPU|CPU|Switch)\s+(?P<id>[\d/]+)\s+(?P<rest>.+)"
)


class DcgmiDmon:
    """dcgmi dmon."""

    name = "dcgmi-dmon"
    summary = "output of dcgmi dmon"
    takes = OF_LOGS

    def read(self, paths: Sequence[Path], options: ImportOptions) -> Imported:
        """See `Importer.read`; several files are parts of one run."""
        log = Log()
        for path in paths:
            _read(path, log)
        return trial_of(log, paths, options, HINT)


def _read(path: Path, log: Log) -> None:
    header: list[str] | None = None
    for number, text in read_lines(path):
        body = text.strip().lstrip("#").strip()
        words = _STAMP.sub("", body, count=1).lstrip("#").split()
        if words[:1] == ["Entity"]:
            columns = words[1:]
            if header is not None and columns != header:
                raise InputError(
                    f"{path}: line {number} has another header: {' '.join(columns)!r}, the file began with "
                    f"{' '.join(header)!r}",
                    "split the file there and import the parts one by one",
                )
            header = columns
        elif words[:1] in (["ID"], ["Id"]):
            continue  # the line of units below a header
        elif header is None or (match := _ROW.fullmatch(body)) is None:
            log.skip(path, number, f"no reading: {body[:60]!r}", text)
        elif match["kind"] != "GPU":
            log.skip(path, number, f"a reading of a {match['kind']}, not of a GPU", text)
        elif len(values := match["rest"].split()) != len(header):
            log.skip(path, number, f"{len(values)} values, expected {len(header)}: {body[:60]!r}", text)
        else:
            _take(path, number, match, dict(zip(header, values, strict=True)), log)
    if header is None:
        raise InputError(f"{path}: no header of dcgmi dmon found (#Entity ...)", HINT)
    if not {"power", "energy"} & {_COLUMNS.get(name) for name in header}:
        log.notices.append(f"{path}: neither power (155) nor energy (156) was logged: both stay unknown")


def _take(path: Path, number: int, match: re.Match[str], row: dict[str, str], log: Log) -> None:
    told = {_COLUMNS[name]: value for name, value in row.items() if name in _COLUMNS}
    time_s = cells.timestamp(match["when"]) if match["when"] else None
    if match["when"] and time_s is None:
        log.skip(path, number, f"{match['when'][:40]!r} is no timestamp", match["when"])
        return
    log.add(
        Reading(
            line=number,
            time_s=time_s,
            power_w=cells.number(told.get("power", "-"), cells.POWER),
            energy_j=cells.number(told.get("energy", "-"), cells.ENERGY, "mJ"),
            sm_clock_mhz=cells.number(told.get("clock", "-"), cells.CLOCK),
            temperature_c=cells.number(told.get("temperature", "-"), cells.TEMPERATURE),
            memory_bytes=cells.number(told.get("memory", "-"), cells.MEMORY, "MB"),
            limits=reasons(told.get("reasons")),
        ),
        GpuFacts(index=match["id"], power_limit_w=cells.number(told.get("limit", "-"), cells.POWER)),
    )


def reasons(mask: str | None) -> frozenset[str] | None:
    """DCGM's mask of clock reasons (NVML's bits, decimal) as our limits; None where it is not told."""
    from pfprofile.profile.importers.smi import BITS

    bits = cells.whole(mask.removesuffix(".0")) if mask is not None else None
    return None if bits is None else frozenset(name for bit, name in BITS if bits & bit)
