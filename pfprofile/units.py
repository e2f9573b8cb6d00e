"""Parse and print quantities. Inside the tool everything is SI and MHz; people write ``120kWh``, ``20kW``, ``2h``."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

from pfprofile.errors import UsageError


@dataclass(frozen=True, slots=True)
class Dimension:
    """A kind of quantity: what it is called, the factor of each unit to the inner unit, and an example."""

    name: str
    factors: dict[str, float]
    example: str
    unitless_ok: bool = False


ENERGY = Dimension(
    "an energy",
    {
        "mJ": 1e-3,
        "mWh": 3.6,
        "J": 1.0,
        "kJ": 1e3,
        "MJ": 1e6,
        "GJ": 1e9,
        "Wh": 3.6e3,
        "kWh": 3.6e6,
        "MWh": 3.6e9,
        "GWh": 3.6e12,
    },
    "120kWh",
)
POWER = Dimension("a power", {"mW": 1e-3, "W": 1.0, "kW": 1e3, "MW": 1e6}, "20kW")
DURATION = Dimension(
    "a duration",
    {"ms": 1e-3, "s": 1.0, "sec": 1.0, "min": 60.0, "m": 60.0, "h": 3600.0, "d": 86400.0, "w": 604800.0},
    "2h",
)
CLOCK = Dimension("a clock", {"Hz": 1e-6, "kHz": 1e-3, "MHz": 1.0, "GHz": 1e3}, "1410MHz", unitless_ok=True)
DIMENSIONS = (ENERGY, POWER, DURATION, CLOCK)

_QUANTITY = re.compile(r"\s*([-+]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][-+]?\d+)?)\s*([A-Za-z]*)\s*")
_COMPOUND_DURATION = re.compile(r"(?:\s*\d+(?:\.\d*)?\s*[a-z]+){2,}\s*")
_DURATION_PART = re.compile(r"(\d+(?:\.\d*)?)\s*([a-z]+)")


def parse_quantity(text: str, dimension: Dimension, *, what: str = "") -> float:
    """Read a quantity such as ``120kWh`` as a number of the inner unit (J, W, s, MHz).

    Args:
        text: number and unit; the unit's case matters only where two units would clash (``mW``/``MW``).
        dimension: which kind of quantity is expected.
        what: the option or key it belongs to, for the error.

    Raises:
        UsageError: not a number, no unit, a unit of another dimension (which is named), or not finite.
    """
    label = f"{what}: " if what else ""
    match = _QUANTITY.fullmatch(text)
    if not match:
        raise UsageError(f"{label}{text!r} is not {dimension.name}", f"write for example {dimension.example}")
    number, unit = float(match[1]), match[2]
    if not math.isfinite(number):
        raise UsageError(f"{label}{text!r} is not a finite number", f"write for example {dimension.example}")
    if not unit:
        if dimension.unitless_ok:
            return number
        raise UsageError(f"{label}{text!r} has no unit", f"write for example {dimension.example}")
    factor = _factor(unit, dimension)
    if factor is None:
        other = next((d for d in DIMENSIONS if _factor(unit, d) is not None), None)
        kind = f"is {other.name}, not {dimension.name}" if other else f"has an unknown unit {unit!r}"
        raise UsageError(f"{label}{text!r} {kind}", f"write for example {dimension.example}")
    return number * factor


def _factor(unit: str, dimension: Dimension) -> float | None:
    if unit in dimension.factors:
        return dimension.factors[unit]
    found = {f for u, f in dimension.factors.items() if u.lower() == unit.lower()}
    return found.pop() if len(found) == 1 else None


def is_power(text: str) -> bool:
    """Whether a text is a number with a unit of power (to name the right option)."""
    match = _QUANTITY.fullmatch(text)
    return bool(match and match[2] and _factor(match[2], POWER) is not None and _factor(match[2], ENERGY) is None)


def parse_energy(text: str, *, what: str = "") -> float:
    """``120kWh`` → J. Raises UsageError; see `parse_quantity`."""
    return parse_quantity(text, ENERGY, what=what)


def parse_power(text: str, *, what: str = "") -> float:
    """``20kW`` → W. Raises UsageError; see `parse_quantity`."""
    return parse_quantity(text, POWER, what=what)


def parse_clock(text: str, *, what: str = "") -> float:
    """``1410MHz`` or ``1410`` → MHz. Raises UsageError; see `parse_quantity`."""
    return parse_quantity(text, CLOCK, what=what)


def parse_duration(text: str, *, what: str = "") -> float:
    """``2h``, ``90s`` or ``1h30m`` → s. Raises UsageError; see `parse_quantity`."""
    if _COMPOUND_DURATION.fullmatch(text):
        return sum(parse_quantity(n + u, DURATION, what=what) for n, u in _DURATION_PART.findall(text))
    return parse_quantity(text, DURATION, what=what)


def parse_fraction(text: str, *, what: str = "") -> float:
    """``5%`` or ``0.05`` → 0.05. Raises UsageError where it is neither."""
    label = f"{what}: " if what else ""
    body = text.strip()
    percent = body.endswith("%")
    try:
        value = float(body[:-1] if percent else body)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise UsageError(f"{label}{text!r} is not a fraction", "write for example 5% or 0.05")
    return value / 100 if percent else value


#: more of anything than a person could mean; keeps counts inside every integer type on the way
MOST = 10**9


def parse_int_list(text: str, *, what: str = "", least: int = 1) -> list[int]:
    """``1,2,4`` → [1, 2, 4], in order, without repeats. Raises UsageError outside ``least`` … 10⁹."""
    label = f"{what}: " if what else ""
    values: list[int] = []
    for part in text.split(","):
        try:
            value = int(part)
        except ValueError:
            raise UsageError(f"{label}{part.strip()!r} is not a whole number", "write for example 1,2,4") from None
        if value < least:
            raise UsageError(f"{label}{value} is below {least}", "write for example 1,2,4")
        if value > MOST:
            raise UsageError(f"{label}{value:.3g} is above {MOST:.0e}", "write for example 1,2,4")
        if value not in values:
            values.append(value)
    return values


def _plain(value: float, digits: int) -> str:
    """``digits`` significant figures, without an exponent for everyday magnitudes."""
    if value == 0 or not math.isfinite(value):
        return f"{value:g}"
    decimals = max(0, digits - 1 - math.floor(math.log10(abs(value))))
    return f"{value:.{min(decimals, 12)}f}" if abs(value) < 1e15 else f"{value:.{digits}g}"


def format_energy(energy_j: float, digits: int = 4) -> str:
    """J → ``120 kWh`` (above 3.6 kJ in Wh units, below in J)."""
    for factor, unit in ((3.6e9, "MWh"), (3.6e6, "kWh"), (3.6e3, "Wh")):
        if abs(energy_j) >= factor:
            return f"{_plain(energy_j / factor, digits)} {unit}"
    return f"{_plain(energy_j, digits)} J"


def format_power(power_w: float, digits: int = 4) -> str:
    """W → ``20.00 kW``."""
    for factor, unit in ((1e6, "MW"), (1e3, "kW")):
        if abs(power_w) >= factor:
            return f"{_plain(power_w / factor, digits)} {unit}"
    return f"{_plain(power_w, digits)} W"


def format_rate(per_second: float, digits: int = 4) -> str:
    """1/s → ``12,340/s``: never in powers of ten, which nobody reads aloud."""
    if not math.isfinite(per_second) or per_second >= 1e15:
        return f"{per_second:g}/s"
    decimals = max(0, digits - 1 - math.floor(math.log10(per_second))) if per_second > 0 else 0
    return f"{per_second:,.{min(decimals, 12)}f}/s"


def counted(number: int, noun: str) -> str:
    """``1 trial``, ``2 trials``."""
    return f"{number:,} {noun}" + ("" if number == 1 else "s")


def format_clock(clock_mhz: float | None) -> str:
    """MHz → ``1410 MHz``; ``None`` (not locked) → ``default``."""
    return "default" if clock_mhz is None or math.isnan(clock_mhz) else f"{clock_mhz:g} MHz"


def format_duration(duration_s: float, digits: int = 3) -> str:
    """s → ``2.50 h``, ``90.0 s``, ``1.20 ms``; the unit that reads best."""
    for factor, unit in ((2 * 86400.0, "d"), (2 * 3600.0, "h"), (2 * 60.0, "min"), (1.0, "s")):
        if abs(duration_s) >= factor:
            base = {"d": 86400.0, "h": 3600.0, "min": 60.0, "s": 1.0}[unit]
            return f"{_plain(duration_s / base, digits)} {unit}"
    return f"{_plain(duration_s * 1e3, digits)} ms" if duration_s else "0 s"


def format_bytes(size_bytes: float) -> str:
    """Bytes → ``1.50 GiB``."""
    for factor, unit in ((2**40, "TiB"), (2**30, "GiB"), (2**20, "MiB"), (2**10, "KiB")):
        if abs(size_bytes) >= factor:
            return f"{_plain(size_bytes / factor, 3)} {unit}"
    return f"{size_bytes:g} B"


def parse_clock_list(text: str, *, what: str = "--freqs") -> str | list[float | None]:
    """Clocks of a command line: ``all`` or ``auto`` as they are, else a list in MHz in the order given.

    ``1410,1005`` is a list, ``210:1410:15`` a range with its end included (``LO:HI:STEP``), ``default`` an unlocked
    clock (None); they may be mixed with commas. Repeats are dropped.

    Raises:
        UsageError: anything else, or a clock that is not above zero.
    """
    words = [part.strip() for part in text.split(",")]
    if len(words) == 1 and words[0].lower() in ("all", "auto"):
        return words[0].lower()
    clocks: list[float | None] = []
    for word in words:
        if word.lower() in ("all", "auto"):
            raise UsageError(f"{what}: {word!r} cannot be mixed with other clocks", "give it alone")
        for clock in [None] if word.lower() == "default" else _clock_range(word, what):
            if clock is not None and not clock > 0:
                raise UsageError(f"{what}: {word!r} is not above 0 MHz", "write for example 1410,1005 or 210:1410:15")
            if clock not in clocks:
                clocks.append(clock)
    return clocks


def _clock_range(word: str, what: str) -> list[float]:
    parts = word.split(":")
    if len(parts) == 1:
        return [parse_clock(word, what=what)]
    if len(parts) != 3:
        raise UsageError(f"{what}: {word!r} is not LO:HI:STEP", "write for example 210:1410:15")
    low, high, step = (parse_clock(part, what=what) for part in parts)
    if step <= 0 or high < low or (high - low) / step > 100_000:
        raise UsageError(f"{what}: {word!r} is not a rising range", "write for example 210:1410:15")
    count = math.floor((high - low) / step + 1e-9) + 1
    return [low + i * step for i in range(count)]
