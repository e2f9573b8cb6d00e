"""A sweep over several nodes: node 0 chooses and writes, every node trains its share and samples its own devices."""

from __future__ import annotations

import time
from contextlib import ExitStack
from dataclasses import asdict
from typing import Any

import numpy as np

from pfprofile.device import ClockGuard, Device
from pfprofile.device.sampler import Sampler, Window
from pfprofile.errors import HardwareError
from pfprofile.sweep.request import Options
from pfprofile.sweep.sources import READY_S, Job, Ranks
from pfprofile.sweep.space import Point
from pfprofile.telemetry import sensor_warnings, window_power
from pfprofile.train import Host, WorkerError, WorkerSet, WorkloadSpec
from pfprofile.train.team import Leader, Line, Place, free_port

#: How much longer than a trial its answer may take, s.
ANSWER_S = 30.0


class TeamRanks(Ranks):
    """Ranks on all nodes. What the other nodes measured stands under ``others`` in a window."""

    def __init__(self, device: Device, host: Host, job: Job, leader: Leader) -> None:
        super().__init__(device, host, job)
        self.leader = leader

    def start(self, point: Point, options: Options) -> bool:
        """See `TrialSource`."""
        if self._set is not None and self._key == point.worker_set:
            return True
        self.drop()
        local = point.n_gpus // point.n_nodes
        about = {
            "spec": asdict(self.job.spec), "n_ranks": local, "local_batch": point.local_batch,
            "settings": self.job.settings, "accum_steps": point.accum_steps, "precision": self.job.precision,
            "seed": self.job.seed, "deadline_s": options.timeout_s, "world_size": point.n_gpus,
            "init_method": f"tcp://{self.leader.place.address}:{free_port()}",
        }  # fmt: skip
        self.leader.order({"op": "start", **about})
        wait_s = max(READY_S, options.timeout_s)
        try:
            self._set = start_set(self.host, self.device, about, 0)
            self._key = point.worker_set
            self._set.wait_ready(time.monotonic() + wait_s)
        finally:
            answers = self.leader.answers(wait_s + ANSWER_S)
        raise_worst(answers)
        return True

    def measure(self, point: Point, options: Options) -> dict[str, Any]:
        """See `TrialSource`."""
        self.leader.order({
            "op": "measure", "clock": point.sm_clock_mhz, "window_s": options.window_s, "steps": options.steps,
            "timeout_s": options.timeout_s,
        })  # fmt: skip
        mine: WorkerError | None = None
        timing: dict[str, Any] = {}
        try:
            timing = super().measure(point, options)
        except WorkerError as error:
            mine = error
        answers = self.leader.answers(options.timeout_s + ANSWER_S)
        raise_worst(answers, mine)
        return {**timing, "others": answers}

    def drop(self) -> None:
        """See `TrialSource`."""
        self.forget()

    def forget(self) -> None:
        """See `TrialSource`. A set is whole or not at all: this node's ranks and the other nodes' end together."""
        if self._set is not None:
            self._set.stop()
        self._set = self._key = None
        self.leader.order({"op": "drop"})
        self.leader.answers(ANSWER_S)


def raise_worst(answers: list[dict[str, Any]], mine: WorkerError | None = None) -> None:
    """Raise the error that most likely is the cause of the others, if there is any."""
    errors = [mine] if mine is not None else []
    errors += [WorkerError(a["status"], f"node {a['node']}: {a['reason']}") for a in answers if "status" in a]

    def rank(error: WorkerError) -> int:
        words = ("Connection", "gloo", "NCCL", "Broken pipe")
        return 0 if error.status == "oom" else 2 if any(w in error.reason for w in words) else 1

    if errors:
        raise min(errors, key=rank)


def start_set(host: Host, device: Device, about: dict[str, Any], node: int) -> WorkerSet:
    """This node's share of a worker set."""
    return WorkerSet(
        host, WorkloadSpec(**about["spec"]), n_ranks=about["n_ranks"], local_batch=about["local_batch"],
        settings=about["settings"], accum_steps=about["accum_steps"], precision=about["precision"],
        device=device.kind, seed=about["seed"], environment=device.rank_environment(about["n_ranks"]),
        deadline_s=about["deadline_s"], world_size=about["world_size"], rank_offset=node * about["n_ranks"],
        init_method=about["init_method"],
    )  # fmt: skip


class Follower:
    """What a node other than 0 does until the leader hangs up."""

    def __init__(self, place: Place, device: Device, host: Host, line: Line) -> None:
        self.place, self.device, self.host, self.line = place, device, host, line
        self._set: WorkerSet | None = None
        self._n_ranks = 0

    def run(self) -> int:
        """Obey until the connection closes. Returns the number of windows measured."""
        measured = 0
        with ExitStack() as stack:
            guard = stack.enter_context(ClockGuard(self.device))
            sampler = stack.enter_context(Sampler(self.device))
            stack.callback(self._drop)
            while (order := self.line.receive(None)) is not None:
                try:
                    answer = self._obey(order, guard, sampler)
                except WorkerError as error:
                    self._set = None
                    answer = {"status": error.status, "reason": error.reason}
                except HardwareError as error:
                    self._drop()
                    answer = {"status": "failed", "reason": str(error)}
                measured += order["op"] == "measure" and "status" not in answer
                self.line.send({**answer, "node": self.place.node})
        return measured

    def _obey(self, order: dict[str, Any], guard: ClockGuard, sampler: Sampler) -> dict[str, Any]:
        if order["op"] == "drop":
            self._drop()
            return {}
        if order["op"] == "start":
            self._drop()
            self._n_ranks = order["n_ranks"]
            self._set = start_set(self.host, self.device, order, self.place.node)
            self._set.wait_ready(time.monotonic() + max(READY_S, order["deadline_s"]))
            return {}
        if self._set is None:
            return {"status": "failed", "reason": "its ranks are gone"}
        guard.hold(self._n_ranks, order["clock"], groups=(self.host.pid,))
        deadline_s = time.monotonic() + order["timeout_s"]
        with sampler.window(self._n_ranks) as window:
            timing = self._set.measure(window_s=order["window_s"], steps=order["steps"], deadline_s=deadline_s)
        return node_report(window, timing)

    def _drop(self) -> None:
        if self._set is not None:
            self._set.stop()
        self._set = None


def node_report(window: Window, timing: dict[str, Any]) -> dict[str, Any]:
    """What a node tells of its devices in a window: plain numbers, None = unknown."""
    samples = window.samples(timing["started_s"], timing["ended_s"])
    found = [window_power(s) for s in samples]

    def known(values: Any, pick: Any) -> float | None:
        return float(pick(values[np.isfinite(values)])) if np.isfinite(values).any() else None

    warnings = [words for s in samples for words in sensor_warnings(s)]
    if window.trouble is not None:
        warnings.append(f"the sensors stopped answering: {window.trouble}")
    return {
        "warnings": sorted(set(warnings)),
        "power": [None if p is None else [p.power_w, p.source] for p in found],
        "clocks_mhz": [known(s.sm_clock_mhz, np.median) for s in samples],
        "temperatures_c": [known(s.temperature_c, np.max) for s in samples],
        "limits": window.limits(timing["started_s"], timing["ended_s"]),
    }
