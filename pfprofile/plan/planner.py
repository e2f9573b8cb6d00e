"""The budget search: simulate at each energy price of one fixed grid, keep the least average JCT within the budget."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from pfprofile.cluster.nodes import Cluster
from pfprofile.errors import InfeasibleError
from pfprofile.plan.bounds import least_energy_j, preemptive_bound_s
from pfprofile.plan.simulator import Options, Outcome, simulate
from pfprofile.policy.base import Job
from pfprofile.policy.hulls import STEPS_PER_OCTAVE, grid_index, grid_price, price_breaks
from pfprofile.policy.registry import make_policy
from pfprofile.units import format_energy, format_power


@dataclass(frozen=True, slots=True)
class Limits:
    """What the schedule must keep to. None = no limit.

    Attributes:
        budget_j: energy, J.
        power_cap_w: power at every instant, W.
        always_on: nodes stay on.
    """

    budget_j: float | None = None
    power_cap_w: float | None = None
    always_on: bool = False

    def options(self, record: bool) -> Options:
        """For the simulator."""
        cap = math.inf if self.power_cap_w is None else self.power_cap_w
        return Options(power_cap_w=cap, always_on=self.always_on, record=record)


@dataclass(frozen=True, slots=True)
class Bound:
    """A lower bound on the average JCT and how far above it the plan lies (0.1 = 10 %)."""

    kind: str
    avg_jct_s: float
    gap: float


@dataclass(frozen=True, slots=True)
class Plan:
    """A schedule and what is known about it.

    Attributes:
        outcome: the simulated schedule, with segments.
        energy_price: λ it was made with, s/J.
        bound: the least average JCT possible, and the gap.
        lower_bound_j: energy below which no schedule lies.
        least_energy_j: least total energy among the schedules that were tried.
    """

    outcome: Outcome
    jobs: Sequence[Job]
    cluster: Cluster
    limits: Limits
    policy: str
    energy_price: float
    bound: Bound
    lower_bound_j: float
    least_energy_j: float


def price_grid(jobs: Sequence[Job]) -> list[float]:
    """λ = 0 and the geometric grid over which configurations change; coarser for very many jobs.

    It depends on the jobs only, never on the budget: so a larger budget chooses among more of the same schedules.
    """
    seen = {(id(t), job.min_n, job.max_n): t for job in jobs for t in job.tables.values()}
    breaks = [b for (_, low, high), table in seen.items() for b in price_breaks(table, low, high)]
    if not breaks:
        return [0.0]
    first, last = grid_index(min(breaks)), grid_index(max(breaks))
    assert first is not None and last is not None
    step = STEPS_PER_OCTAVE // 4
    for many in (300, 1500):
        if len(jobs) > many:
            step *= 2
    low = first // step * step - step
    return [0.0] + [grid_price(k) for k in range(low, last + STEPS_PER_OCTAVE + step, step)]


def make_plan(jobs: Sequence[Job], cluster: Cluster, limits: Limits, policy: str = "pfprofile") -> Plan:
    """The least average JCT within the limits.

    Raises:
        InfeasibleError: the budget is below the least energy found, or the cap below what anything needs.
    """
    _check_floor(jobs, cluster, limits)
    prices = price_grid(jobs) if policy == "pfprofile" and limits.budget_j is not None else [0.0]
    tried: list[tuple[float, float, float]] = []
    for price in prices:
        outcome = _run(jobs, cluster, limits, policy, price, record=False)
        tried.append((outcome.avg_jct_s, outcome.energy_j, price))
    least_j = min(energy for _, energy, _ in tried)
    lower_j = least_energy_j(jobs)
    budget_j = math.inf if limits.budget_j is None else limits.budget_j
    within = [t for t in tried if t[1] <= budget_j]
    if not within:
        raise InfeasibleError(
            f"no schedule found within {format_energy(budget_j)}: least_energy_j={_up(least_j)} "
            f"({format_energy(least_j)}), lower_bound_j={lower_j:.3f}",
            f"raise the budget to at least {_up(least_j)}J",
            least_energy_j=_up(least_j),
            lower_bound_j=lower_j,
        )
    _, _, price = min(within)
    outcome = _run(jobs, cluster, limits, policy, price, record=True)
    bound = _bound("preemptive", preemptive_bound_s(jobs, cluster.n_gpus, limits.budget_j), outcome.avg_jct_s)
    return Plan(outcome, jobs, cluster, limits, policy, price, bound, lower_j, least_j)


def _run(jobs: Sequence[Job], cluster: Cluster, limits: Limits, policy: str, price: float, *, record: bool) -> Outcome:
    parameters = {"energy_price": price} if policy == "pfprofile" else {}
    return simulate(jobs, cluster, make_policy(policy, **parameters), limits.options(record))


def _bound(kind: str, bound_s: float, avg_jct_s: float) -> Bound:
    if avg_jct_s < bound_s < avg_jct_s * (1.0 + 1e-9):
        bound_s = avg_jct_s  # rounding, not a contradiction
    return Bound(kind, bound_s, avg_jct_s / bound_s - 1.0)


def _up(energy_j: float) -> float:
    """Rounded up to a millijoule, so that the figure can be given back as a budget."""
    return math.ceil(energy_j * 1e3) / 1e3


def _check_floor(jobs: Sequence[Job], cluster: Cluster, limits: Limits) -> None:
    cap = limits.power_cap_w
    if cap is None:
        return
    if limits.always_on and cap < cluster.floor_w:
        raise InfeasibleError(
            f"power cap {format_power(cap)} is below the idle power of the cluster, {format_power(cluster.floor_w)}",
            "raise --power-cap, or let empty nodes go off",
        )
    for job in jobs:
        need = min(_alone_w(cluster, limits, pool, job) for pool in job.tables)
        if need > cap:
            raise InfeasibleError(
                f"power cap {format_power(cap)} is below the {format_power(need)} that job {job.name!r} needs alone",
                "raise --power-cap",
            )


def _alone_w(cluster: Cluster, limits: Limits, pool_index: int, job: Job) -> float:
    """Least power of the cluster with only this job running, W."""
    pool = cluster.pools[pool_index]
    table = job.tables[pool_index]
    floor_w = cluster.floor_w if limits.always_on else 0.0
    best = math.inf
    for n in table.counts(job.min_n, job.max_n):
        gpu_w = min(c.gpu_w for c in table.by_n[n])
        if limits.always_on:
            best = min(best, floor_w + n * (gpu_w - pool.idle_w))
        else:
            nodes = pool.nodes_for(n)
            best = min(best, n * gpu_w + nodes * pool.node_w + (nodes * pool.gpus_per_node - n) * pool.idle_w)
    return best
