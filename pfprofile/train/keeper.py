"""Stands between pfprofile and somebody's command and leaves no process of it behind.

Run as ``python -m pfprofile.train.keeper PARENT COMMAND…``. It adopts whatever the command's processes orphan (a
launcher such as torchrun puts its workers into sessions of their own, where no process group reaches them). When its
stdin closes, on a signal, when its parent dies, or when the command ends, all of them are ended.
"""

from __future__ import annotations

import ctypes
import os
import select
import signal
import subprocess
import sys
import time
from pathlib import Path

from pfprofile.train.process import die_with_parent

_PR_SET_CHILD_SUBREAPER = 36
#: How long processes may take to leave after SIGTERM, s.
GRACE_S = 2.0
#: The exit code of a command that cannot be started, as a shell gives it.
NOT_FOUND = 127


def descendants(pid: int) -> list[int]:
    """All processes below one, as far as they can be seen."""
    found: list[int] = []
    try:
        tasks = list(Path(f"/proc/{pid}/task").iterdir())
        children = [int(c) for task in tasks for c in (task / "children").read_text(encoding="ascii").split()]
    except OSError:
        return found  # it has just ended; what it leaves behind is adopted and seen in the next look
    for child in children:
        found += [child, *descendants(child)]
    return found


def end_all(grace_s: float) -> None:
    """Ask everything below this process to leave, then make it; returns when nothing is left."""
    deadline = time.monotonic() + grace_s
    number = signal.SIGTERM
    asked: set[int] = set()
    while below := descendants(os.getpid()):
        if time.monotonic() >= deadline:
            number, asked = signal.SIGKILL, set()
        for pid in below:
            if pid not in asked:
                asked.add(pid)
                _send(pid, number)
        while _reap():
            pass
        time.sleep(0.01)


def _send(pid: int, number: int) -> None:
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        return  # it was faster


def _reap() -> bool:
    try:
        return os.waitpid(-1, os.WNOHANG)[0] != 0
    except ChildProcessError:
        return False


def main() -> None:
    """Entry point of the keeper process."""
    parent, command = int(sys.argv[1]), sys.argv[2:]
    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    wake, woken = os.pipe()
    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
        signal.signal(number, lambda *_: os.write(woken, b"x"))
    if parent:
        die_with_parent(parent, signal.SIGTERM)
    try:
        child = subprocess.Popen(command, stdin=subprocess.DEVNULL)
    except OSError as error:
        sys.stderr.write(f"{command[0]}: {error.strerror}\n")
        sys.exit(NOT_FOUND)
    watch = os.pidfd_open(child.pid)
    ready, _, _ = select.select([0, wake, watch], [], [])
    code = None
    if watch in ready:
        code = child.wait()
    end_all(GRACE_S if code is None else 0.0)
    sys.exit(0 if code is None else code if code >= 0 else 128 - code)


if __name__ == "__main__":
    main()
