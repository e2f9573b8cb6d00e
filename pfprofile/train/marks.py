"""Cut one measured window out of what a running command shows: the hook's marks, or rates in its log."""

from __future__ import annotations

import statistics
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from pfprofile.hook import MARK
from pfprofile.train.timing import LEAST_WARMUP_STEPS, MOST_WARMUP_WINDOWS, SETTLED, SUB_WINDOWS, Timing

#: A rate in a log is a mean over some steps already: so many lines make a window at the least.
LEAST_LINES = 3
#: Lines of the log that are not looked at: the first ones hold start-up.
SKIPPED_LINES = 1

Mark = tuple[float, float]


def read_marks(folder: Path) -> dict[str, list[Mark]]:
    """The marks of each process, as (monotonic s, samples); a mark that is only half written is left for later."""
    marks = {}
    for path in sorted(folder.glob("*.marks")):
        raw = path.read_bytes()
        whole = len(raw) - len(raw) % MARK.size
        marks[path.stem] = [(t / 1e9, samples) for t, samples in MARK.iter_unpack(raw[:whole])]
    return marks


@dataclass(frozen=True, slots=True)
class Cut:
    """A measured window: its timing, and the samples of one step over all processes (None = not said)."""

    timing: Timing
    samples: float | None


def settled_at(times: Sequence[float], window_s: float) -> int | None:
    """Index of the mark at which the step time has settled: two successive stretches agree. None = not yet.

    A stretch is at least `LEAST_WARMUP_STEPS` steps and a `SUB_WINDOWS`-th of the window; after so many stretches as
    `timing.warm_up` takes, the last one is good enough.
    """
    start, previous, stretches = 1, None, 0
    while True:
        end = max(start + LEAST_WARMUP_STEPS, bisect_left(times, times[start] + window_s / SUB_WINDOWS)) if (
            start < len(times)
        ) else len(times)  # fmt: skip
        if end >= len(times):
            return None
        pace = (times[end] - times[start]) / (end - start)
        stretches += 1
        if (previous is not None and abs(pace - previous) <= SETTLED * pace) or stretches >= MOST_WARMUP_WINDOWS:
            return end
        start, previous = end, pace


def cut_marks(marks: Mapping[str, Sequence[Mark]], since_s: float, window_s: float, steps: int | None) -> Cut | None:
    """The first whole window after ``since_s``; None = not there yet. The slowest process gives the step time."""
    after = {name: [m for m in given if m[0] >= since_s] for name, given in marks.items()}
    after = {name: given for name, given in after.items() if given}
    if not after:
        return None
    lead = [t for t, _ in after[min(after)]]
    begin = settled_at(lead, window_s)
    if begin is None:
        return None
    end = begin + steps if steps else max(begin + SUB_WINDOWS, bisect_left(lead, lead[begin] + window_s))
    if end >= len(lead):
        return None
    started_s, ended_s = lead[begin], lead[end]
    paces = []
    for given in after.values():
        inside = [t for t, _ in given if started_s <= t <= ended_s]
        if len(inside) > 1:
            paces.append((inside[-1] - inside[0]) / (len(inside) - 1))
    edges = [begin + round(i * (end - begin) / SUB_WINDOWS) for i in range(SUB_WINDOWS + 1)]
    parts = [(lead[b] - lead[a]) / (b - a) for a, b in pairwise(edges) if b > a]
    spread = statistics.stdev(parts) if len(parts) > 1 else None
    said = [statistics.fmean(s for t, s in given if started_s <= t <= ended_s) for given in after.values()
            if any(started_s <= t <= ended_s for t, _ in given)]  # fmt: skip
    samples = sum(said) if said and all(said) else None
    return Cut(Timing(end - begin, max(paces), spread, None, started_s, ended_s, begin), samples)


def cut_rates(
    rates: Sequence[Mark], since_s: float, window_s: float, steps: int | None, global_batch: int
) -> Timing | None:
    """The first whole window of (arrival s, samples/s) after ``since_s``; None = not there yet."""
    after = [m for m in rates if m[0] >= since_s][SKIPPED_LINES:]
    begin = next(
        (i for i in range(1, len(after))
         if abs(after[i][1] - after[i - 1][1]) <= SETTLED * after[i][1] or i >= MOST_WARMUP_WINDOWS), None,
    )  # fmt: skip
    if begin is None:
        return None
    started_s = after[begin][0]
    for end in range(begin + LEAST_LINES, len(after)):
        inside = [rate for _, rate in after[begin + 1 : end + 1]]
        # The lines of a log cover as many steps each, so it is their times that have a mean, not their rates.
        step_s = statistics.fmean(global_batch / rate for rate in inside)
        ended_s = after[end][0]
        done = max(1, round((ended_s - started_s) / step_s))
        if (done >= steps) if steps else (ended_s - started_s >= window_s):
            spread = statistics.stdev(global_batch / rate for rate in inside)
            return Timing(done, step_s, spread, None, started_s, ended_s, begin)
    return None
