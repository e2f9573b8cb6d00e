"""Single cells of foreign logs: the many spellings of "unknown", numbers with units, timestamps."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from datetime import UTC, datetime

#: unit → factor to the inner unit (W, J, MHz, bytes, %, °C)
POWER = {"W": 1.0, "mW": 1e-3, "kW": 1e3, "uW": 1e-6}
ENERGY = {"J": 1.0, "mJ": 1e-3, "uJ": 1e-6, "kJ": 1e3, "Wh": 3.6e3, "kWh": 3.6e6}
CLOCK = {"MHz": 1.0, "GHz": 1e3, "kHz": 1e-3, "Hz": 1e-6}
#: nvidia-smi prints MiB; what dmon and DCGM call MB is MiB as well
MEMORY = {"MiB": 2.0**20, "MB": 2.0**20, "GiB": 2.0**30, "KiB": 2.0**10, "B": 1.0}
PERCENT = {"%": 1.0}
TEMPERATURE = {"C": 1.0, "°C": 1.0}

_NUMBER = re.compile(r"([-+]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][-+]?\d+)?)\s*([A-Za-z%°]*)")
_SPELLINGS = frozenset(
    {"", "-", "n/a", "na", "nan", "none", "null", "err!", "not supported", "unknown", "unknown error"}
)
#: the year 2200: what lies beyond is no time of a log
_LATEST_S = 7.258e9
_DATED = re.compile(r"(\d{4})[/-](\d{2})[/-](\d{2})[ T](\d{2}):(\d{2}):(\d{2})(\.\d{1,9})?", re.ASCII)
_TIMES = ("%Y/%m/%d %H:%M:%S.%f", "%Y/%m/%d %H:%M:%S", "%Y%m%d %H:%M:%S", "%Y-%m-%d %H:%M:%S,%f")


def is_unknown(text: str) -> bool:
    """Whether a cell says that there is no value: ``[N/A]``, ``-``, ``[Unknown Error]``, a sentence in brackets."""
    body = text.strip()
    return body.lower() in _SPELLINGS or (body.startswith("[") and body.endswith("]"))


def number(text: str, factors: Mapping[str, float], unit: str | None = None) -> float | None:
    """A cell as a number of the inner unit.

    Args:
        text: e.g. ``631.95 W`` or ``631.95``.
        factors: unit → factor; a unit it does not have makes the cell unknown.
        unit: of a cell that names none (from the header); None = the inner unit.

    Returns:
        None where the cell says "unknown" or is no number (a sentence, ``ERR!``).
    """
    match = _NUMBER.fullmatch(text.strip())
    if not match:
        return None
    factor = factors.get(match[2] or unit or next(iter(factors)))
    value = float(match[1]) * factor if factor is not None else math.nan
    return value if math.isfinite(value) else None


def whole(text: str) -> int | None:
    """A cell as a whole number from 0 on, or None."""
    body = text.strip()
    return int(body) if body.isascii() and body.isdigit() and len(body) < 16 else None


def timestamp(text: str) -> float | None:
    """A date and time as seconds since 1970; one without a zone is taken as UTC. None where it is none."""
    body = text.strip()
    if (match := _DATED.fullmatch(body)) is not None:
        return _dated(match)
    if (epoch := number(body, {"s": 1.0})) is not None and epoch >= 1e8:
        seconds = epoch / 1e3 if epoch > 1e11 else epoch
        return seconds if seconds < _LATEST_S else None
    when: datetime | None = None
    try:
        when = datetime.fromisoformat(body.replace("Z", "+00:00"))
    except ValueError:
        when = next((t for t in (_parsed(body, form) for form in _TIMES) if t is not None), None)
    if when is None or len(body) < 10 or not 1990 <= when.year < 2200:
        return None
    return (when if when.tzinfo else when.replace(tzinfo=UTC)).timestamp()


def _dated(match: re.Match[str]) -> float | None:
    """The form that most logs have, without the slow general parsers."""
    year, month, day, hour, minute, second = (int(part) for part in match.groups()[:6])
    try:
        whole = datetime(year, month, day, hour, minute, second, tzinfo=UTC).timestamp()
    except ValueError:
        return None
    return whole + float(match[7] or 0) if 1990 <= year < 2200 else None


def _parsed(text: str, form: str) -> datetime | None:
    try:
        return datetime.strptime(text, form)
    except ValueError:
        return None


def time_of_day(text: str) -> float | None:
    """``10:12:48.5`` as seconds after midnight, or None."""
    match = re.fullmatch(r"(\d{1,2}):(\d{2})(?::(\d{2}(?:\.\d+)?))?", text.strip())
    if not match:
        return None
    hours, minutes, seconds = int(match[1]), int(match[2]), float(match[3] or 0)
    return hours * 3600 + minutes * 60 + seconds if hours < 24 and minutes < 60 and seconds < 60 else None


def clock_text(time_s: float) -> str:
    """Seconds since 1970 as ``2023-07-14 10:12:48.0``; small numbers, which count from a log's start, as ``12.0 s``."""
    if abs(time_s) < 1e8:
        return f"{time_s:.1f} s"
    return datetime.fromtimestamp(time_s, UTC).strftime("%Y-%m-%d %H:%M:%S.%f")[:-5]
