"""Every registered policy, alike: conservation, nothing early, the bounds, the same again."""

from __future__ import annotations

import pytest

from pfprofile.cluster.nodes import NodeGroup, make_cluster
from pfprofile.cluster.speed_table import build_table
from pfprofile.plan.bounds import least_energy_j, preemptive_bound_s
from pfprofile.plan.outcome import Options
from pfprofile.plan.simulator import simulate
from pfprofile.policy.base import Job, Policy
from pfprofile.policy.clock_rules import parse_rules, with_rule
from pfprofile.policy.registry import POLICIES, make_policy
from tests.plan.cases import CLUSTER, MODELS, make_jobs
from tests.plan.test_conservation import check

NAMES = sorted(POLICIES)
CASES = ((0, 1, 0.0), (1, 12, 0.0), (2, 40, 60.0), (3, 25, 400.0))


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(("seed", "count", "gap_s"), CASES)
@pytest.mark.parametrize("on", [False, True])
def test_work_energy_and_gpus_are_conserved(name: str, seed: int, count: int, gap_s: float, on: bool) -> None:
    jobs = make_jobs(seed, count, gap_s)
    outcome = simulate(jobs, CLUSTER, make_policy(name), Options(always_on=on))
    check(jobs, CLUSTER, outcome, on=on)
    assert outcome.energy_j >= least_energy_j(jobs) * (1 - 1e-9)
    assert outcome.avg_jct_s >= preemptive_bound_s(jobs, 24) * (1 - 1e-9)
    assert outcome.avg_jct_s >= preemptive_bound_s(jobs, 24, outcome.energy_j) * (1 - 1e-9)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("rule", ["zeus:0.5", "energy-optimal"])
def test_clock_rules_combine_with_every_policy(name: str, rule: str) -> None:
    jobs = make_jobs(5, 20, 200.0)
    ruled = with_rule(jobs, parse_rules(rule)[0])
    outcome = simulate(ruled, CLUSTER, make_policy(name), Options())
    check(ruled, CLUSTER, outcome)
    for segment in outcome.segments:
        assert segment.config is ruled[segment.job].tables[0].by_n[segment.config.n][0]
    assert outcome.avg_jct_s >= preemptive_bound_s(jobs, 24, outcome.energy_j) * (1 - 1e-9)


@pytest.mark.parametrize("name", NAMES)
def test_the_power_cap_holds_for_every_policy(name: str) -> None:
    jobs = make_jobs(6, 15, 100.0)
    outcome = simulate(jobs, CLUSTER, make_policy(name), Options(power_cap_w=6000.0))
    check(jobs, CLUSTER, outcome, 6000.0)


@pytest.mark.parametrize("name", NAMES)
def test_two_kinds_of_gpus(name: str) -> None:
    cluster = make_cluster(
        [NodeGroup("a", "a100-sxm4", 2, 8, 400.0, 55.0), NodeGroup("b", "a100-sxm4", 2, 4, 300.0, 40.0)]
    )
    tables = {pool: build_table(MODELS[0], 256, cluster.pools[pool]) for pool in (0, 1)}
    jobs = [Job(f"j{i}", 120.0 * i, 3e6 * (1 + i % 4), 1, 8, dict(tables), asked_n=4) for i in range(16)]
    outcome = simulate(jobs, cluster, make_policy(name), Options())
    done = [0.0] * len(jobs)
    for s in outcome.segments:
        assert all(gpu.startswith("ab"[s.pool]) for gpu in s.gpus)
        done[s.job] += s.config.speed_per_s * (s.end_s - s.start_s) * (s.kind == "run")
    assert done == pytest.approx([job.work for job in jobs])
    assert {s.pool for s in outcome.segments} == {0, 1}


@pytest.mark.parametrize("name", NAMES)
def test_the_same_again(name: str) -> None:
    jobs = make_jobs(7, 30, 90.0)
    first, second = (simulate(jobs, CLUSTER, make_policy(name), Options()) for _ in range(2))
    assert first.segments == second.segments


@pytest.mark.parametrize("name", NAMES)
def test_every_policy_says_who_it_is(name: str) -> None:
    policy = make_policy(name)
    assert isinstance(policy, Policy)
    assert policy.name == name
