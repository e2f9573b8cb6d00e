"""The launcher, on the parent's side. It never imports torch: it talks to the host process, which forks the ranks."""

from __future__ import annotations

import importlib.util
import os
import selectors
import signal
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import asdict
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Self

from pfprofile.errors import HardwareError, InputError, PfprofileError, UsageError
from pfprofile.train.process import LineReader, send
from pfprofile.train.resolve import WorkloadSpec

#: How long importing torch and answering may take before the host counts as dead.
HELLO_S = 180.0
#: How long a worker set may take to become ready, from the command to start on.
READY_S = 300.0
#: How long to wait for the cause of a failure after its first sign, s.
CAUSE_S = 0.5
#: What a rank says when another one has gone.
_BROKEN_CONNECTION = ("Connection closed", "Connection reset", "Broken pipe", "NCCL", "gloo", "DistBackendError")


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
        # PDEATHSIG follows the thread that forks: ask for it only from the main thread, which lives to the end.
        parent = os.getpid() if threading.current_thread() is threading.main_thread() else 0
        self._process = subprocess.Popen(
            [sys.executable, "-m", "pfprofile.train.host", str(parent)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._log, bufsize=0,
            env={"GLOO_SOCKET_IFNAME": "lo", **os.environ, **one, "PYTHONPATH": path},
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

    def describe(self, spec: WorkloadSpec, given: dict[str, str]) -> dict[str, Any]:
        """What a workload says of itself, and its settings with those that were given.

        Raises:
            UsageError, InputError: it cannot be loaded, is no workload, or has no such setting.
        """
        ranks = WorkerSet(self, spec, n_ranks=1, local_batch=1, settings=given, describe=True)
        try:
            return ranks.wait("described", time.monotonic() + READY_S)
        except WorkerError as error:
            raise InputError(f"workload {spec.name}: {error.reason}") from None
        finally:
            ranks.stop()

    def next_set(self) -> int:
        """A number for the next worker set."""
        self._sets += 1
        return self._sets


class WorkerSet:
    """The ranks of one (n_gpus, local_batch, accum_steps, precision); serves all clocks. Never reused after an error.

    Args:
        host: the host that forks them.
        spec: where the workload is.
        n_ranks: processes, one a device.
        local_batch: samples of a rank in one forward pass.
        settings: the workload's settings, complete.
        device: ``cpu`` or ``cuda``.
        environment: variables for the ranks, such as CUDA_VISIBLE_DEVICES.
        deadline_s: the longest that one collective may take, s.
        describe: only ask what the workload is.
    """

    def __init__(
        self, host: Host, spec: WorkloadSpec, *, n_ranks: int, local_batch: int, settings: dict[str, Any],
        accum_steps: int = 1, precision: str = "fp32", device: str = "cpu", seed: int = 0,
        environment: dict[str, str] | None = None, deadline_s: float = 600.0, describe: bool = False,
    ) -> None:  # fmt: skip
        self.host = host
        self.number = host.next_set()
        host.command({
            "op": "start", "set": self.number, "workload": asdict(spec), "n_ranks": n_ranks,
            "local_batch": local_batch, "settings": settings, "accum_steps": accum_steps, "precision": precision,
            "device": device, "seed": seed, "environment": environment or {}, "deadline_s": deadline_s,
            "describe": describe, "threads": host.threads,
        })  # fmt: skip
        self._ready_missing = n_ranks

    def wait_ready(self, deadline_s: float) -> None:
        """Until every rank has built its network. Raises WorkerError; the set is stopped then."""
        while self._ready_missing:
            self.wait("ready", deadline_s)
            self._ready_missing -= 1

    def measure(self, *, window_s: float, steps: int | None, deadline_s: float) -> dict[str, Any]:
        """One measured window, as `timing.Timing` with memory_peak_bytes.

        Raises:
            WorkerError: out of memory, a lost rank, an exception, or no answer by ``deadline_s`` (monotonic).
        """
        self.host.command({"op": "measure", "set": self.number, "window_s": window_s, "steps": steps})
        result = self.wait("result", deadline_s)
        while result["rank"] != 0:
            result = self.wait("result", deadline_s)
        return result

    def wait(self, event: str, deadline_s: float) -> dict[str, Any]:
        """The next ``event`` of this set; what other sets left behind is dropped. Any bad news stops the set."""
        try:
            while True:
                message = self.host.receive(deadline_s)
                if message.get("set") != self.number:
                    continue
                if message["event"] == event:
                    return message
                self._check(message)
        except (WorkerError, PfprofileError):
            self.stop()
            raise

    def _check(self, message: dict[str, Any]) -> None:
        if message["event"] not in ("error", "exit"):
            return
        if message.get("kind") == "user":
            kind = UsageError if message["exit_code"] == UsageError.exit_code else InputError
            raise kind(message["error"], message["hint"])
        # A lost rank breaks its neighbours' connections, and their complaint may come first: wait for the cause.
        news = [message, *self._more_news(time.monotonic() + CAUSE_S)]
        raise _cause(min(news, key=_severity))

    def _more_news(self, deadline_s: float) -> list[dict[str, Any]]:
        news: list[dict[str, Any]] = []
        while True:
            try:
                message = self.host.receive(deadline_s)
            except WorkerError:
                return news
            if message.get("set") == self.number and message["event"] in ("error", "exit"):
                news.append(message)
                if _severity(message) == 0:
                    return news

    def stop(self) -> None:
        """Kill the ranks. What they still say is dropped, since the next set has another number."""
        try:
            self.host.command({"op": "stop", "set": self.number})
        except WorkerError as error:
            sys.stderr.write(f"note: {error.reason}\n")


def _severity(message: dict[str, Any]) -> int:
    """0 for what certainly is the cause, more for what may follow from another rank's end."""
    if message["event"] == "exit":
        return 0 if message["code"] < 0 else 4
    if message["kind"] == "oom":
        return 0
    return 2 if any(phrase in message["error"] for phrase in _BROKEN_CONNECTION) else 1


def _cause(message: dict[str, Any]) -> WorkerError:
    rank = f"rank {message['rank']}"
    if message["event"] == "error":
        return WorkerError(message["kind"], f"{rank}: {message['error']}")
    if message["code"] >= 0:
        return WorkerError("failed", f"{rank} left with exit code {message['code']}")
    name = signal.Signals(-message["code"]).name
    hint = " (the kernel does so when memory runs out)" if name == "SIGKILL" else ""
    return WorkerError("failed", f"{rank} was killed by {name}{hint}")
