"""The one event loop: time, rates, restarts, placement and energy for every policy.

A job's rate changes only at events; between them everything is linear. A change of GPU count or of place costs a
restart, during which the job makes no progress and draws its new configuration's power (no measurement says less); a
change of clock costs nothing. Nodes without a tenant are off unless they are kept on.
"""

from __future__ import annotations

import gc
import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from heapq import heappop, heappush

from pfprofile.cluster.nodes import Cluster
from pfprofile.cluster.speed_table import Config
from pfprofile.errors import InfeasibleError
from pfprofile.plan.outcome import Options, Outcome, Segment
from pfprofile.plan.placement import Placer
from pfprofile.plan.placement_batch import place_all, standing_w
from pfprofile.plan.repairs import cheapest_slowdown, tenants_to_move
from pfprofile.policy.base import Choice, Job, JobState, Policy, State

#: nodes are looked over for consolidation at most this often, s
TIDY_S = 60.0


class Simulation:
    """One run. See `simulate`."""

    def __init__(self, jobs: Sequence[Job], cluster: Cluster, policy: Policy, options: Options) -> None:
        self.options, self.policy, self.cluster = options, policy, cluster
        self.jobs = [JobState(job, i, job.work, job.submit_s) for i, job in enumerate(jobs)]
        self.placers = [Placer(pool) for pool in cluster.pools]
        self.now_s = 0.0
        self.state = State(
            0.0, cluster, {}, {}, power_cap_w=options.power_cap_w, always_on=options.always_on,
            free=[p.n_gpus for p in cluster.pools], nodes_on=[0] * len(cluster.pools),
        )  # fmt: skip
        self.state.preview_w = self._preview_w
        self._events: list[tuple[float, int, int]] = []  # (time, job or −1 for a review, version)
        self._review_s = math.inf  # the earliest review that is to come
        self._version = [0] * len(self.jobs)
        self._begun = [0.0] * len(self.jobs)  # when the job's open segment began
        self._gpus: list[tuple[str, ...]] = [()] * len(self.jobs)
        self._energy = [0.0] * len(self.jobs)
        self._gpu_w = self._share_w = 0.0  # power of busy GPUs, and P' of the jobs on them
        self._idle_j = self._node_j = self.peak_w = 0.0
        self.migrations = 0
        self._tidied_s = -math.inf
        self.segments: list[Segment] = []

    # ── the loop ──

    def run(self) -> Outcome:
        """Simulate until every job has finished.

        Raises:
            InfeasibleError: jobs are left that no event will ever start.
        """
        order = sorted(self.jobs, key=lambda j: (j.job.submit_s, j.index))
        arrival, count = 0, len(order)
        start = max(order[0].job.submit_s, self.options.start_s) if order else self.options.start_s
        self.now_s = self.state.now_s = start
        self._seat()
        while True:
            now = self._next_time(max(order[arrival].job.submit_s, start) if arrival < count else math.inf)
            if math.isinf(now):
                break
            self._advance(now)
            state = self.state
            state.arrived, state.finished = [], []
            while arrival < count and order[arrival].job.submit_s <= now:
                job = order[arrival]
                state.arrived.append(job)
                if job.config is None:
                    job.since_s = now
                    state.waiting[job.index] = job
                arrival += 1
            due = self._due(now)
            if state.arrived or state.finished or due or state.bounced:
                self._decide()
        return self._outcome(start)

    def _seat(self) -> None:
        """Put jobs that are under way where they are."""
        for index, seat in self.options.under_way.items():
            job, placer = self.jobs[index], self.placers[seat.pool]
            job.started_s = self.now_s
            block = placer.tree.locate(list(seat.gpus)) if seat.gpus is not None else None
            if block is not None and placer.put_at(index, block):
                self._open(job, seat.pool, seat.config, restart=False)

    def _next_time(self, arrival_s: float) -> float:
        events = self._events
        if math.isinf(arrival_s) and not self.state.running and not self.state.waiting:
            return math.inf  # a policy's last review has nothing to look at
        while events:
            time, index, version = events[0]
            if index >= 0 and version != self._version[index]:
                heappop(events)
                continue
            return min(time, arrival_s)
        if math.isinf(arrival_s) and self.state.waiting:
            names = ", ".join(repr(j.job.name) for j in list(self.state.waiting.values())[:3])
            cap = self.options.power_cap_w
            why = f"under a power cap of {cap:g} W" if math.isfinite(cap) else f"with policy {self.policy.name}"
            raise InfeasibleError(f"{len(self.state.waiting)} jobs can never start {why}: {names}", "raise the limit")
        return arrival_s

    def _due(self, now: float) -> bool:
        """Finish the jobs whose time has come; True if a review is due."""
        events, review = self._events, False
        while events and events[0][0] <= now:
            _, index, version = heappop(events)
            if index < 0:
                review, self._review_s = True, math.inf
            elif version == self._version[index]:
                job = self.jobs[index]
                self._close(job)
                job.remaining, job.finished_s = 0.0, now
                self._leave(job)
                del self.state.running[index]
                self.state.finished.append(job)
        return review

    def _advance(self, now: float) -> None:
        dt = now - self.now_s
        if dt > 0:
            idle_w, node_w = standing_w(self.placers, self.options.always_on)
            self._idle_j += idle_w * dt
            self._node_j += node_w * dt
            self.state.spent_j += (self._gpu_w + idle_w + node_w) * dt
            self.state.share_j += self._share_w * dt
            self.now_s = now
        self.state.now_s = now

    @property
    def power_w(self) -> float:
        """The cluster's power now, W."""
        return self._gpu_w + sum(standing_w(self.placers, self.options.always_on))

    def _preview_w(self, changes: Mapping[int, Choice | None]) -> float:
        """Power of the cluster after some changes, tried on copies, W."""
        placers = [placer.copy() for placer in self.placers]
        placed = place_all(placers, self.jobs, changes)
        total_w = 0.0
        for index, job in self.state.running.items():
            result = placed.results.get(index, (job.pool, job.config))
            if result is not None and result[1] is not None:
                total_w += result[1].n * result[1].gpu_w
        for index, result in placed.results.items():
            if result is not None and index in self.state.waiting:
                total_w += result[1].n * result[1].gpu_w
        return total_w + sum(standing_w(placers, self.options.always_on))

    def _decide(self) -> None:
        state = self.state
        state.free = [p.tree.free_gpus for p in self.placers]
        state.nodes_on = [p.nodes_on for p in self.placers]
        decision = self.policy.decide(state)
        state.bounced, state.shortened = [], False
        self._apply(decision.changes, decision.may_move)
        if decision.consolidate_price > 0 and state.finished and self.now_s >= self._tidied_s + TIDY_S:
            self._tidied_s = self.now_s
            self._consolidate(decision.consolidate_price)
        # One that is due earlier will ask for the next: else each event would start a chain of reviews of its own.
        if self.now_s < decision.review_s < self._review_s:
            self._review_s = decision.review_s
            heappush(self._events, (decision.review_s, -1, 0))
        if math.isfinite(self.options.power_cap_w):
            self._hold_cap()
        if not state.running:
            self._gpu_w = self._share_w = 0.0  # rounding must not pile up over a long trace
        power_w = self.power_w
        if power_w > self.peak_w:
            self.peak_w = power_w

    # ── changes ──

    def _apply(self, changes: Mapping[int, Choice | None], may_move: bool) -> None:
        """Place the changes, then bring times and rates in line."""
        if not changes:
            return
        placed = place_all(self.placers, self.jobs, changes, may_move)
        state = self.state
        state.shortened = placed.shortened
        settled: set[int] = set()  # begun or restarted here, where they now sit
        for index, result in placed.results.items():
            job = self.jobs[index]
            held = job.config
            if result is None:
                if held is not None:
                    self._close(job)
                    self._leave_waiting(job)
                if changes[index] is not None:
                    state.bounced.append(job)
                continue
            pool, config = result
            if held is None:
                self._open(job, pool, config, restart=not math.isnan(job.started_s))
                settled.add(index)
            elif config is not held or pool != job.pool:
                moved = config.n != held.n or pool != job.pool
                self._close(job)
                self._open(job, pool, config, restart=moved)
                if moved:
                    settled.add(index)
        for index in dict.fromkeys(placed.moved):
            # Whoever changes no more than the clock, or nothing, restarts elsewhere all the same.
            if index not in settled and self.jobs[index].config is not None:
                self._restart(self.jobs[index])
                self.migrations += 1

    def _open(self, job: JobState, pool: int, config: Config, *, restart: bool) -> None:
        """Begin a segment; ``since_s`` is now."""
        now = self.now_s
        if restart:
            job.rescales += 1
            job.ready_s = now + job.job.restart_s(config.n)
        if job.config is None:
            self.state.waiting.pop(job.index, None)
            self.state.running[job.index] = job
            if math.isnan(job.started_s):
                job.started_s = now
        job.config, job.pool, job.since_s = config, pool, now
        self._gpu_w += config.n * config.gpu_w
        self._share_w += config.power_w
        self._begun[job.index] = now
        if self.options.record:
            self._gpus[job.index] = self.placers[pool].gpus(job.index)
        self._schedule(job)

    def _schedule(self, job: JobState) -> None:
        config = job.config
        assert config is not None
        begin = job.ready_s if job.ready_s > self.now_s else self.now_s
        version = self._version[job.index] = self._version[job.index] + 1
        heappush(self._events, (begin + job.remaining / config.speed_per_s, job.index, version))

    def _restart(self, job: JobState) -> None:
        """The job was moved: same configuration, new place."""
        config, pool = job.config, job.pool
        assert config is not None
        self._close(job)
        self._open(job, pool, config, restart=True)

    def _leave_waiting(self, job: JobState) -> None:
        job.config = None
        job.ready_s = 0.0
        self._version[job.index] += 1
        del self.state.running[job.index]
        self.state.waiting[job.index] = job

    def _leave(self, job: JobState) -> None:
        self.placers[job.pool].remove(job.index)
        job.config = None
        self._version[job.index] += 1

    def _close(self, job: JobState) -> None:
        """End the open segment: bring work, attained time and energy up to date."""
        now, index, config = self.now_s, job.index, job.config
        assert config is not None
        begun = self._begun[index]
        power_w = config.n * config.gpu_w
        self._gpu_w -= power_w
        self._share_w -= config.power_w
        job.remaining = max(0.0, job.remaining_at(now))
        job.attained_gpu_s += config.n * (now - job.since_s)
        job.since_s = now
        self._energy[index] += power_w * (now - begun)
        if not self.options.record or now <= begun:
            return
        ready = min(max(job.ready_s, begun), now)
        gpus = self._gpus[index]
        if ready > begun:
            self.segments.append(Segment(index, "rescale", begun, ready, job.pool, config, gpus))
        if now > ready:
            self.segments.append(Segment(index, "run", ready, now, job.pool, config, gpus))

    def _hold_cap(self) -> None:
        """Lower clocks, then stop the newest jobs, until the power is within the cap."""
        running = self.state.running
        while running:
            self._gpu_w = math.fsum(j.config.n * j.config.gpu_w for j in running.values() if j.config is not None)
            if self.power_w <= self.options.power_cap_w:
                return
            slower = cheapest_slowdown(running.values())
            if slower is not None:
                job, config = slower
                self._close(job)
                self._open(job, job.pool, config, restart=False)
                continue
            newest = max(running.values(), key=lambda j: (j.started_s, j.index))
            if newest.started_s == self.now_s and newest.attained_gpu_s == 0.0:
                newest.started_s = math.nan
            self._close(newest)
            self.placers[newest.pool].remove(newest.index)
            self._leave_waiting(newest)
            self.state.bounced.append(newest)

    def _consolidate(self, price: float) -> None:
        """Empty the least used nodes of each pool where the energy saved is worth the restarts."""
        if self.options.always_on:
            return
        for placer in self.placers:
            tenants = tenants_to_move(placer, self.jobs, self.now_s, price)
            while tenants and placer.empty(placer.least_used(), tenants):
                for tenant in tenants:
                    self._restart(self.jobs[tenant])
                    self.migrations += 1
                tenants = tenants_to_move(placer, self.jobs, self.now_s, price)

    # ── the result ──

    def _outcome(self, start_s: float) -> Outcome:
        self.segments.sort(key=lambda s: (s.start_s, s.job))
        return Outcome(
            jobs=self.jobs,
            job_energy_j=self._energy,
            gpu_energy_j=math.fsum(self._energy),
            idle_energy_j=self._idle_j,
            node_energy_j=self._node_j,
            start_s=start_s,
            end_s=max((j.finished_s for j in self.jobs), default=start_s),
            peak_w=self.peak_w,
            rescales=sum(j.rescales for j in self.jobs),
            migrations=self.migrations,
            segments=self.segments,
        )


def simulate(jobs: Sequence[Job], cluster: Cluster, policy: Policy, options: Options | None = None) -> Outcome:
    """Run jobs through a policy.

    Args:
        jobs: with tables for the cluster's pools; any order.
        cluster: where they run.
        policy: a fresh one.
        options: power cap, node power, recording.

    Raises:
        InfeasibleError: a job can never start.
    """
    with paused_collection():
        return Simulation(jobs, cluster, policy, options or Options()).run()


@contextmanager
def paused_collection() -> Iterator[None]:
    """No search for cycles: a simulation makes none, and looking through its many objects takes a tenth of its time."""
    was = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was:
            gc.enable()
