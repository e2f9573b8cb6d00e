"""The budget search: simulate at each energy price of one fixed grid, keep the least average JCT within the budget."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from pfprofile.cluster.nodes import Cluster
from pfprofile.errors import InfeasibleError
from pfprofile.plan.bounds import least_energy_j, preemptive_bound_s
from pfprofile.plan.crossing import StaticEnergy, first_within
from pfprofile.plan.feasibility import check_deadlines_alone, check_power_floor, missed_deadline
from pfprofile.plan.fixed import Choices, fixed_choices
from pfprofile.plan.grid import COARSER_ABOVE, price_grid
from pfprofile.plan.oneshot import FixedPolicy
from pfprofile.plan.outcome import Options, Outcome, Seat
from pfprofile.plan.simulator import simulate
from pfprofile.plan.uncertainty import ModelDraws, Spread, spread_of
from pfprofile.policy.base import Job
from pfprofile.policy.registry import make_policy, takes
from pfprofile.units import format_energy

#: up to this many jobs everything is priced afresh at every event
SMALL = 150
#: up to this many jobs, how many may run at a time is part of the search
FEW = 40
#: its values (`PfprofilePolicy.crowding`) beside the default, for few jobs and up to SMALL
CROWDINGS, SMALL_CROWDINGS = (1.0, 1.5, 2.0, math.inf), (2.0,)


@dataclass(frozen=True, slots=True)
class Limits:
    """What the schedule must keep to. None = no limit.

    Attributes:
        budget_j: energy, J.
        power_cap_w: power at every instant, W.
        always_on: nodes stay on.
        confidence: the budget must hold with this probability; None = as predicted.
        seed: of the draws of the models' errors.
        start_s: the plan begins here.
        under_way: jobs that already run, by job index.
    """

    budget_j: float | None = None
    power_cap_w: float | None = None
    always_on: bool = False
    confidence: float | None = None
    seed: int = 0
    start_s: float = 0.0
    under_way: Mapping[int, Seat] = field(default_factory=dict)

    def options(self, record: bool) -> Options:
        """For the simulator."""
        cap = math.inf if self.power_cap_w is None else self.power_cap_w
        return Options(cap, self.always_on, record, self.start_s, self.under_way)


@dataclass(frozen=True, slots=True)
class Bound:
    """A lower bound on the average JCT and how far above it the plan lies (0.1 = 10 %)."""

    kind: str
    avg_jct_s: float
    gap: float

    @classmethod
    def of(cls, kind: str, bound_s: float, avg_jct_s: float) -> Bound:
        """The gap of a plan; what is only rounding is no contradiction."""
        if avg_jct_s < bound_s < avg_jct_s * (1.0 + 1e-9):
            bound_s = avg_jct_s
        return cls(kind, bound_s, avg_jct_s / bound_s - 1.0)


@dataclass(frozen=True, slots=True)
class Plan:
    """A schedule and what is known about it.

    Attributes:
        outcome: the simulated schedule, with segments.
        energy_price: λ it was made with, s/J; None where the policy has none.
        spread: its draws under the models' errors.
        bound: the least average JCT possible, and the gap.
        lower_bound_j: energy below which no schedule lies.
        least_energy_j: least total energy among the schedules that were tried.
    """

    outcome: Outcome
    jobs: Sequence[Job]
    cluster: Cluster
    limits: Limits
    policy: str
    energy_price: float | None
    spread: Spread
    bound: Bound
    lower_bound_j: float
    least_energy_j: float


@dataclass(frozen=True, slots=True)
class Trial:
    """One simulated schedule.

    Attributes:
        energy_j: what the budget is held against, J.
        price: λ, s/J.
        missed: a job that misses its deadline, and its finish.
        fixed: the choices for good, where the schedule never reallocates.
        crowding: of the policy; None = its own.
        outcome: the schedule itself with its segments, where it was kept.
    """

    avg_jct_s: float
    energy_j: float
    price: float
    missed: tuple[int, float] | None
    fixed: Choices | None = None
    crowding: float | None = None
    outcome: Outcome | None = None


def make_plan(jobs: Sequence[Job], cluster: Cluster, limits: Limits, policy: str = "pfprofile") -> Plan:
    """The least average JCT within the limits.

    Raises:
        InfeasibleError: the budget is below the least energy found, the cap below what a job needs alone, or a deadline
            cannot be met; the message says by how much.
    """
    check_power_floor(jobs, cluster, limits.power_cap_w, always_on=limits.always_on)
    check_deadlines_alone(jobs, limits.start_s)
    draws = ModelDraws(limits.seed)
    priced = takes(policy, "energy_price")
    chosen, trials = _search(jobs, cluster, limits, policy, draws)
    outcome = chosen.outcome or _run(
        jobs, cluster, limits, policy, chosen.price, fixed=chosen.fixed, crowding=chosen.crowding, record=True
    )
    bound_s = preemptive_bound_s(jobs, cluster.n_gpus, limits.budget_j, limits.start_s)
    return Plan(
        outcome, jobs, cluster, limits, policy, chosen.price if priced else None, spread_of(outcome, draws),
        Bound.of("preemptive", bound_s, outcome.avg_jct_s), least_energy_j(jobs), min(t.energy_j for t in trials),
    )  # fmt: skip


def _search(
    jobs: Sequence[Job], cluster: Cluster, limits: Limits, policy: str, draws: ModelDraws
) -> tuple[Trial, list[Trial]]:
    """The least average JCT within the limits, and all that was tried."""

    def attempt(price: float, fixed: Choices | None = None, crowding: float | None = None) -> Trial:
        sure = limits.confidence is not None
        outcome = _run(jobs, cluster, limits, policy, price, fixed=fixed, crowding=crowding, record=sure)
        return replace(_judge(outcome, limits, price, draws), fixed=fixed, crowding=crowding)

    priced = takes(policy, "energy_price") and limits.budget_j is not None
    prices = price_grid(jobs) if priced else [0.0]
    tried: dict[int, Trial] = {}
    if len(prices) > 1 and len(jobs) > COARSER_ABOVE and all(math.isinf(job.deadline_s) for job in jobs):
        found, tried = _cross(jobs, cluster, limits, policy, draws, prices)
        if found is not None:
            return found, list(tried.values())
    trials = [tried.get(i) or attempt(price) for i, price in enumerate(prices)]
    if len(jobs) <= SMALL and takes(policy, "crowding"):
        crowdings = CROWDINGS if len(jobs) <= FEW else SMALL_CROWDINGS
        trials += [attempt(price, crowding=crowding) for crowding in crowdings for price in prices]
    if policy == "pfprofile" and len(jobs) <= SMALL and limits.power_cap_w is None and not limits.under_way:
        trials += [attempt(price, fixed) for price, fixed in fixed_choices(jobs, cluster, prices)]
    return _choose(trials, jobs, limits), trials


def _cross(
    jobs: Sequence[Job], cluster: Cluster, limits: Limits, policy: str, draws: ModelDraws, prices: Sequence[float]
) -> tuple[Trial | None, dict[int, Trial]]:
    """Many jobs under a budget: the first price of the grid that keeps it, and what was tried to find it."""
    assert limits.budget_j is not None
    static = StaticEnergy(jobs, [pool.n_gpus for pool in cluster.pools])
    tried: dict[int, Trial] = {}

    def within(k: int) -> bool:
        outcome = _run(jobs, cluster, limits, policy, prices[k], record=True)
        trial = tried[k] = _judge(outcome, limits, prices[k], draws)
        if _within(trial, limits):
            for other, before in tried.items():  # only the last one that fits may be the answer
                tried[other] = replace(before, outcome=None)
            tried[k] = replace(trial, outcome=outcome)
            return True
        return False

    found = first_within(
        lambda k: static.at(prices[k]), within, lambda k: tried[k].energy_j, limits.budget_j, len(prices)
    )
    return None if found is None else tried[found], tried


def _within(trial: Trial, limits: Limits) -> bool:
    """Whether a schedule keeps budget and deadlines."""
    return trial.missed is None and (limits.budget_j is None or trial.energy_j <= limits.budget_j)


def _run(
    jobs: Sequence[Job], cluster: Cluster, limits: Limits, policy: str, price: float, *, record: bool,
    fixed: Choices | None = None, crowding: float | None = None,
) -> Outcome:  # fmt: skip
    if fixed is not None:
        return simulate(jobs, cluster, FixedPolicy(fixed), limits.options(record))
    parameters = {"energy_price": price} if takes(policy, "energy_price") else {}
    if crowding is not None:
        parameters["crowding"] = crowding
    if len(jobs) <= SMALL and takes(policy, "reprice_fraction"):
        parameters["reprice_fraction"] = 0.0
    return simulate(jobs, cluster, make_policy(policy, **parameters), limits.options(record))


def _judge(outcome: Outcome, limits: Limits, price: float, draws: ModelDraws) -> Trial:
    """What a schedule is worth: with a confidence, the energy that is enough in so many of the draws."""
    energy_j = outcome.energy_j
    if limits.confidence is not None:
        energy_j = max(energy_j, spread_of(outcome, draws).quantile_j(limits.confidence))
    return Trial(outcome.avg_jct_s, energy_j, price, missed_deadline(outcome))


def _choose(trials: Sequence[Trial], jobs: Sequence[Job], limits: Limits) -> Trial:
    """The least average JCT within budget and deadlines."""
    in_time = [t for t in trials if t.missed is None]
    if not in_time:
        best = min(trials, key=lambda t: t.missed[1] if t.missed else 0.0)
        assert best.missed is not None
        index, finish_s = best.missed
        raise InfeasibleError(
            f"job {jobs[index].name!r} cannot meet its deadline at {jobs[index].deadline_s:g} s: the earliest finish "
            f"found is {finish_s:.1f} s",
            "move the deadline, or lower other jobs' min_gpus",
        )
    budget_j = math.inf if limits.budget_j is None else limits.budget_j
    within = [t for t in in_time if _within(t, limits)]
    if not within:
        least_j, lower_j = round_up(min(t.energy_j for t in in_time)), least_energy_j(jobs)
        sure = f" with confidence {limits.confidence:g}" if limits.confidence is not None else ""
        raise InfeasibleError(
            f"no schedule found within {format_energy(budget_j)}{sure}: least_energy_j={least_j} "
            f"({format_energy(least_j)}), lower_bound_j={lower_j:.3f} ({format_energy(lower_j)})",
            f"raise the budget to at least {format_energy(least_j * 1.0005)}",
            least_energy_j=least_j,
            lower_bound_j=lower_j,
        )
    return min(within, key=lambda t: (t.avg_jct_s, t.energy_j, t.price))


def round_up(energy_j: float) -> float:
    """Rounded up to a millijoule, so that the figure can be given back as a budget."""
    return math.ceil(energy_j * 1e3) / 1e3
