"""The sampler's process. Run as ``python -m pfprofile.device.sampling OWNER RATE_HZ OPENER UUID…``.

Orders are JSON lines on stdin: ``begin`` with a number of devices, and ``end``, which is answered with the `Ticks`.
It ends when its orders or its owner end, whatever comes first.
"""

from __future__ import annotations

import json
import os
import select
import signal
import sys
import time

from pfprofile.device.base import Device
from pfprofile.device.ticks import look_until
from pfprofile.device.watchdog import reopen
from pfprofile.errors import HardwareError


class Orders:
    """The lines on stdin, and the owner's life."""

    def __init__(self, owner: int) -> None:
        self.owner = owner
        self.over = False
        self._rest = b""
        self._lines: list[bytes] = []

    def wait(self, within_s: float | None) -> bool:
        """Whether an order has come, or there will be none any more."""
        if self._lines or self.over:
            return True
        ready = select.select([0, self.owner], [], [], within_s)[0]
        if 0 in ready:
            chunk = os.read(0, 65536)
            self.over = not chunk
            *self._lines, self._rest = (self._rest + chunk).split(b"\n")
        self.over |= self.owner in ready
        return bool(self._lines) or self.over

    def next(self) -> dict[str, object] | None:
        """The next order; None = there will be none."""
        while not self._lines and not self.over:
            self.wait(None)
        return None if not self._lines else json.loads(self._lines.pop(0))


def serve(device: Device, orders: Orders, rate_hz: float) -> None:
    """Until there are no more orders."""
    while (order := orders.next()) is not None:
        if order["op"] != "begin":
            continue
        ticks = look_until(device, int(str(order["n_gpus"])), orders.wait, time.process_time, rate_hz)
        if orders.next() is None:
            return
        _write(json.dumps(ticks.message()).encode() + b"\n")


def _write(body: bytes) -> None:
    view = memoryview(body)
    while view:
        view = view[os.write(1, view):]  # fmt: skip


def main() -> None:
    """Entry point of the process."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    pid, rate_hz, opener, uuids = int(sys.argv[1]), float(sys.argv[2]), sys.argv[3], sys.argv[4:]
    try:
        owner = os.pidfd_open(pid)
        if os.getppid() != pid:
            return
        device = reopen(opener, uuids)
    except (ProcessLookupError, HardwareError) as error:
        _write(json.dumps({"refused": str(error)}).encode() + b"\n")
        return
    _write(b'{"ready": true}\n')
    try:
        serve(device, Orders(owner), rate_hz)
    except BrokenPipeError:
        return
    finally:
        device.close()


if __name__ == "__main__":
    main()
