"""The live runner: trains for real, holds the clock, reads the sensors."""

from __future__ import annotations

import statistics
import time
from datetime import UTC, datetime
from itertools import pairwise
from types import TracebackType
from typing import Any, Self

import numpy as np

from pfprofile.device import ClockGuard, Device
from pfprofile.device.sampler import Sampler, Window
from pfprofile.errors import HardwareError
from pfprofile.sweep.nodes import node_report
from pfprofile.sweep.request import Options
from pfprofile.sweep.settle import Settling
from pfprofile.sweep.sources import READY_S, TrialSource
from pfprofile.sweep.space import Point, Row
from pfprofile.telemetry import Samples, limited_by
from pfprofile.telemetry.plausibility import power as plausible_power
from pfprofile.telemetry.window import HELD, sampled_power
from pfprofile.train import WorkerError

#: A clock lock outlives what it is for by this much, s: cooling down, and a slow machine.
SPARE_S = 120.0
#: How long idle power is looked at, s.
IDLE_S = 1.0


class LiveRunner:
    """A Runner over one device and one source of trials; a context manager that ends them and resets its clocks.

    Args:
        device: the machine.
        source: what trains.
    """

    def __init__(self, device: Device, source: TrialSource) -> None:
        self.device, self.source = device, source
        self._guard = ClockGuard(device)
        self._sampler = Sampler(device)
        self._settling = Settling(device)
        #: Raw samples of the last window, one a device of this node; empty where the trial failed.
        self.samples: list[Samples] = []
        self._idle_power_w: dict[int, float | None] = {}
        # Before anything of ours runs; later our own ranks would be among them.
        self._company = any(device.others(i) for i in range(device.count))

    def __enter__(self) -> Self:
        self._guard.__enter__()
        self._sampler.__enter__()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        try:
            self.source.drop()
        finally:
            try:
                self._guard.__exit__(kind, error, at)
            finally:
                self._sampler.__exit__(kind, error, at)

    @property
    def sampling(self) -> dict[str, Any]:
        """How punctual sampling was and what it cost; see `Punctuality.summary`."""
        return self._sampler.punctuality.summary()

    @property
    def sampling_trouble(self) -> str:
        """Why sampling is not what it should be; "" = it is."""
        return self._sampler.trouble

    def hold(self, point: Point, timeout_s: float = 600.0) -> None:
        """Lock the clock of the point's devices. Raises HardwareError where the driver refuses."""
        # The lock lasts over this trial's measurement and the start of the next one's workers.
        for_s = 2 * max(READY_S, timeout_s) + timeout_s + SPARE_S
        self._guard.hold(
            point.n_gpus // point.n_nodes, point.sm_clock_mhz, for_s=for_s, groups=self.source.groups
        )  # fmt: skip

    def release(self) -> None:
        """Take all locks away. Raises HardwareError where the driver refuses."""
        self._guard.release()

    def run(self, point: Point, options: Options) -> Row:
        """One trial; whatever a worker set dies of is a row, and the set is not used again."""
        local = point.n_gpus // point.n_nodes
        row: Row = {
            "workload": self.source.name, "device_name": self.device.name, "precision": self.source.precision,
            "n_gpus": point.n_gpus, "n_nodes": point.n_nodes, "placement": "-".join([str(local)] * point.n_nodes),
            "local_batch": point.local_batch, "accum_steps": point.accum_steps,
            "requested_clock_mhz": point.sm_clock_mhz, "power_limit_w": self.device.power_limit_w,
        }  # fmt: skip
        ready = False
        self.samples = []
        try:
            if self.source.idle and self.device.kind != "cpu":
                self._settling.wait(local)
            ready = self.source.start(point, options)
            row["idle_power_w"] = self._idle(local) if self.source.idle else None
            self.hold(point, options.timeout_s)
            with self._sampler.window(local) as window:
                timing = self.source.measure(point, options)
            if self._guard.expired():
                raise HardwareError("the watchdog took the clock lock away at its deadline")
        except WorkerError as error:
            self.source.forget()
            reason = error.reason
            if error.status == "timeout" and "deadline" not in reason:
                reason = f"{'no result' if ready else 'not ready'} within the deadline ({options.timeout_s:g} s)"
            return {**row, "status": error.status, "limited_by": "unknown", "error": reason, "started_at": _now()}
        except HardwareError as error:
            self.source.drop()
            return {**row, "status": "failed", "limited_by": "unknown", "error": str(error), "started_at": _now()}
        return {**row, **self._measured(point, timing, window)}

    def _idle(self, local: int) -> float | None:
        """Mean power of one GPU whose ranks are ready and wait, W: with its context held, no work, not locked.

        Measured once for so many GPUs. None where others compute there, or where it is not told.
        """
        if self.device.kind == "cpu" or self._company:
            return None
        if local not in self._idle_power_w:
            self._guard.release()
            with self._sampler.window(local) as window:
                began_s = time.monotonic()
                time.sleep(IDLE_S)
            found = [sampled_power(s.time_s, s.power_w) for s in window.samples(began_s, time.monotonic())]
            known = [p for p in found if p is not None and plausible_power(p, self.device.power_limit_w) is None]
            self._idle_power_w[local] = sum(known) / local if len(known) == local else None
        return self._idle_power_w[local]

    def _measured(self, point: Point, timing: dict[str, Any], window: Window) -> Row:
        started_s, ended_s = timing["started_s"], timing["ended_s"]
        self.samples = window.samples(started_s, ended_s)
        mine = node_report(window, timing)
        nodes = [mine, *timing.get("others", [])]
        clocks = [c for node in nodes for c in node["clocks_mhz"] if c is not None]
        achieved = float(np.median(clocks)) if clocks else None
        heat = [t for node in nodes for t in node["temperatures_c"] if t is not None]
        limits: dict[str, float] = {}
        for node in nodes:
            limits = {k: max(limits.get(k, 0.0), node["limits"].get(k, 0.0)) for k in {*limits, *node["limits"]}}
        warnings = [*timing.get("doubts", ()), *(words for node in nodes for words in node["warnings"])]
        power = self._power(point, [node["power"] for node in nodes], ended_s - started_s)
        doubt = plausible_power(power["power_w"], self.device.power_limit_w) if power else None
        if doubt is not None and self.device.kind != "cpu":
            warnings.append(f"the power reading is left out: {doubt}")
            power = {}
        if _left_lock(point.sm_clock_mhz, achieved, limits):
            warnings.append("the clock left its lock and nothing is said to limit it: has somebody else changed it?")
        return {
            "status": "ok",
            "steps": timing["steps"],
            "step_time_s": timing["step_time_s"],
            "step_time_std_s": timing["step_time_std_s"],
            "sync_time_s": timing["sync_time_s"],
            "memory_peak_bytes": timing["memory_peak_bytes"],
            "achieved_clock_mhz": achieved,
            "temperature_c": max(heat) if heat else None,
            "limited_by": limited_by(
                point.sm_clock_mhz, achieved, power.get("power_w"), self.device.power_limit_w,
                limits,
            ),
            "started_at": _now(time.monotonic() - started_s),
            "error": "; ".join(warnings) or None,
            **power,
        }  # fmt: skip

    def _power(self, point: Point, nodes: list[list[Any]], window_s: float) -> Row:
        # On a CPU RAPL counts the whole package once (device 0); a node's ranks share it equally.
        found = [p for node in nodes for p in (node[:1] if self.device.kind == "cpu" else node)]
        if not found or any(p is None for p in found):
            return {}
        powers = [power_w for power_w, _ in found]
        total = sum(powers)
        return {
            "power_w": total / point.n_gpus,
            "power_spread_w": max(powers) - min(powers) if len(powers) > 1 else None,
            "energy_j": total * window_s,
            "energy_source": "counter" if all(source == "counter" for _, source in found) else "samples",
        }


def _left_lock(requested_mhz: float | None, achieved_mhz: float | None, limits: dict[str, float]) -> bool:
    if requested_mhz is None or achieved_mhz is None:
        return False
    above = achieved_mhz > requested_mhz * (2 - HELD)
    return above or (achieved_mhz < HELD * requested_mhz and not limits)


def _now(ago_s: float = 0.0) -> datetime:
    return datetime.fromtimestamp(time.time() - ago_s, UTC)


def trial_seconds(rows: list[Row]) -> float | None:
    """Median time from one trial's start to the next's, s; None for fewer than three trials."""
    starts = sorted(r["started_at"] for r in rows if r["started_at"] is not None)
    gaps = [(b - a).total_seconds() for a, b in pairwise(starts)]
    return statistics.median(gaps) if len(gaps) >= 2 else None
