"""One GPU inside the window of a log: power from its energy counter or its power readings, clock, heat, memory."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pfprofile.errors import InputError
from pfprofile.profile.importers.cells import clock_text
from pfprofile.profile.importers.window import Series, Window
from pfprofile.telemetry.resets import pieced_counter_power, resets
from pfprofile.telemetry.trim import distinct_readings
from pfprofile.telemetry.window import LEAST_SAMPLES, Floats, sampled_power

#: the counter's and the power samples' energy may differ by this share before it is said
WIDE_GAP = 0.05
#: from this share of repeated readings on, the poll was faster than the sensor
MANY_REPEATS = 0.3
#: a pause counts as a hole from so many usual intervals, and so many seconds, on
LONG_HOLE = 10.0
LONG_HOLE_S = 5.0


@dataclass(frozen=True, slots=True)
class Measured:
    """What one GPU did; None = unknown. ``short`` says why a mean is not known, where readings are too few."""

    power_w: float | None
    source: str | None
    short: str
    clock_mhz: float | None
    temperature_c: float | None
    memory_bytes: int | None


def measure(s: Series, window: Window, notices: list[str]) -> Measured:
    """One GPU inside the window; what a person should know is appended to ``notices``.

    Raises:
        InputError: counter and power readings differ by a factor that only a wrong unit makes.
    """
    inside = (s.time_s >= window.start_s) & (s.time_s <= window.end_s)
    power_w, source, short = _power(s, inside, window, notices)
    busy = inside & (s.level_w >= window.threshold_w[s.gpu]) if s.gpu in window.threshold_w else inside
    clocks = s.sm_clock_mhz[busy & np.isfinite(s.sm_clock_mhz)]
    memory = _most(s.memory_bytes[inside])
    return Measured(
        power_w,
        source,
        short,
        float(np.median(clocks)) if len(clocks) else None,
        _most(s.temperature_c[inside]),
        None if memory is None else round(memory),
    )


def _power(
    s: Series, inside: np.ndarray[tuple[int], np.dtype[np.bool_]], window: Window, notices: list[str]
) -> tuple[float | None, str | None, str]:
    time_s, power_w, energy_j = s.time_s[inside], s.power_w[inside], s.energy_j[inside]
    name = f"GPU {s.gpu}: " if s.gpu else ""
    kept = distinct_readings(time_s, power_w)
    if len(kept) < (1 - MANY_REPEATS) * len(time_s):
        notices.append(
            f"{name}{len(time_s)} readings hold {len(kept)} different ones: polled faster than the sensor moves"
        )
    _say_holes(time_s, window, name, notices)
    if count := resets(energy_j):
        notices.append(f"{name}the energy counter ran backwards ({count} times): the window is split there")
    from_counter = pieced_counter_power(time_s, energy_j)
    from_samples = sampled_power(time_s[kept], power_w[kept])
    if from_counter is not None:
        if from_samples is not None:
            _compare(from_counter, from_samples, window.length_s, name, notices)
        return from_counter, "counter", ""
    if from_samples is not None:
        return from_samples, "samples", ""
    few = int(np.isfinite(power_w).sum()) or int(np.isfinite(energy_j).sum())
    short = f"too short: {few} of at least {LEAST_SAMPLES} readings in the window" if few else ""
    notices.append(f"{name}{short or 'no power in the window'}: power and energy stay unknown")
    return None, None, short


def _say_holes(time_s: Floats, window: Window, name: str, notices: list[str]) -> None:
    """Long pauses between readings: said, and refused where they are most of the window (two runs in one log?)."""
    gaps = np.diff(time_s)
    usual_s = float(np.median(gaps)) if len(gaps) > 1 else np.inf
    holes = np.flatnonzero(gaps > max(LONG_HOLE_S, LONG_HOLE * usual_s))
    if not len(holes):
        return
    at = holes[np.argmax(gaps[holes])]
    words = (
        f"{name}no readings from {clock_text(float(time_s[at]))} to {clock_text(float(time_s[at + 1]))} "
        f"({gaps[at]:.1f} s of {window.length_s:.1f} s)"
    )
    if gaps[holes].sum() > 0.5 * window.length_s:
        raise InputError(f"{words}: most of the window is a hole", "choose a part with --from and --to")
    notices.append(f"{words}: the power on both sides is taken to go on (or choose a part with --from and --to)")


def _compare(counter_w: float, samples_w: float, length_s: float, name: str, notices: list[str]) -> None:
    if samples_w > 0 and not 0.01 < counter_w / samples_w < 100:
        suspicion = (
            "millijoules or microjoules read as joules?" if counter_w > samples_w else "kilojoules read as joules?"
        )
        raise InputError(
            f"{name}the energy counter says {counter_w:,.4g} W, the power readings {samples_w:.4g} W: {suspicion}",
            "correct the counter's unit, or leave it out of the file",
        )
    if abs(counter_w - samples_w) > WIDE_GAP * samples_w:
        notices.append(f"{name}the energy counter says {counter_w * length_s:.4g} J, the power readings "
                       f"{samples_w * length_s:.4g} J: the counter is taken")  # fmt: skip


def _most(values: Floats) -> float | None:
    known = values[np.isfinite(values)]
    return float(known.max()) if len(known) else None
