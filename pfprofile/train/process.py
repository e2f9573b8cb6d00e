"""Small process matters that launcher and ranks share: JSON lines on pipes, death with the parent."""

from __future__ import annotations

import ctypes
import json
import os
import signal
from typing import Any

_PR_SET_PDEATHSIG = 1


def die_with_parent(parent_pid: int, signal_number: int = signal.SIGKILL) -> None:
    """Have the kernel send this process a signal when its parent dies; leaves at once if it is dead (Linux)."""
    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, int(signal_number), 0, 0, 0)
    if os.getppid() != parent_pid:
        os._exit(1)


def send(fd: int, message: dict[str, Any]) -> None:
    """Write one JSON line in one write: under PIPE_BUF it cannot mix with another process's line."""
    if "error" in message:
        message = {**message, "error": str(message["error"])[:1500]}
    os.write(fd, json.dumps(message).encode() + b"\n")


class LineReader:
    """JSON lines from a pipe, whole lines only."""

    def __init__(self, fd: int) -> None:
        self.fd = fd
        self._rest = b""

    def read(self) -> list[dict[str, Any]] | None:
        """The messages that one read brings (perhaps none yet); None at the end of the stream."""
        chunk = os.read(self.fd, 65536)
        if not chunk:
            return None
        *lines, self._rest = (self._rest + chunk).split(b"\n")
        return [json.loads(line) for line in lines]
