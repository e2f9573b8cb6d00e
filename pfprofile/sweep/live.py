"""The live runner: trains for real, holds the clock, reads the sensors."""

from __future__ import annotations

import statistics
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import pairwise
from types import TracebackType
from typing import Any, Self

import numpy as np

from pfprofile.device import ClockGuard, Device, Sampler
from pfprofile.errors import HardwareError
from pfprofile.sweep.request import Options
from pfprofile.sweep.space import Point, Row
from pfprofile.telemetry import limited_by, window_power
from pfprofile.train import Host, WorkerError, WorkerSet, WorkloadSpec

#: Least time for ranks to build their network, s; a trial's own deadline counts from when they are ready.
READY_S = 120.0


@dataclass(frozen=True, slots=True)
class Job:
    """What is trained: the same for all points of a sweep."""

    spec: WorkloadSpec
    name: str
    settings: dict[str, Any]
    precision: str
    seed: int


class LiveRunner:
    """A Runner over one device and one host; a context manager that ends its ranks and resets its clocks.

    Args:
        device: the machine.
        host: the process that forks ranks.
        job: what is trained.
    """

    def __init__(self, device: Device, host: Host, job: Job) -> None:
        self.device, self.host, self.job = device, host, job
        self._guard = ClockGuard(device)
        self._set: WorkerSet | None = None
        self._key: tuple[int, int, int] | None = None

    def __enter__(self) -> Self:
        self._guard.__enter__()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        try:
            self._drop()
        finally:
            self._guard.__exit__(kind, error, at)

    def hold(self, point: Point) -> None:
        """Lock the clock of the point's devices. Raises HardwareError where the driver refuses."""
        self._guard.hold(point.n_gpus, point.sm_clock_mhz)

    def forget_locks(self) -> None:
        """Drop what was refused, so that nothing is reset that never was locked."""
        self._guard.forget()

    def run(self, point: Point, options: Options) -> Row:
        """One trial; whatever a worker set dies of is a row, and the set is not used again."""
        row: Row = {
            "workload": self.job.name, "device_name": self.device.name, "precision": self.job.precision,
            "n_gpus": point.n_gpus, "n_nodes": point.n_nodes, "placement": str(point.n_gpus),
            "local_batch": point.local_batch, "accum_steps": point.accum_steps,
            "requested_clock_mhz": point.sm_clock_mhz, "power_limit_w": self.device.power_limit_w,
        }  # fmt: skip
        ranks = None
        try:
            ranks = self._ranks(point, options)
            self.hold(point)
            with Sampler(self.device, point.n_gpus) as sampler:
                timing = ranks.measure(
                    window_s=options.window_s, steps=options.steps, deadline_s=time.monotonic() + options.timeout_s
                )
        except WorkerError as error:
            self._set = self._key = None
            reason = error.reason
            if error.status == "timeout":
                reason = f"{'no result' if ranks else 'not ready'} within the deadline ({options.timeout_s:g} s)"
            return {**row, "status": error.status, "limited_by": "unknown", "error": reason, "started_at": _now()}
        except HardwareError as error:
            self._drop()
            return {**row, "status": "failed", "limited_by": "unknown", "error": str(error), "started_at": _now()}
        return {**row, **self._measured(point, timing, sampler)}

    def _ranks(self, point: Point, options: Options) -> WorkerSet:
        if self._set is None or self._key != point.worker_set:
            self._drop()
            self._set = WorkerSet(
                self.host, self.job.spec, n_ranks=point.n_gpus, local_batch=point.local_batch,
                settings=self.job.settings, accum_steps=point.accum_steps, precision=self.job.precision,
                device=self.device.kind, seed=self.job.seed, environment=self.device.rank_environment(point.n_gpus),
                deadline_s=options.timeout_s,
            )  # fmt: skip
            self._key = point.worker_set
            self._set.wait_ready(time.monotonic() + max(READY_S, options.timeout_s))
        return self._set

    def _drop(self) -> None:
        if self._set is not None:
            self._set.stop()
        self._set = self._key = None

    def _measured(self, point: Point, timing: dict[str, Any], sampler: Sampler) -> Row:
        started_s, ended_s = timing["started_s"], timing["ended_s"]
        samples = sampler.samples(started_s, ended_s)
        clocks = np.concatenate([s.sm_clock_mhz for s in samples])
        achieved = float(np.nanmedian(clocks)) if np.isfinite(clocks).any() else None
        heat = np.concatenate([s.temperature_c for s in samples])
        power = self._power(point, [window_power(s) for s in samples], ended_s - started_s)
        return {
            "status": "ok",
            "steps": timing["steps"],
            "step_time_s": timing["step_time_s"],
            "step_time_std_s": timing["step_time_std_s"],
            "sync_time_s": timing["sync_time_s"],
            "memory_peak_bytes": timing["memory_peak_bytes"],
            "achieved_clock_mhz": achieved,
            "temperature_c": float(np.nanmax(heat)) if np.isfinite(heat).any() else None,
            "limited_by": limited_by(
                point.sm_clock_mhz, achieved, power.get("power_w"), self.device.power_limit_w,
                sampler.limits(started_s, ended_s),
            ),
            "started_at": _now(time.monotonic() - started_s),
            **power,
        }  # fmt: skip

    def _power(self, point: Point, found: list[Any], window_s: float) -> Row:
        if self.device.kind == "cpu":
            # RAPL counts the whole package once (device 0); ranks share it equally.
            found = found[:1]
        if not found or any(p is None for p in found):
            return {}
        powers = [p.power_w for p in found]
        total = sum(powers)
        return {
            "power_w": total / point.n_gpus,
            "power_spread_w": max(powers) - min(powers) if len(powers) > 1 else None,
            "energy_j": total * window_s,
            "energy_source": "counter" if all(p.source == "counter" for p in found) else "samples",
        }


def _now(ago_s: float = 0.0) -> datetime:
    return datetime.fromtimestamp(time.time() - ago_s, UTC)


def trial_seconds(rows: list[Row]) -> float | None:
    """Median time from one trial's start to the next's, s; None for fewer than three trials."""
    starts = sorted(r["started_at"] for r in rows if r["started_at"] is not None)
    gaps = [(b - a).total_seconds() for a, b in pairwise(starts)]
    return statistics.median(gaps) if len(gaps) >= 2 else None
