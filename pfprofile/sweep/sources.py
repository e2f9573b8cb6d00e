"""Where trials come from: ranks of our own, or somebody's command. The live runner treats both alike."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any, Protocol

from pfprofile.device import Device
from pfprofile.placeholders import clock_word
from pfprofile.sweep.request import Options
from pfprofile.sweep.space import Point
from pfprofile.train import Host, WorkerSet, WorkloadSpec
from pfprofile.train.command import CommandTemplate, RunningCommand

#: Least time for ranks to build their network or a command to begin, s; a trial's own deadline counts from then.
READY_S = 120.0


class TrialSource(Protocol):
    """Starts what trains at a point, measures it, ends it."""

    name: str
    precision: str

    @property
    def idle(self) -> bool:
        """Whether nothing trains right now, so that the GPUs may cool."""

    @property
    def groups(self) -> tuple[int, ...]:
        """Process groups that train, to be ended when this process dies."""

    def start(self, point: Point, options: Options) -> bool:
        """Have something that trains at the point; raises WorkerError. Whether it is ready to be measured."""

    def measure(self, point: Point, options: Options) -> dict[str, Any]:
        """One window, as `timing.Timing` with memory_peak_bytes; raises WorkerError."""

    def drop(self) -> None:
        """End what trains."""

    def forget(self) -> None:
        """What trained has ended by an error and must not be used again."""


@dataclass(frozen=True, slots=True)
class Job:
    """What is trained: the same for all points of a sweep."""

    spec: WorkloadSpec
    name: str
    settings: dict[str, Any]
    precision: str
    seed: int


class Ranks:
    """Our own training loop: one worker set for all clocks of one (n_gpus, local_batch, accum_steps)."""

    def __init__(self, device: Device, host: Host, job: Job) -> None:
        self.device, self.host, self.job = device, host, job
        self.name, self.precision = job.name, job.precision
        self._set: WorkerSet | None = None
        self._key: tuple[int, int, int] | None = None
        self.idle = True  # ranks train only while they are measured

    @property
    def groups(self) -> tuple[int, ...]:
        """See `TrialSource`. The host ends its ranks."""
        return (self.host.pid,)

    def start(self, point: Point, options: Options) -> bool:
        """See `TrialSource`."""
        if self._set is None or self._key != point.worker_set:
            self.drop()
            self._set = WorkerSet(
                self.host, self.job.spec, n_ranks=point.n_gpus, local_batch=point.local_batch,
                settings=self.job.settings, accum_steps=point.accum_steps, precision=self.job.precision,
                device=self.device.kind, seed=self.job.seed, environment=self.device.rank_environment(point.n_gpus),
                deadline_s=options.timeout_s,
            )  # fmt: skip
            self._key = point.worker_set
            self._set.wait_ready(time.monotonic() + max(READY_S, options.timeout_s))
        return True

    def measure(self, point: Point, options: Options) -> dict[str, Any]:
        """See `TrialSource`."""
        assert self._set is not None
        deadline_s = time.monotonic() + options.timeout_s
        return self._set.measure(window_s=options.window_s, steps=options.steps, deadline_s=deadline_s)

    def drop(self) -> None:
        """See `TrialSource`."""
        if self._set is not None:
            self._set.stop()
        self.forget()

    def forget(self) -> None:
        """See `TrialSource`."""
        self._set = self._key = None


class Command:
    """Somebody's command: one start serves all clocks of a (n_gpus, local_batch, accum_steps), unless the command
    takes the clock itself or has come to its end."""

    def __init__(
        self, device: Device, template: CommandTemplate, name: str, precision: str, notice: Callable[[str], None]
    ) -> None:
        self.device, self.template, self.name, self.precision = device, template, name, precision
        self.notice = notice
        self._running: RunningCommand | None = None
        self._key: tuple[object, ...] = ()
        self._noticed = False

    @property
    def idle(self) -> bool:
        """See `TrialSource`."""
        return self._running is None

    @property
    def groups(self) -> tuple[int, ...]:
        """See `TrialSource`. The keeper ends what the command started."""
        return () if self._running is None else (self._running.pid,)

    def start(self, point: Point, options: Options) -> bool:
        """See `TrialSource`."""
        key = (*point.worker_set, point.sm_clock_mhz if self.template.uses("clock", "sm_clock_mhz") else None)
        if self._running is None or self._key != key or self._running.ended:
            self.drop()
            clock = clock_word(point.sm_clock_mhz)
            words = self.template.fill({
                "n_gpus": point.n_gpus, "n_nodes": point.n_nodes, "gpus_per_node": point.n_gpus // point.n_nodes,
                "local_batch": point.local_batch, "accum_steps": point.accum_steps,
                "global_batch": _global_batch(point), "clock": clock, "sm_clock_mhz": clock,
            })  # fmt: skip
            threads = {"OMP_NUM_THREADS": os.environ.get("OMP_NUM_THREADS", "1")} if self.device.kind == "cpu" else {}
            self._running = RunningCommand(words, {**threads, **self.device.rank_environment(point.n_gpus)})
            self._key = key
        return True

    def measure(self, point: Point, options: Options) -> dict[str, Any]:
        """See `TrialSource`."""
        assert self._running is not None
        cut = self._running.measure(
            self.template.pattern, global_batch=_global_batch(point), window_s=options.window_s, steps=options.steps,
            ready_s=min(READY_S, 10 * options.timeout_s), timeout_s=options.timeout_s,
        )  # fmt: skip
        self._compare(cut.samples, point)
        return {**asdict(cut.timing), "memory_peak_bytes": None}

    def _compare(self, samples: float | None, point: Point) -> None:
        """Say it once where the hook counts other samples than the point asks for."""
        asked = _global_batch(point)
        if samples is None or self._noticed or abs(samples / asked - 1) < 0.01:
            return
        self._noticed = True
        self.notice(
            f"pfprofile.step() counts {samples:g} samples a step, the point asks for {asked} "
            f"({point.n_gpus} GPUs × batch {point.local_batch} × {point.accum_steps} passes): "
            "does the command use {local_batch}, and is it in the same unit?"
        )

    def drop(self) -> None:
        """See `TrialSource`."""
        if self._running is not None:
            self._running.stop()
        self._running = None

    def forget(self) -> None:
        """See `TrialSource`."""
        self.drop()


def _global_batch(point: Point) -> int:
    return point.n_gpus * point.local_batch * point.accum_steps
