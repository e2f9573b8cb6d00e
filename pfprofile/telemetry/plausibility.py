"""Is a number physically possible for a training GPU, and if not, which unit mix-up does it look like?

The bounds are deliberately wide: a refused true value is worse than an odd one let through.
"""

from __future__ import annotations

from dataclasses import dataclass

#: Above this no single accelerator of today draws power; twice a 1,400 W board, rounded up.
MAX_GPU_POWER_W = 3000.0
#: A training GPU that draws less than this is a reading in kilowatts.
MIN_GPU_POWER_W = 0.5
MAX_CLOCK_MHZ = 5000.0
MIN_CLOCK_MHZ = 10.0
MAX_STEP_TIME_S = 1e5
MIN_STEP_TIME_S = 1e-7
MAX_TEMPERATURE_C = 150.0


@dataclass(frozen=True, slots=True)
class Doubt:
    """An implausible value: what is wrong with it and what it looks like."""

    what: str
    suspicion: str

    def __str__(self) -> str:
        return f"{self.what}: {self.suspicion}"


def power(power_w: float, power_limit_w: float | None = None) -> Doubt | None:
    """Doubt about the mean power of one busy GPU, W; more than twice the board's limit is garbage."""
    ceiling = min(MAX_GPU_POWER_W, 2 * power_limit_w) if power_limit_w else MAX_GPU_POWER_W
    if power_w <= 0:
        return Doubt(f"{power_w:g} W for one GPU", "a busy GPU draws power; leave unknown power empty")
    if power_w > ceiling:
        return Doubt(
            f"{power_w:,.6g} W for one GPU", _too_large(power_w, ((1e3, "milliwatts"), (1e6, "microwatts")), 20)
        )
    if power_w < MIN_GPU_POWER_W:
        return Doubt(f"{power_w:g} W for one GPU", "kilowatts?")
    return None


def clock(clock_mhz: float) -> Doubt | None:
    """Doubt about an SM clock, MHz."""
    if clock_mhz <= 0:
        return Doubt(f"an SM clock of {clock_mhz:g} MHz", "leave an unknown clock empty")
    if clock_mhz > MAX_CLOCK_MHZ:
        return Doubt(f"an SM clock of {clock_mhz:,.10g} MHz", _too_large(clock_mhz, ((1e3, "kHz"), (1e6, "Hz")), 100))
    if clock_mhz < MIN_CLOCK_MHZ:
        return Doubt(f"an SM clock of {clock_mhz:g} MHz", "GHz?")
    return None


def step_time(step_time_s: float) -> Doubt | None:
    """Doubt about the time of one optimizer step, s."""
    if step_time_s <= 0:
        return Doubt(f"a step time of {step_time_s:g} s", "leave out what was not measured")
    if step_time_s > MAX_STEP_TIME_S:
        return Doubt(f"a step time of {step_time_s:,.10g} s", "milliseconds or microseconds?")
    if step_time_s < MIN_STEP_TIME_S:
        return Doubt(f"a step time of {step_time_s:g} s", "hours or days?")
    return None


def temperature(temperature_c: float) -> Doubt | None:
    """Doubt about a GPU temperature, °C."""
    if temperature_c > MAX_TEMPERATURE_C:
        return Doubt(f"a temperature of {temperature_c:g} °C", "kelvin or fahrenheit?")
    return None


def window_energy(energy_j: float, power_w: float | None, seconds: float | None, n_gpus: int) -> Doubt | None:
    """Doubt about a window's energy, J, against power × time; a factor of 100 is a unit, not a measurement error."""
    if energy_j <= 0:
        return Doubt(f"an energy of {energy_j:g} J", "a busy window takes energy; leave unknown energy empty")
    if not power_w or not seconds:
        return None
    ratio = energy_j / (power_w * seconds * n_gpus)
    if ratio > 100:
        return Doubt(f"an energy of {energy_j:,.6g} J, {ratio:,.3g} × power × time", "millijoules or microjoules?")
    if ratio < 0.01:
        return Doubt(f"an energy of {energy_j:g} J, {ratio:.3g} × power × time", "kilojoules or watt-hours?")
    return None


def _too_large(value: float, units: tuple[tuple[float, str], ...], least: float) -> str:
    """Name the first unit in which the value would be plausible again (at least ``least`` of the right unit)."""
    fits = [name for factor, name in units if least <= value / factor <= 5000]
    return f"{fits[0] if fits else units[-1][1]}?"
