"""The step time of an imported trial: from `--steps`, `--set step_time_s`, or the training's own log."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from statistics import fmean, median, stdev
from typing import Any

from pfprofile.errors import InputError, UsageError
from pfprofile.profile.importers import cells
from pfprofile.profile.importers.text import read_lines

_GROUPS = ("step", "time", "step_time_s", "step_time_ms", "rate")
_HELP = (
    "name its groups: (?P<step>...) with or without (?P<time>...), (?P<step_time_s>...), (?P<step_time_ms>...), or "
    "(?P<rate>...) in samples/s"
)
#: of lines that each tell a step time, this part at the start is warm-up
WARM_UP = 0.1


@dataclass(frozen=True, slots=True)
class Line:
    """One matching line of a training log; None = the pattern has no such group."""

    step: float | None
    time_s: float | None
    step_time_s: float | None
    rate: float | None


@dataclass(frozen=True, slots=True)
class Timing:
    """What is known of the steps; None = unknown."""

    step_time_s: float | None = None
    step_time_std_s: float | None = None
    steps: int | None = None
    notices: tuple[str, ...] = ()


def read_log(path: Path | None, regex: str | None) -> list[Line]:
    """The lines of a training log that match; empty without a log.

    Raises:
        UsageError: one option without the other, or a pattern that is none or names no known group.
        InputError: no line matches.
    """
    if path is None and regex is None:
        return []
    if path is None or regex is None:
        flag, other = ("--log-regex", "--log FILE") if path is None else ("--log", "--log-regex")
        raise UsageError(
            f"{flag} needs {other}", f"for example --log train.log --log-regex 'step (?P<step>\\d+)'; {_HELP}"
        )
    pattern = _pattern(regex)
    lines = [line for _, text in read_lines(path) if (line := _line(pattern, text)) is not None]
    if not lines:
        raise InputError(f"{path}: no line matches --log-regex {regex!r}", "try it on one line of the file first")
    return lines


def _pattern(regex: str) -> re.Pattern[str]:
    try:
        pattern = re.compile(regex)
    except (re.error, RecursionError, OverflowError) as error:
        raise UsageError(f"--log-regex {regex!r} is no regular expression: {error}") from None
    named = [name for name in pattern.groupindex if name in _GROUPS]
    if (pattern.groups != 1 and not named) or named == ["time"]:
        raise UsageError(f"--log-regex {regex!r} does not say what it finds", _HELP)
    return pattern


def _line(pattern: re.Pattern[str], text: str) -> Line | None:
    match = pattern.search(text)
    if match is None:
        return None
    found = {name: match[name] for name in pattern.groupindex if match[name] is not None}
    if not pattern.groupindex and match[1] is not None:
        found = {"rate": match[1]}  # as --throughput-regex of sweep: one number, samples/s
    numbers = {k: cells.number(v.replace(",", ""), {"": 1.0}) for k, v in found.items() if k != "time"}
    step_time_s = numbers.get("step_time_s")
    if step_time_s is None and (ms := numbers.get("step_time_ms")) is not None:
        step_time_s = ms / 1e3
    line = Line(numbers.get("step"), cells.timestamp(found["time"]) if "time" in found else None, step_time_s,
                numbers.get("rate"))  # fmt: skip
    useful = line.step is not None or (step_time_s or 0) > 0 or (line.rate or 0) > 0
    return line if useful else None


def span(lines: list[Line]) -> tuple[float, float] | None:
    """First and last time of a training log, or None where its lines carry none."""
    times = [line.time_s for line in lines if line.time_s is not None]
    return (min(times), max(times)) if len(times) > 1 and max(times) > min(times) else None


def timing(
    lines: list[Line], window: tuple[float, float], columns: Mapping[str, Any], steps: int | None, samples: int
) -> Timing:
    """The step time.

    Args:
        lines: of the training's log; those outside the window are left out where they carry a time.
        window: start and end, s.
        columns: what `--set` gave.
        steps: of `--steps`.
        samples: global batch, to turn a rate into a step time.

    Raises:
        UsageError: two sources at once.
    """
    steps = columns.get("steps") if steps is None else steps
    told = columns.get("step_time_s")
    if sum((bool(lines), steps is not None and told is None, told is not None)) > 1:
        raise UsageError("the step time is given twice", "give one of --steps, --log and --set step_time_s")
    length_s = window[1] - window[0]
    if told is not None:
        return Timing(told, columns.get("step_time_std_s"), steps)
    if steps is not None:
        return Timing(length_s / steps if length_s > 0 else None, None, steps)
    if not lines:
        return Timing()
    inside = [x for x in lines if x.time_s is None or window[0] <= x.time_s <= window[1]]
    each = [v for x in inside if (v := x.step_time_s or (samples / x.rate if x.rate else None))]
    if each:
        return _mean(each)
    return _counted([x for x in inside if x.step is not None], length_s)


def _mean(each: list[float]) -> Timing:
    dropped = round(WARM_UP * len(each) + 0.499) if len(each) > 3 else 0
    kept = each[dropped:]
    note = f"step time: mean of {len(kept)} lines of the log, the first {dropped} left out as warm-up"
    return Timing(fmean(kept), stdev(kept) if len(kept) > 2 else None, None, (note,))


def _counted(lines: list[Line], length_s: float) -> Timing:
    """From step numbers: with times their slope; without, all steps fill the window."""
    numbers = [x.step for x in lines if x.step is not None]
    strides = [b - a for a, b in pairwise(numbers)]
    if not strides or min(strides) <= 0:
        return Timing(notices=("the log's step numbers do not rise: no step time",))
    times = [x.time_s for x in lines if x.time_s is not None]
    if len(times) == len(numbers) and times[-1] > times[0]:
        each = [(b - a) / n for (a, b), n in zip(pairwise(times), strides, strict=True)]
        count = numbers[-1] - numbers[0]
        return Timing((times[-1] - times[0]) / count, stdev(each) if len(each) > 2 else None, round(count))
    count = numbers[-1] - numbers[0] + median(strides)
    note = f"the log's {count:g} steps are taken to fill the window of {length_s:.1f} s"
    return Timing(length_s / count if length_s > 0 else None, None, round(count), (note,))
