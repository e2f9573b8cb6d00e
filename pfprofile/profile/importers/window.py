"""Which part of a log counts as training: `--from`/`--to`, markers, the training's own log, idle head and tail."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from pfprofile.errors import InputError, UsageError
from pfprofile.profile.importers import cells
from pfprofile.profile.importers.base import ImportOptions
from pfprofile.profile.importers.readings import Log, Reading
from pfprofile.telemetry.resets import counter_rates
from pfprofile.telemetry.trim import BusySpan, busy_span
from pfprofile.telemetry.window import Floats
from pfprofile.units import parse_duration

#: an idle head or tail is offered for trimming from this share of the window and this long on
WORTH_TRIMMING = 0.05
WORTH_TRIMMING_S = 0.5
_DAY_S = 86400.0


@dataclass(frozen=True, slots=True)
class Series:
    """One GPU's readings in the order of time; arrays (m,), NaN = not told."""

    gpu: str
    time_s: Floats
    power_w: Floats
    energy_j: Floats
    sm_clock_mhz: Floats
    temperature_c: Floats
    memory_bytes: Floats

    @property
    def level_w(self) -> Floats:
        """Power to tell busy from idle by, W: the readings, or the counter's rates where there are none."""
        return self.power_w if np.isfinite(self.power_w).any() else counter_rates(self.time_s, self.energy_j)


def order(log: Log, options: ImportOptions, where: str, one_gpu: bool = False) -> dict[str, list[Reading]]:
    """The readings of each GPU by time; those without timestamps get one from `--interval`.

    Args:
        one_gpu: the person said that one GPU was logged, whatever it looks like.

    Raises:
        InputError: readings of several GPUs that cannot be told apart.
        UsageError: no timestamps and no `--interval`.
    """
    by_gpu: dict[str, list[Reading]] = {}
    for reading in log.readings:
        by_gpu.setdefault(reading.gpu, []).append(reading)
    if options.interval_s is not None and options.interval_s <= 0:
        raise UsageError("--interval must be above 0", "write for example --interval 100ms")
    timed = [r for r in log.readings if r.time_s is not None]
    if not timed:
        if options.interval_s is None:
            raise UsageError(
                f"{where}: the readings carry no timestamps",
                f"say how far apart they are, e.g. --interval {log.interval_hint}",
            )
        for readings in by_gpu.values():
            for i, reading in enumerate(readings):
                reading.time_s = i * options.interval_s
    elif len(timed) < len(log.readings):
        raise InputError(f"{where}: {len(log.readings) - len(timed)} of {len(log.readings)} readings have no timestamp")
    elif "" in by_gpu and not one_gpu:
        _refuse_unnamed_gpus(by_gpu[""], by_gpu, where)
    return {gpu: sorted(readings, key=lambda r: r.time_s or 0.0) for gpu, readings in by_gpu.items()}


def _refuse_unnamed_gpus(unnamed: list[Reading], by_gpu: Mapping[str, object], where: str) -> None:
    """Several GPUs without an id show as pairs of readings at (almost) one time between long pauses."""
    hint = "log again with an id: --query-gpu=timestamp,uuid,index,power.draw,clocks.sm (or say --set n_gpus=1)"
    if len(by_gpu) > 1:
        raise InputError(
            f"{where}: line {unnamed[0].line}: a reading without a GPU id among others that have one", hint
        )
    gaps = np.array([abs((b.time_s or 0.0) - (a.time_s or 0.0)) for a, b in pairwise(unnamed)])
    if len(gaps) < 3:
        return
    typical = float(np.quantile(gaps, 0.9))
    if typical >= 0.05 and float(np.mean(gaps < 0.02 * typical)) >= 0.4:
        raise InputError(
            f"{where}: the readings come in groups at one time: several GPUs, and no id to tell them", hint
        )


def as_series(gpu: str, readings: list[Reading]) -> Series:
    """Readings as arrays; several readings of one instant (two logs of one GPU) become their first."""
    kept: list[Reading] = []
    for reading in readings:
        if not kept or reading.time_s != kept[-1].time_s:
            kept.append(reading)

    def column(name: str) -> Floats:
        return np.array([np.nan if (v := getattr(r, name)) is None else v for r in kept], dtype=np.float64)

    return Series(gpu, *(column(n) for n in ("time_s", "power_w", "energy_j", "sm_clock_mhz", "temperature_c",
                                             "memory_bytes")))  # fmt: skip


@dataclass(frozen=True, slots=True)
class Window:
    """The part that counts, s in the log's own time, and the busy power level where there was one to find."""

    start_s: float
    end_s: float
    threshold_w: Mapping[str, float]
    notices: tuple[str, ...]

    @property
    def length_s(self) -> float:
        """Its length, s."""
        return self.end_s - self.start_s


