"""Progress of a sweep on stderr: a bar on a terminal, else a line a point."""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping
from typing import Any

from pfprofile.cli._output import say
from pfprofile.units import counted, format_clock, format_duration, format_power, format_rate


def trial_words(row: Mapping[str, Any]) -> str:
    """One trial in one line."""
    passes = f" × {row['accum_steps']} passes" if row["accum_steps"] > 1 else ""
    clock = format_clock(row["requested_clock_mhz"])
    where = f"{counted(row['n_gpus'], 'GPU')} × batch {row['local_batch']}{passes} @ {clock}"
    if row["status"] != "ok":
        return f"{where}: {row['status']}: {row.get('error')}"
    batch = row["n_gpus"] * row["local_batch"] * row["accum_steps"]
    rate = f"{format_duration(row['step_time_s'])} a step, {format_rate(batch / row['step_time_s'])}"
    power, doubt = row.get("power_w"), row.get("error")
    power_words = f", {format_power(power)}" if power is not None else ""
    return f"{where}: {rate}{power_words}" + (f" ({doubt})" if doubt else "")


class LineProgress:
    """A line a point; for logs and pipes."""

    def __init__(self) -> None:
        self._done = self._kept = 0
        self._began_s = time.monotonic()

    def begin(self, total: int, done: int) -> None:
        """So many trials are known, so many of them done."""
        self._done = self._kept = done
        self._began_s = time.monotonic()

    def trial(self, row: Mapping[str, Any], left: int) -> None:
        """A trial has ended."""
        self._done += 1
        pace_s = (time.monotonic() - self._began_s) / (self._done - self._kept)
        eta = f" (about {format_duration(left * pace_s)} left)" if left else ""
        say(f"[{self._done}/{self._done + left}] {trial_words(row)}{eta}")

    def end(self) -> None:
        """The sweep is over."""


class BarProgress:
    """A bar with the time left; failed and doubtful trials stay above it."""

    def __init__(self) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

        self._bar = Progress(
            BarColumn(), MofNCompleteColumn(), TimeRemainingColumn(), TextColumn("{task.description}"),
            console=Console(stderr=True),
        )  # fmt: skip
        self._task = self._bar.add_task("starting", total=None)
        self._done = 0

    def begin(self, total: int, done: int) -> None:
        """So many trials are known, so many of them done."""
        self._done = done
        self._bar.update(self._task, total=total, completed=done)
        self._bar.start()

    def trial(self, row: Mapping[str, Any], left: int) -> None:
        """A trial has ended."""
        self._done += 1
        words = trial_words(row)
        self._bar.update(self._task, total=self._done + left, completed=self._done, description=words)
        if row["status"] != "ok" or row.get("error"):
            self._bar.console.print(words, markup=False, highlight=False)

    def end(self) -> None:
        """The sweep is over."""
        self._bar.stop()


def make_progress() -> LineProgress | BarProgress:
    """What fits stderr."""
    return BarProgress() if sys.stderr.isatty() else LineProgress()
