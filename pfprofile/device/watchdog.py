"""Resets clocks when their owner dies. Run as ``python -m pfprofile.device.watchdog OWNER OPENER UUID…``.

It leads its own session, ignores INT, TERM and HUP, opens the devices before it says that it is ready, and watches the
owner by a pidfd: the end of a pipe alone would not do, since a forked child may hold its other end. Orders and answers
are JSON lines on stdin and stdout. When the owner dies it ends the worker groups it was told of, resets the clocks and
removes the journal; a hold that outlives its deadline is reset while the owner lives.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import sys
import time
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from pfprofile.device.base import Device
from pfprofile.device.locks import PART, start_time
from pfprofile.errors import HardwareError

#: How long worker groups may take to leave after SIGTERM, s. The hosts of ranks and commands end what is theirs then.
GRACE_S = 5.0
#: How often a failed reset is tried, and the pause between, s.
TRIES, PAUSE_S = 5, 0.2


def reopen(opener: str, uuids: Sequence[str]) -> Device:
    """Open devices by UUID through ``module:function``. Raises HardwareError."""
    module, _, function = opener.partition(":")
    device: Device = getattr(import_module(module), function)(tuple(uuids))
    return device


class Watch:
    """What the watchdog knows.

    Attributes:
        held: indices that may be locked.
        groups: worker process groups → start time of their leaders.
        deadline_s: monotonic; None = nothing is held.
        expired: the last hold was ended by its deadline.
    """

    def __init__(self, device: Device) -> None:
        self.device = device
        self.held: set[int] = set()
        self.groups: dict[int, int | None] = {}
        self.journal: Path | None = None
        self.deadline_s: float | None = None
        self.expired = False

    def obey(self, order: dict[str, Any]) -> dict[str, Any]:
        """Take an order; the answer acknowledges it."""
        if order["op"] == "hold":
            self.held |= set(order["indices"])
            self.journal = Path(order["journal"])
            self.groups = {g: start_time(g) for g in order["groups"]}
            self.deadline_s = time.monotonic() + order["for_s"]
            answer = {"expired": self.expired}
            self.expired = False
            return answer
        if order["op"] == "released":
            self.held, self.deadline_s, self.expired = set(), None, False
        return {"expired": self.expired}

    def expire(self) -> None:
        """The deadline has passed: the owner may be stuck in a call that no signal reaches."""
        self.deadline_s, self.expired = None, True
        self.reset()

    def owner_died(self) -> None:
        """Groups first, locked or not: nothing shall run at a clock that is no longer its own, or on for nobody."""
        self._end_groups()
        if self.held and self.reset() and self.journal is not None:
            self.journal.unlink(missing_ok=True)
            self.journal.with_suffix(PART).unlink(missing_ok=True)

    def reset(self) -> bool:
        """Reset all that may be locked; whether that worked. Indices stay held: a lock may still be on its way."""
        left = set(self.held)
        for attempt in range(TRIES):
            for index in sorted(left):
                try:
                    self.device.reset_clock(index)
                    left.discard(index)
                except HardwareError as error:
                    sys.stderr.write(f"{error}\n")
            if not left:
                break
            if attempt + 1 < TRIES:
                time.sleep(PAUSE_S)
        return not left

    def _end_groups(self) -> None:
        waiting = []
        for group, began in self.groups.items():
            if began is None or start_time(group) not in (None, began):
                continue  # it had ended before, and somebody else has its number now
            with contextlib.suppress(ProcessLookupError):
                waiting.append(os.pidfd_open(group))
            with contextlib.suppress(ProcessLookupError):
                os.killpg(group, signal.SIGTERM)
        deadline = time.monotonic() + GRACE_S
        while waiting and (left := deadline - time.monotonic()) > 0:
            for ended in select.select(waiting, [], [], left)[0]:
                waiting.remove(ended)
                os.close(ended)
        for group, began in self.groups.items():
            if began is not None and start_time(group) in (None, began):
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(group, signal.SIGKILL)


def _watch(owner: int, watch: Watch) -> None:
    """Until the owner says goodbye or dies."""
    orders, rest = [0, owner], b""
    while True:
        left = None if watch.deadline_s is None else max(0.0, watch.deadline_s - time.monotonic())
        ready = select.select(orders, [], [], left)[0]
        if owner in ready:
            return watch.owner_died()
        if 0 in ready:
            chunk = os.read(0, 65536)
            if not chunk:
                orders = [owner]  # the pipe has broken; whether the owner lives its pidfd tells
            *lines, rest = (rest + chunk).split(b"\n")
            for order in map(json.loads, lines):
                answer = watch.obey(order)
                with contextlib.suppress(BrokenPipeError):
                    os.write(1, json.dumps(answer).encode() + b"\n")
                if order["op"] == "bye" and not watch.held:
                    return None
        if watch.deadline_s is not None and time.monotonic() >= watch.deadline_s:
            watch.expire()


def main() -> None:
    """Entry point of the watchdog process."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    pid, opener, uuids = int(sys.argv[1]), sys.argv[2], sys.argv[3:]
    try:
        owner = os.pidfd_open(pid)
        if os.getppid() != pid:
            return  # the owner died before we could watch it; nothing is locked yet
        device = reopen(opener, uuids)
    except (ProcessLookupError, HardwareError) as error:
        os.write(1, json.dumps({"refused": str(error)}).encode() + b"\n")
        return
    os.write(1, b'{"ready": true}\n')
    try:
        _watch(owner, Watch(device))
    finally:
        device.close()


if __name__ == "__main__":
    main()