def choose_window(
    series: Mapping[str, Series], log: Log, options: ImportOptions, trained: tuple[float, float] | None, where: str
) -> Window:
    """The window: what the person said, else what the training's log says, else everything; then trimmed if asked.

    Args:
        series: by GPU.
        trained: first and last time of the training's own log, s; None = not known.

    Raises:
        UsageError: a bound that cannot be read, or a window outside the log.
    """
    first_s = min(float(s.time_s[0]) for s in series.values())
    last_s = max(float(s.time_s[-1]) for s in series.values())
    start_s = _bound(options.start, "--from", first_s, log, where) if options.start else None
    end_s = _bound(options.end, "--to", first_s, log, where) if options.end else None
    if trained is not None:
        if trained[0] >= last_s or trained[1] <= first_s:
            raise UsageError(
                f"--log: the training ran from {cells.clock_text(trained[0])} to {cells.clock_text(trained[1])}, "
                f"{where} from {cells.clock_text(first_s)} to {cells.clock_text(last_s)}",
                "they do not overlap: is one clock in another time zone?",
            )
        start_s = trained[0] if start_s is None else start_s
        end_s = trained[1] if end_s is None else end_s
    said = start_s is not None or end_s is not None
    start_s, end_s = (
        max(first_s, first_s if start_s is None else start_s),
        min(last_s, last_s if end_s is None else end_s),
    )
    if start_s > end_s or (said and start_s == end_s):
        raise UsageError(
            f"the window from {cells.clock_text(start_s)} to {cells.clock_text(end_s)} is empty",
            f"{where} goes from {cells.clock_text(first_s)} to {cells.clock_text(last_s)}",
        )
    return _trimmed(series, start_s, end_s, options.trim, said)


def _trimmed(series: Mapping[str, Series], start_s: float, end_s: float, trim: bool, said: bool) -> Window:
    spans: dict[str, BusySpan] = {}
    for gpu, s in series.items():
        inside = (s.time_s >= start_s) & (s.time_s <= end_s)
        if (span := busy_span(s.time_s[inside], s.level_w[inside])) is not None:
            spans[gpu] = span
    thresholds = {gpu: span.threshold_w for gpu, span in spans.items()}
    if not spans:
        notes = ("--trim: no idle head or tail found, nothing left out",) if trim else ()
        return Window(start_s, end_s, thresholds, notes)
    busy_from, busy_to = max(s.start_s for s in spans.values()), min(s.end_s for s in spans.values())
    if busy_to <= busy_from:
        busy_from, busy_to = min(s.start_s for s in spans.values()), max(s.end_s for s in spans.values())
    idle_s = (busy_from - start_s) + (end_s - busy_to)
    if idle_s < max(WORTH_TRIMMING * (end_s - start_s), WORTH_TRIMMING_S):
        return Window(start_s, end_s, thresholds, ())
    span = next(iter(spans.values()))
    words = (
        f"{busy_from - start_s:.1f} s at the start and {end_s - busy_to:.1f} s at the end are idle "
        f"({span.idle_w:.0f} W against {span.busy_w:.0f} W)"
    )
    if trim:
        kept = (
            f"the window is {cells.clock_text(busy_from)} to {cells.clock_text(busy_to)} ({busy_to - busy_from:.1f} s)"
        )
        return Window(busy_from, busy_to, thresholds, (f"trimmed: {words}; {kept}",))
    offer = "" if said else ", or --from and --to"
    return Window(start_s, end_s, thresholds, (f"{words} and count as training: leave them out with --trim{offer}",))


def _bound(text: str, flag: str, first_s: float, log: Log, where: str) -> float:
    """A bound of the window: a timestamp, a time of day, a duration after the start, or a marker's text."""
    if (when := cells.timestamp(text)) is not None:
        return when
    if (second := cells.time_of_day(text)) is not None:
        if first_s < _DAY_S:
            raise UsageError(f"{flag} {text}: {where} has no timestamps", "write a duration after its start, e.g. 12s")
        when = first_s // _DAY_S * _DAY_S + second
        return when + _DAY_S if when < first_s - _DAY_S / 2 else when
    for position, mark in log.marks:
        if text in mark:
            at = position if flag == "--from" else position - 1
            return log.readings[min(max(at, 0), len(log.readings) - 1)].time_s or 0.0
    try:
        return first_s + parse_duration(text, what=flag)
    except UsageError:
        raise UsageError(
            f"{flag} {text!r} is no time, no duration, and stands in no line of {where} that is not a reading",
            "write for example '2023/07/14 10:12:48', 10:12:48 or 12s",
        ) from None
