"""What no schedule may break: work, energy, GPUs, arrivals, the cap; and what budgets promise."""

from __future__ import annotations

import math
from collections import defaultdict
from itertools import pairwise

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from pfprofile.cluster.nodes import Cluster
from pfprofile.errors import InfeasibleError
from pfprofile.plan.bounds import least_energy_j, preemptive_bound_s
from pfprofile.plan.outcome import Options, Outcome
from pfprofile.plan.planner import Limits, make_plan
from pfprofile.plan.schedule import merged_segments
from pfprofile.plan.simulator import simulate
from pfprofile.policy.base import Job
from pfprofile.policy.registry import POLICIES, make_policy
from tests.plan.cases import CLUSTER, make_jobs, table


def check(jobs: list[Job], cluster: Cluster, outcome: Outcome, cap_w: float = math.inf, on: bool = False) -> None:
    segments = merged_segments(outcome.segments)
    work: dict[int, float] = defaultdict(float)
    seats: dict[str, list[tuple[float, float]]] = defaultdict(list)
    for s in segments:
        assert s.end_s > s.start_s
        assert s.start_s >= jobs[s.job].submit_s
        assert len(s.gpus) == s.config.n == len(set(s.gpus))
        assert jobs[s.job].min_n <= s.config.n <= jobs[s.job].max_n
        if s.kind == "run":
            work[s.job] += s.config.speed_per_s * (s.end_s - s.start_s)
        for gpu in s.gpus:
            seats[gpu].append((s.start_s, s.end_s))
    for i, job in enumerate(jobs):
        assert work[i] == pytest.approx(job.work, rel=1e-9)
    for times in seats.values():
        times.sort()
        assert all(a[1] <= b[0] + 1e-9 for a, b in pairwise(times))
    # Everything again from the segments alone.
    instants = sorted({t for s in segments for t in (s.start_s, s.end_s)} | {min(j.submit_s for j in jobs)})
    idle_j = node_j = gpu_j = 0.0
    pool = cluster.pools[0]
    for a, b in pairwise(instants):
        live = [s for s in segments if s.start_s <= a and s.end_s >= b]
        nodes = pool.n_nodes if on else len({gpu.split(":")[0] for s in live for gpu in s.gpus})
        idle_w = (nodes * pool.gpus_per_node - sum(s.config.n for s in live)) * pool.idle_w
        gpu_w = sum(s.power_w for s in live)
        assert gpu_w + idle_w + nodes * pool.node_w <= cap_w * (1 + 1e-9)
        idle_j += idle_w * (b - a)
        node_j += nodes * pool.node_w * (b - a)
        gpu_j += gpu_w * (b - a)
    assert outcome.gpu_energy_j == pytest.approx(gpu_j, rel=1e-9)
    assert outcome.idle_energy_j == pytest.approx(idle_j, rel=1e-9, abs=1e-3)
    assert outcome.node_energy_j == pytest.approx(node_j, rel=1e-9)
    assert outcome.gpu_energy_j == pytest.approx(math.fsum(s.energy_j for s in segments), rel=1e-12)


@settings(deadline=None, max_examples=40)
@given(
    st.integers(0, 10**6), st.integers(1, 40), st.sampled_from((0.0, 60.0, 400.0)), st.sampled_from(sorted(POLICIES)),
    st.sampled_from((0.0, 2.0**-12, 2.0**-8)), st.booleans(),
)  # fmt: skip
def test_every_policy_conserves(seed: int, count: int, gap_s: float, name: str, price: float, on: bool) -> None:
    jobs = make_jobs(seed, count, gap_s)
    policy = make_policy(name, energy_price=price) if name == "pfprofile" else make_policy(name)
    outcome = simulate(jobs, CLUSTER, policy, Options(always_on=on))
    check(jobs, CLUSTER, outcome, on=on)
    assert outcome.energy_j >= least_energy_j(jobs) * (1 - 1e-9)
    assert outcome.avg_jct_s >= preemptive_bound_s(jobs, 24) * (1 - 1e-9)
    assert outcome.avg_jct_s >= preemptive_bound_s(jobs, 24, outcome.energy_j) * (1 - 1e-9)


@settings(deadline=None, max_examples=12)
@given(st.integers(0, 10**6), st.integers(2, 25), st.sampled_from((2500.0, 4000.0, 8000.0)), st.booleans())
@example(5966, 21, 8000.0, False)  # a job that only changes its clock is moved to make room for another one
def test_power_never_exceeds_the_cap(seed: int, count: int, cap_w: float, on: bool) -> None:
    jobs = make_jobs(seed, count, 100.0)
    try:
        plan = make_plan(jobs, CLUSTER, Limits(power_cap_w=cap_w, always_on=on))
    except InfeasibleError as error:
        assert "power cap" in str(error)
        return
    check(jobs, CLUSTER, plan.outcome, cap_w, on)
    assert plan.outcome.peak_w <= cap_w * (1 + 1e-9)


@settings(deadline=None, max_examples=6)
@given(st.integers(0, 10**6), st.integers(2, 15), st.sampled_from((0.0, 200.0)))
def test_a_larger_budget_never_takes_longer_and_none_is_overspent(seed: int, count: int, gap_s: float) -> None:
    jobs = make_jobs(seed, count, gap_s)
    free = make_plan(jobs, CLUSTER, Limits())
    with pytest.raises(InfeasibleError) as refused:
        make_plan(jobs, CLUSTER, Limits(budget_j=1.0))
    least_j = refused.value.least_energy_j
    assert least_j is not None and refused.value.lower_bound_j is not None
    assert refused.value.lower_bound_j <= least_j
    before = math.inf
    for share in (0.0, 0.1, 0.3, 0.6, 1.0):
        budget_j = least_j + share * max(0.0, free.outcome.energy_j - least_j)
        plan = make_plan(jobs, CLUSTER, Limits(budget_j=budget_j))
        assert plan.outcome.energy_j <= budget_j
        assert plan.outcome.avg_jct_s <= before
        assert plan.bound.gap >= 0
        before = plan.outcome.avg_jct_s


def test_one_job_alone_takes_the_time_its_table_says() -> None:
    speeds = table(0, 256)
    job = Job("one", 5.0, 1e5, 4, 4, {0: speeds})
    outcome = simulate([job], CLUSTER, make_policy("pfprofile"), Options())
    fastest = speeds.fastest(4)
    assert outcome.avg_jct_s == pytest.approx(1e5 / fastest.speed_per_s)
    assert outcome.gpu_energy_j == pytest.approx(4 * fastest.gpu_w * outcome.avg_jct_s)
    assert outcome.node_energy_j == pytest.approx(400.0 * outcome.avg_jct_s)
    assert outcome.idle_energy_j == pytest.approx(4 * 55.0 * outcome.avg_jct_s)
