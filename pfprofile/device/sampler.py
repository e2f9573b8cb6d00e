"""Read the sensors of the devices in use at a steady rate while something trains.

One sampler serves a sweep, a window at a time. Devices whose sensors another process can read as well are sampled by a
process of their own, since a thread beside a busy Python thread is milliseconds late; others by a thread of ours.
"""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
import threading
import time
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from pfprofile.device.base import Device
from pfprofile.device.ticks import DEFAULT_RATE_HZ, Punctuality, Ticks, look_until
from pfprofile.errors import HardwareError
from pfprofile.telemetry import Samples

#: How long the process may take to open the devices, and to hand over a window, s.
START_S, ANSWER_S = 60.0, 30.0


class Sampler:
    """A context manager; leaving it ends the process, if there is one.

    Args:
        device: whose sensors.
        rate_hz: looks a second.

    Attributes:
        punctuality: of all windows so far.
        trouble: why there is no process although there should be one, in words; "" = nothing is wrong.
    """

    def __init__(self, device: Device, rate_hz: float = DEFAULT_RATE_HZ) -> None:
        self.device, self.rate_hz = device, rate_hz
        self.trouble = ""
        self._process = _Process(device, rate_hz) if device.sensors_are_shared else None
        self.punctuality = Punctuality(self._process is not None)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._end_process()

    def window(self, n_gpus: int) -> Window:
        """Samples the first n devices while it is entered."""
        if self._process is not None:
            try:
                self._process.ready()
            except HardwareError as error:
                # Our own connection to the driver still works: sampled less punctually is better than not at all.
                self.trouble = str(error)
                self._end_process()
                self.punctuality = Punctuality(process=False)
        return Window(self, self._process or _Thread(self.device, self.rate_hz), n_gpus)

    def _end_process(self) -> None:
        if self._process is not None:
            self._process.end()
            self._process = None


class Window:
    """What was read while it was entered; to be asked after it was left."""

    def __init__(self, sampler: Sampler, looker: _Process | _Thread, n_gpus: int) -> None:
        self._sampler, self._looker, self.n_gpus = sampler, looker, n_gpus
        self.ticks = Ticks([[] for _ in range(n_gpus)])

    def __enter__(self) -> Self:
        self._looker.begin(self.n_gpus)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.ticks = self._looker.finish(self.n_gpus)
        self._sampler.punctuality.add(self.ticks)

    @property
    def trouble(self) -> str | None:
        """Why sampling ended early, or None."""
        return self.ticks.trouble

    def samples(self, started_s: float, ended_s: float) -> list[Samples]:
        """What was read between two monotonic times, one `Samples` a device."""
        return [Samples.of(rows, started_s, ended_s) for rows in self.ticks.rows]

    def limits(self, started_s: float, ended_s: float) -> dict[str, float]:
        """How often each limit was seen between two times, as a part of the looks."""
        looks = sum(sum(started_s <= row[0] <= ended_s for row in rows) for rows in self.ticks.rows)
        seen: dict[str, float] = {}
        for when_s, _, limits in self.ticks.limits:
            if started_s <= when_s <= ended_s:
                for limit in limits:
                    seen[limit] = seen.get(limit, 0.0) + 1.0 / max(1, looks)
        return seen


class _Thread:
    """In the controller, never in a training rank."""

    def __init__(self, device: Device, rate_hz: float) -> None:
        self.device, self.rate_hz = device, rate_hz
        self._stop = threading.Event()
        self._found: Ticks | None = None
        self._thread: threading.Thread | None = None

    def begin(self, n_gpus: int) -> None:
        self._thread = threading.Thread(target=self._run, args=(n_gpus,), name="sampler", daemon=True)
        self._thread.start()

    def _run(self, n_gpus: int) -> None:
        self._found = look_until(self.device, n_gpus, self._stop.wait, time.thread_time, self.rate_hz)

    def finish(self, n_gpus: int) -> Ticks:
        assert self._thread is not None
        self._stop.set()
        self._thread.join()
        return self._found or Ticks([[] for _ in range(n_gpus)], trouble="the sampler has failed")


class _Process:
    """Seen from the controller. It ends with us: it watches us, and its orders end with us."""

    def __init__(self, device: Device, rate_hz: float) -> None:
        root = str(Path(__file__).resolve().parents[2])
        path = os.pathsep.join(p for p in (root, os.environ.get("PYTHONPATH", "")) if p)
        self._process = subprocess.Popen(
            [sys.executable, "-m", "pfprofile.device.sampling", str(os.getpid()), str(rate_hz), device.opener,
             *device.uuids],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, bufsize=0,
            env={**os.environ, "PYTHONPATH": path}, start_new_session=True,  # Ctrl-C is for the controller
        )  # fmt: skip
        self._is_ready = False
        self._rest = b""

    def ready(self) -> None:
        """Wait until it has opened the devices. Raises HardwareError."""
        if self._is_ready:
            return
        answer = self._answer(START_S)
        if "ready" not in answer:
            raise HardwareError(f"the sampler process does not start: {answer.get('refused', answer)}")
        self._is_ready = True

    def begin(self, n_gpus: int) -> None:
        self._order(op="begin", n_gpus=n_gpus)

    def finish(self, n_gpus: int) -> Ticks:
        try:
            self._order(op="end")
            return Ticks.of_message(self._answer(ANSWER_S))
        except HardwareError as error:
            self._is_ready = False  # the next window asks again, and falls back
            return Ticks([[] for _ in range(n_gpus)], trouble=str(error))

    def _order(self, **order: Any) -> None:
        assert self._process.stdin is not None
        try:
            os.write(self._process.stdin.fileno(), json.dumps(order).encode() + b"\n")
        except BrokenPipeError:
            if order["op"] == "end":
                raise HardwareError("the sampler process has died") from None

    def _answer(self, within_s: float) -> dict[str, Any]:
        assert self._process.stdout is not None
        deadline_s = time.monotonic() + within_s
        parts = [self._rest]
        while b"\n" not in parts[-1]:
            left_s = deadline_s - time.monotonic()
            if left_s <= 0 or not select.select([self._process.stdout], [], [], left_s)[0]:
                raise HardwareError("the sampler process does not answer")
            chunk = os.read(self._process.stdout.fileno(), 1 << 20)
            if not chunk:
                raise HardwareError("the sampler process has died")
            parts.append(chunk)
        line, _, self._rest = b"".join(parts).partition(b"\n")
        answer: dict[str, Any] = json.loads(line)
        return answer

    def end(self) -> None:
        """It holds nothing that needs care."""
        self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                pipe.close()
