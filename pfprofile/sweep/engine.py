"""The one loop: choose a point, run it, keep the row."""

from __future__ import annotations

import time
from collections.abc import Callable

from pfprofile.sweep.chooser import Chooser
from pfprofile.sweep.journal import Journal
from pfprofile.sweep.request import Options, Reporter, Runner
from pfprofile.units import counted


def run_points(
    chooser: Chooser, runner: Runner, journal: Journal, options: Options, reporter: Reporter,
    max_time_s: float | None = None, kept: Callable[[str], None] = lambda _: None,
) -> bool:  # fmt: skip
    """Run until the chooser has nothing left or the time is up; ``kept`` is told each new trial's id.

    Returns:
        whether everything was measured.
    """
    began = time.monotonic()
    left = chooser.left(journal.rows)
    reporter.progress.begin(left + journal.kept, journal.kept)
    try:
        while (point := chooser.next_point(journal.rows)) is not None:
            if max_time_s is not None and time.monotonic() - began >= max_time_s:
                left = chooser.left(journal.rows)
                reporter.notice(f"--max-time is up with {counted(left, 'trial')} left; the same line again goes on")
                return False
            journal.add(runner.run(point, options))
            kept(journal.rows[-1]["trial_id"])
            reporter.progress.trial(journal.rows[-1], chooser.left(journal.rows))
    finally:
        reporter.progress.end()
    return True
