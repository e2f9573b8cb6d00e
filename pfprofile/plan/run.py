"""``plan`` as one call: files and limits in, schedule body out."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from models_zoo import ZOO
from pfprofile.cluster.nodes import Cluster
from pfprofile.errors import InfeasibleError, UsageError
from pfprofile.plan.actual import Progress
from pfprofile.plan.bounds import least_energy_j, preemptive_bound_s
from pfprofile.plan.derived import Rates
from pfprofile.plan.exact import exact_plan
from pfprofile.plan.exports.base import ExportPlan, JobFacts
from pfprofile.plan.exports.cutting import cut
from pfprofile.plan.inputs import Entries, Inputs, load_inputs
from pfprofile.plan.online import OnlineBudget
from pfprofile.plan.planner import Bound, Limits, Plan, make_plan
from pfprofile.plan.running import read_state, resume
from pfprofile.plan.schedule import merged_segments, schedule_body
from pfprofile.plan.simulator import simulate
from pfprofile.plan.uncertainty import ModelDraws, spread_of
from pfprofile.units import format_energy


@dataclass(frozen=True, slots=True)
class Request:
    """What ``plan`` was asked for.

    Attributes:
        jobs, cluster: files or their entries; None = defaults.
        models: folder of fitted models.
        limits: budget, cap, confidence.
        policy: who gets what.
        exact: fixed configurations by MILP.
        running, now_s, manifest: state of what is under way.
        expected_work_j: forecast of the work; the budget is then kept online, without looking ahead.
        rates: derived columns.
    """

    jobs: Path | Entries | None
    cluster: Path | Entries | None
    models: Path
    limits: Limits
    policy: str = "pfprofile"
    exact: bool = False
    running: Path | None = None
    now_s: float | None = None
    manifest: Path | None = None
    expected_work_j: float | None = None
    rates: Rates = field(default_factory=Rates)


@dataclass(frozen=True, slots=True)
class Answer:
    """The schedule, the cluster it is for, what the person should know, and planned against actual where asked."""

    body: dict[str, Any]
    cluster: Cluster
    notices: list[str]
    plan: Plan
    inputs: Inputs
    progress: list[Progress] = field(default_factory=list)

    def export_plan(self) -> ExportPlan:
        """The schedule as exports need it."""
        segments = merged_segments(self.plan.outcome.segments)
        facts = {}
        for request, batch in zip(self.inputs.requests, self.inputs.batches, strict=True):
            model = self.inputs.models[request.model]
            precision = getattr(getattr(model, "document", None), "precision", "fp32")
            facts[request.name] = JobFacts(
                request.name, model.workload, model.workload in ZOO, precision, batch, request.command,
                request.partition, request.account,
            )  # fmt: skip
        batches = [(s.config.local_batch, s.config.accum_steps) for s in segments]
        return cut(self.body, batches, facts, self.plan.outcome.start_s)


def run_plan(request: Request) -> Answer:
    """Read, plan and write down. Raises what `load_inputs`, `make_plan`, `exact_plan` and `resume` raise."""
    inputs = load_inputs(request.jobs, request.cluster, request.models)
    progress: list[Progress] = []
    limits = _resumed(request, inputs, progress) if request.running else request.limits
    if request.exact:
        plan = exact_plan(inputs.jobs, inputs.cluster, limits)
    elif request.expected_work_j is not None:
        plan = _online(request, inputs, limits)
    else:
        plan = make_plan(inputs.jobs, inputs.cluster, limits, request.policy)
    body = schedule_body(plan, {"seed": limits.seed, **inputs.provenance})
    request.rates.add(body)
    return Answer(body, inputs.cluster, inputs.notices, plan, inputs, progress)


def _resumed(request: Request, inputs: Inputs, progress: list[Progress]) -> Limits:
    """Take what is done off the jobs, and what is spent off the budget."""
    assert request.running is not None
    state = read_state(request.running, request.now_s, request.manifest, progress.append)
    left = resume(inputs.jobs, inputs.cluster, state, inputs.batches, str(request.running))
    inputs.jobs = left.jobs
    inputs.notices += left.notices
    budget_j = request.limits.budget_j
    if budget_j is not None and left.spent_j > 0:
        if left.spent_j >= budget_j:
            raise InfeasibleError(
                f"the budget of {format_energy(budget_j)} is spent: {format_energy(left.spent_j)} so far",
                "raise --budget",
                least_energy_j=left.spent_j + least_energy_j(left.jobs),
                lower_bound_j=left.spent_j + least_energy_j(left.jobs),
            )
        budget_j -= left.spent_j
        inputs.notices.append(
            f"{format_energy(left.spent_j)} are spent; {format_energy(budget_j)} are left to plan with"
        )
    return replace(request.limits, budget_j=budget_j, start_s=left.now_s, under_way=left.seats)


def _online(request: Request, inputs: Inputs, limits: Limits) -> Plan:
    """One simulation with λ steered as work arrives."""
    if limits.budget_j is None or request.expected_work_j is None:
        raise UsageError("--expected-work: needs --budget", "say how much energy the expected work may use")
    policy = OnlineBudget(limits.budget_j, request.expected_work_j)
    outcome = simulate(inputs.jobs, inputs.cluster, policy, limits.options(record=True))
    lower_j = least_energy_j(inputs.jobs)
    if outcome.energy_j > limits.budget_j:
        raise InfeasibleError(
            f"online, the budget of {format_energy(limits.budget_j)} is overspent: {format_energy(outcome.energy_j)}",
            "raise the budget, correct --expected-work, or leave it out to plan with what is known",
            least_energy_j=outcome.energy_j,
            lower_bound_j=lower_j,
        )
    bound_s = preemptive_bound_s(inputs.jobs, inputs.cluster.n_gpus, limits.budget_j, limits.start_s)
    return Plan(
        outcome, inputs.jobs, inputs.cluster, limits, policy.name, policy.inner.energy_price,
        spread_of(outcome, ModelDraws(limits.seed)), Bound.of("preemptive", bound_s, outcome.avg_jct_s), lower_j,
        outcome.energy_j,
    )  # fmt: skip
