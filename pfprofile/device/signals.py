"""Turn the first Ctrl-C, SIGTERM or SIGHUP into an orderly end; ignore those after it until everything is tidy."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from pfprofile.errors import InterruptedSweepError

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@contextmanager
def interruptible() -> Iterator[None]:
    """Inside, a signal raises InterruptedSweepError in the main thread."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {s: signal.getsignal(s) for s in SIGNALS}

    def stop(number: int, _: FrameType | None) -> None:
        for other in SIGNALS:
            signal.signal(other, signal.SIG_IGN)
        raise InterruptedSweepError(
            f"interrupted by {signal.Signals(number).name}; what was measured is kept", "the same line again goes on"
        )

    for number in SIGNALS:
        # Someone who starts us with a signal ignored (nohup) means it.
        if before[number] is not signal.SIG_IGN:
            signal.signal(number, stop)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler if handler is not None else signal.SIG_DFL)
