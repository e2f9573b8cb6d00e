"""Hold SM clocks and let them go again, whatever happens in between.

The order is: watchdog armed, journal on the disk, lock. Whatever is missing of the first two, nothing is locked.
"""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from pfprofile.device.base import Device, RefusedError
from pfprofile.device.locks import LockJournal, journal_for
from pfprofile.errors import HardwareError

#: How long a watchdog may take to open the devices, and to answer after that, s.
ARM_S, ANSWER_S = 60.0, 10.0
#: How long a lock lasts where its holder does not say, s.
HOLD_S = 3600.0


class Watchdog:
    """The watchdog process, seen from the owner. Raises HardwareError where it does not come up or does not answer."""

    def __init__(self, device: Device) -> None:
        root = str(Path(__file__).resolve().parents[2])
        path = os.pathsep.join(p for p in (root, os.environ.get("PYTHONPATH", "")) if p)
        self._process = subprocess.Popen(
            [sys.executable, "-m", "pfprofile.device.watchdog", str(os.getpid()), device.opener, *device.uuids],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, bufsize=0,
            env={**os.environ, "PYTHONPATH": path}, start_new_session=True,
        )  # fmt: skip
        self._rest = b""
        try:
            answer = self._answer(ARM_S)
            if "ready" not in answer:
                raise HardwareError(f"the clock watchdog does not start: {answer.get('refused', answer)}")
        except BaseException:
            self.kill()
            raise

    @property
    def pid(self) -> int:
        """Of the process."""
        return self._process.pid

    def order(self, **order: Any) -> dict[str, Any]:
        """Send an order and wait until it is acknowledged."""
        assert self._process.stdin is not None
        try:
            os.write(self._process.stdin.fileno(), json.dumps(order).encode() + b"\n")
        except BrokenPipeError:
            raise HardwareError("the clock watchdog has died", "no clock is locked without it") from None
        return self._answer(ANSWER_S)

    def _answer(self, within_s: float) -> dict[str, Any]:
        assert self._process.stdout is not None
        deadline = time.monotonic() + within_s
        while b"\n" not in self._rest:
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([self._process.stdout], [], [], left)[0]:
                raise HardwareError("the clock watchdog does not answer", "no clock is locked without it")
            chunk = os.read(self._process.stdout.fileno(), 65536)
            if not chunk:
                raise HardwareError("the clock watchdog has died", "no clock is locked without it")
            self._rest += chunk
        line, _, self._rest = self._rest.partition(b"\n")
        answer: dict[str, Any] = json.loads(line)
        return answer

    def kill(self) -> None:
        """End it. Only where nothing is locked."""
        self._process.kill()
        self._close()

    def dismiss(self) -> None:
        """Nothing is locked any more."""
        try:
            self.order(op="bye")
        except HardwareError:
            self._process.kill()
        self._close()

    def leave(self) -> None:
        """Something stays locked: the watchdog waits for this process to end and tries again then."""
        self._process.returncode = 0  # it is not waited for, on purpose
        self._close_pipes()

    def _close(self) -> None:
        self._process.wait()
        self._close_pipes()

    def _close_pipes(self) -> None:
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                pipe.close()


class ClockGuard:
    """A context manager around every lock; leaving it resets every device that was locked.

    Args:
        device: whose clocks are held.
    """

    def __init__(self, device: Device) -> None:
        self.device = device
        self._locked: dict[int, float] = {}
        self._watchdog: Watchdog | None = None
        self._journal: LockJournal | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        try:
            self.release()
        except HardwareError:
            if self._watchdog is not None:
                self._watchdog.leave()
            raise
        if self._watchdog is not None:
            self._watchdog.dismiss()
            self._watchdog = None

    def hold(self, n_gpus: int, clock_mhz: float | None, *, for_s: float = HOLD_S, groups: Sequence[int] = ()) -> None:
        """Lock the first n devices at a clock.

        Args:
            n_gpus: how many.
            clock_mhz: the clock; None = unlocked.
            for_s: the watchdog resets the clocks after this, s.
            groups: process groups of workers, which the watchdog ends when this process dies.

        Raises:
            HardwareError: the driver refuses, or there is no watchdog or no journal, and so no lock.
        """
        if clock_mhz is None:
            self.release()
            return
        self._arm(range(n_gpus), for_s, groups)
        for index in range(n_gpus):
            before = self._locked.get(index)
            # Noted before it is locked: an interruption between the two must not leave it locked. And locked again
            # where we hold it already: a lock cannot be read back, and somebody else may have changed it.
            self._locked[index] = clock_mhz
            try:
                self.device.lock_clock(index, clock_mhz)
            except RefusedError:
                if before is None:
                    del self._locked[index]
                else:
                    self._locked[index] = before
                raise

    def _arm(self, indices: Sequence[int], for_s: float, groups: Sequence[int]) -> None:
        """Watchdog, then journal."""
        try:
            if self._watchdog is None:
                self._watchdog = Watchdog(self.device)
            uuids = [self.device.uuids[i] for i in sorted({*indices, *self._locked})]
            journal = journal_for(self._watchdog.pid, self.device.opener, uuids)
            answer = self._watchdog.order(
                op="hold", indices=list(indices), for_s=for_s, groups=list(groups), journal=str(journal.path)
            )
            if answer["expired"]:
                self._locked.clear()
            if journal != self._journal:
                # Noted first, so that an interruption in between leaves no file behind.
                self._journal = journal
                journal.write()
        except HardwareError:
            if self._watchdog is not None:
                self._abandon()
            raise

    def _abandon(self) -> None:
        """Without watchdog or journal nothing may stay locked; the next hold begins anew."""
        assert self._watchdog is not None
        self.release()  # where even that fails, a watchdog that still lives tries again at our end
        if self._watchdog is not None:
            self._watchdog.kill()
            self._watchdog = None

    def expired(self) -> bool:
        """Whether the watchdog has taken the present lock away at its deadline."""
        if self._watchdog is None or not self._locked:
            return False
        return bool(self._watchdog.order(op="ask")["expired"])

    def release(self) -> None:
        """Reset every device that was locked; all are tried before an error is raised."""
        failures = []
        for index in list(self._locked):
            try:
                self.device.reset_clock(index)
                del self._locked[index]
            except HardwareError as error:
                failures.append(error)
        if failures:
            # The journal stays, and the watchdog tries again when this process ends.
            raise failures[0]
        if self._journal is not None:
            self._journal.remove()
            self._journal = None
            if self._watchdog is not None:
                self._tell_released(self._watchdog)

    def _tell_released(self, watchdog: Watchdog) -> None:
        try:
            watchdog.order(op="released")
        except HardwareError:
            watchdog.kill()  # it is of no use any more; the next hold starts another
            self._watchdog = None
