"""Worker sets, seen from the parent: start, wait, measure, and name the cause when one ends early."""

from __future__ import annotations

import signal
import sys
import time
from dataclasses import asdict
from typing import Any

from pfprofile.errors import InputError, PfprofileError, UsageError
from pfprofile.train.launch import Host, WorkerError
from pfprofile.train.resolve import WorkloadSpec

#: How long a workload may take to load and describe itself, s.
DESCRIBE_S = 300.0
#: How long to wait for the cause of a failure after its first sign, s.
CAUSE_S = 0.5
#: What a rank says when another one has gone.
_BROKEN_CONNECTION = ("Connection closed", "Connection reset", "Broken pipe", "NCCL", "gloo", "DistBackendError")


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
        world_size, rank_offset, init_method: where these ranks are a part of a set over several nodes.
        describe: only ask what the workload is.
    """

    def __init__(
        self, host: Host, spec: WorkloadSpec, *, n_ranks: int, local_batch: int, settings: dict[str, Any],
        accum_steps: int = 1, precision: str = "fp32", device: str = "cpu", seed: int = 0,
        environment: dict[str, str] | None = None, deadline_s: float = 600.0, describe: bool = False,
        world_size: int | None = None, rank_offset: int = 0, init_method: str | None = None,
    ) -> None:  # fmt: skip
        self.host = host
        self.number = host.next_set()
        host.command({
            "op": "start", "set": self.number, "workload": asdict(spec), "n_ranks": n_ranks,
            "local_batch": local_batch, "settings": settings, "accum_steps": accum_steps, "precision": precision,
            "device": device, "seed": seed, "environment": environment or {}, "deadline_s": deadline_s,
            "describe": describe, "threads": host.threads,
            "world_size": world_size or n_ranks, "rank_offset": rank_offset, "init_method": init_method,
        })  # fmt: skip
        self._ready_missing = n_ranks
        self._first_rank = rank_offset

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
        while result["rank"] != self._first_rank:
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


def describe(host: Host, spec: WorkloadSpec, given: dict[str, str], device: str = "cpu") -> dict[str, Any]:
    """What a workload says of itself: facts, defaults on that kind of device, and its settings with those given.

    Raises:
        UsageError, InputError: it cannot be loaded, is no workload, or has no such setting.
    """
    ranks = WorkerSet(host, spec, n_ranks=1, local_batch=1, settings=given, device=device, describe=True)
    try:
        return ranks.wait("described", time.monotonic() + DESCRIBE_S)
    except WorkerError as error:
        raise InputError(f"workload {spec.name}: {error.reason}") from None
    finally:
        ranks.stop()
