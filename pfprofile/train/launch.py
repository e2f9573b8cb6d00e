"""The host process, seen from the parent, which never imports torch. What it forks is in `ranks`."""

from __future__ import annotations

import importlib.util
import os
import selectors
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Self

from pfprofile.errors import HardwareError
from pfprofile.train.process import LineReader, send

#: How long importing torch and answering may take before the host counts as dead.
HELLO_S = 180.0


class WorkerError(Exception):
    """A worker set ended early.

    Args:
        status: the row's status: oom, timeout or failed.
        reason: the row's error.
    """

    def __init__(self, status: str, reason: str) -> None:
        super().__init__(reason)
        self.status = status
        self.reason = reason


def require_torch() -> None:
    """Raises HardwareError naming the extra, where torch is not installed."""
    if importlib.util.find_spec("torch") is None:
        raise HardwareError(
            "training needs torch, which is not installed",
            "pip install 'pfprofile[train]', or answer from a recording with --replay PROFILE",
        )


class Host:
    """The host process. A context manager: leaving it kills every rank.

    Args:
        threads: computing threads of a rank on a CPU; 0 = torch's default.

    Attributes:
        torch_version: of the torch that trains.
        cuda_version: that torch's CUDA, None on a CPU build.
    """

    def __init__(self, threads: int = 0) -> None:
        require_torch()
        self.threads = threads
        self.torch_version: str | None = None
        self.cuda_version: str | None = None
        self._sets = 0
        self._log: IO[bytes] = tempfile.TemporaryFile(prefix="pfprofile-log-")  # noqa: SIM115 (closed in close)
        root = str(Path(__file__).resolve().parent.parent.parent)
        path = os.pathsep.join(p for p in (root, os.environ.get("PYTHONPATH", "")) if p)
        one = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": str(threads)} if threads else {}
        # Ranks of one machine talk over its loopback; those of several must not.
        here = os.environ.get("MASTER_ADDR", "localhost") in ("localhost", "127.0.0.1")
        loopback = {"GLOO_SOCKET_IFNAME": "lo"} if here else {}
        # PDEATHSIG follows the thread that forks: ask for it only from the main thread, which lives to the end.
        parent = os.getpid() if threading.current_thread() is threading.main_thread() else 0
        self._process = subprocess.Popen(
            [sys.executable, "-m", "pfprofile.train.host", str(parent)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._log, bufsize=0,
            env={**loopback, **os.environ, **one, "PYTHONPATH": path},
            start_new_session=True,  # Ctrl-C reaches only the parent, which ends the sweep in order
        )  # fmt: skip
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._commands = self._process.stdin.fileno()
        self._reader = LineReader(self._process.stdout.fileno())
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._reader.fd, selectors.EVENT_READ)
        self._waiting: list[dict[str, Any]] = []

    def __enter__(self) -> Self:
        try:
            hello = self.receive(time.monotonic() + HELLO_S)
        except WorkerError as error:
            self.close()
            raise HardwareError(f"torch cannot be started: {error.reason}", "check: python -c 'import torch'") from None
        except BaseException:
            self.close()
            raise
        self.torch_version, self.cuda_version = hello["torch_version"], hello["cuda_version"]
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    @property
    def pid(self) -> int:
        """Of the host process, which leads a process group."""
        return self._process.pid

    def close(self) -> None:
        """Close stdin, on which the host kills its ranks and leaves; kill it where it does not."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        try:
            self._process.wait(5)
        except subprocess.TimeoutExpired:
            self._process.terminate()
            try:
                self._process.wait(5)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
        self._selector.close()
        self._process.stdout.close()
        self._log.close()

    def command(self, message: dict[str, Any]) -> None:
        """Send one command. Raises WorkerError where the host is gone."""
        try:
            send(self._commands, message)
        except BrokenPipeError:
            raise WorkerError("failed", self._gone()) from None

    def receive(self, deadline_s: float) -> dict[str, Any]:
        """The next event, waiting until ``deadline_s`` (monotonic). Raises WorkerError: timeout, or the host died."""
        while not self._waiting:
            left = deadline_s - time.monotonic()
            if left <= 0 or not self._selector.select(left):
                raise WorkerError("timeout", "no answer in time")
            messages = self._reader.read()
            if messages is None:
                raise WorkerError("failed", self._gone())
            self._waiting += messages
        return self._waiting.pop(0)

    def _gone(self) -> str:
        return f"the training host process ended; its last words: {self.last_words()}"

    def last_words(self) -> str:
        """The last line that host or ranks wrote to stderr."""
        size = os.fstat(self._log.fileno()).st_size
        lines = os.pread(self._log.fileno(), 4096, max(0, size - 4096)).decode(errors="replace").split("\n")
        return next((line.strip() for line in reversed(lines) if line.strip()), "none")

    def next_set(self) -> int:
        """A number for the next worker set."""
        self._sets += 1
        return self._sets
