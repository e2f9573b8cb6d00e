"""Caps, deadlines, confidence, budgets kept online, several GPU types, the Monte Carlo check."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pfprofile.cluster.nodes import NodeGroup, make_cluster
from pfprofile.cluster.speed_table import Config, SpeedTable, build_table
from pfprofile.errors import InfeasibleError
from pfprofile.plan.bounds import preemptive_bound_s
from pfprofile.plan.grid import price_grid
from pfprofile.plan.online import OnlineBudget, expected_work_j
from pfprofile.plan.outcome import Options
from pfprofile.plan.planner import Limits, make_plan
from pfprofile.plan.simulator import simulate
from pfprofile.plan.uncertainty import ModelDraws, spread_of
from pfprofile.policy import pfprofile as pfprofile_policy
from pfprofile.policy.base import Job
from pfprofile.policy.pfprofile import PfprofilePolicy
from pfprofile.policy.registry import make_policy
from tests.plan.cases import CLUSTER, make_jobs, table
from tests.plan.double import Double


def test_a_tighter_cap_takes_longer_and_is_used() -> None:
    jobs = make_jobs(11, 10, 100.0)
    free = make_plan(jobs, CLUSTER, Limits())
    before = free.outcome.avg_jct_s
    for share in (0.7, 0.45, 0.3):
        cap_w = share * free.outcome.peak_w
        plan = make_plan(jobs, CLUSTER, Limits(power_cap_w=cap_w))
        assert 0.6 * cap_w <= plan.outcome.peak_w <= cap_w * (1 + 1e-9)
        assert plan.outcome.avg_jct_s >= before * 0.98
        before = plan.outcome.avg_jct_s


def test_a_cap_and_a_budget_hold_together() -> None:
    jobs = make_jobs(3, 8, 60.0)
    free = make_plan(jobs, CLUSTER, Limits())
    limits = Limits(budget_j=0.85 * free.outcome.energy_j, power_cap_w=0.6 * free.outcome.peak_w)
    plan = make_plan(jobs, CLUSTER, limits)
    assert plan.outcome.energy_j <= 0.85 * free.outcome.energy_j
    assert plan.outcome.peak_w <= 0.6 * free.outcome.peak_w * (1 + 1e-9)


def test_a_deadline_is_met_though_others_are_shorter() -> None:
    long = Job("urgent", 0.0, 3600 * table(0, 1024).fastest(1).speed_per_s, 1, 16, {0: table(0, 1024)})
    others = [replace(job, min_n=1) for job in make_jobs(2, 20, 0.0)]
    free = make_plan([long, *others], CLUSTER, Limits())
    asked_s = 0.6 * free.outcome.jobs[0].finished_s
    plan = make_plan([replace(long, deadline_s=asked_s), *others], CLUSTER, Limits())
    assert plan.outcome.jobs[0].finished_s <= asked_s + 1e-6


def test_a_deadline_that_cannot_be_met_names_the_earliest_finish() -> None:
    job = Job("late", 100.0, 1e6, 1, 4, {0: table(0, 256)}, deadline_s=110.0)
    earliest = 100.0 + 1e6 / table(0, 256).fastest(4).speed_per_s
    with pytest.raises(InfeasibleError, match=rf"'late'.*earliest finish is {earliest:.1f} s"):
        make_plan([job], CLUSTER, Limits())
    alone_s = 1e6 / table(0, 256).fastest(16).speed_per_s
    crowd = [Job(f"j{i}", 0.0, 1e6, 16, 16, {0: table(0, 256)}, deadline_s=1.5 * alone_s) for i in range(4)]
    with pytest.raises(InfeasibleError, match=r"earliest finish found is"):
        make_plan(crowd, CLUSTER, Limits())


def test_confidence_leaves_a_margin_and_says_how_sure() -> None:
    jobs = make_jobs(5, 12, 100.0)
    free = make_plan(jobs, CLUSTER, Limits())
    budget_j = 0.9 * free.outcome.energy_j
    bold = make_plan(jobs, CLUSTER, Limits(budget_j=budget_j))
    sure = make_plan(jobs, CLUSTER, Limits(budget_j=budget_j, confidence=0.95))
    assert sure.spread.probability(budget_j) >= 0.95 > 0.5
    assert sure.outcome.energy_j <= bold.outcome.energy_j
    assert sure.outcome.avg_jct_s >= bold.outcome.avg_jct_s
    for state, low, high in zip(sure.outcome.jobs, sure.spread.jct_lo_s, sure.spread.jct_hi_s, strict=True):
        assert low <= state.finished_s - state.job.submit_s <= high


def scaled(speeds: SpeedTable, time: float, power: float) -> SpeedTable:
    """The same table in a world where everything takes ``time`` times as long at ``power`` times the power."""
    share_w = speeds.pool.node_w / speeds.pool.gpus_per_node
    configs = tuple(
        Config(
            c.index, c.n, c.n_nodes, c.local_batch, c.accum_steps, c.clock_mhz, c.speed_per_s / time, c.gpu_w * power,
            c.n * (c.gpu_w * power + share_w),
        )
        for c in speeds.configs
    )  # fmt: skip
    return SpeedTable(speeds.model, speeds.global_batch, speeds.pool, configs, speeds.extrapolated)


def test_the_intervals_agree_with_simulations_of_the_truth() -> None:
    jobs = [replace(job, asked_n=4, min_n=4, max_n=16) for job in make_jobs(21, 25, 200.0)]
    outcome = simulate(jobs, CLUSTER, make_policy("fifo"), Options())
    spread = spread_of(outcome, ModelDraws(seed=1))
    rng = np.random.default_rng(7)
    energies, jcts = [], []
    for _ in range(120):
        # The double's own law: one error of time and one of power for each model.
        errors = {name: np.exp(rng.normal(0.0, 0.03, 2)) for name in ("resnet50", "bert", "vgg")}
        worlds: dict[int, SpeedTable] = {}
        truth = []
        for job in jobs:
            speeds = job.tables[0]
            time, power = errors[speeds.model.workload]
            truth.append(replace(job, tables={0: worlds.setdefault(id(speeds), scaled(speeds, time, power))}))
        found = simulate(truth, CLUSTER, make_policy("fifo"), Options(record=False))
        energies.append(found.energy_j)
        jcts.append([state.finished_s - state.job.submit_s for state in found.jobs])
    budget_j = float(np.quantile(energies, 0.7))
    assert spread.probability(budget_j) == pytest.approx(0.7, abs=0.15)
    assert spread.energy_j.mean() == pytest.approx(np.mean(energies), rel=0.01)
    assert spread.energy_j.std() == pytest.approx(np.std(energies), rel=0.35)
    inside = (np.array(jcts) >= spread.jct_lo_s) & (np.array(jcts) <= spread.jct_hi_s)
    assert 0.8 <= inside.mean() <= 0.99


def test_all_jobs_of_a_model_err_together() -> None:
    jobs = [Job(f"j{i}", 0.0, 1e5, 1, 8, {0: table(0, 256)}) for i in range(9)]
    outcome = simulate(jobs, CLUSTER, make_policy("pfprofile"), Options())
    spread = spread_of(outcome, ModelDraws())
    one = spread_of(simulate(jobs[:1], CLUSTER, make_policy("pfprofile"), Options()), ModelDraws())
    # Independent errors would shrink by √9; shared ones do not.
    relative = spread.energy_j.std() / spread.energy_j.mean()
    assert relative > 0.7 * one.energy_j.std() / one.energy_j.mean()


def test_an_online_budget_is_kept_close_without_looking_ahead() -> None:
    jobs = make_jobs(8, 400, 400.0)
    curve = []
    for price in price_grid(jobs):
        outcome = simulate(jobs, CLUSTER, make_policy("pfprofile", energy_price=price), Options(record=False))
        curve.append((outcome.energy_j, outcome.avg_jct_s))
    budget_j = 1.3 * min(energy for energy, _ in curve)
    policy = OnlineBudget(budget_j, expected_work_j(jobs), smoothing_s=7200.0)
    online = simulate(jobs, CLUSTER, policy, Options(record=False))
    offline_s = min(jct for energy, jct in curve if energy <= budget_j)
    assert 0.93 * budget_j <= online.energy_j <= budget_j
    assert online.avg_jct_s <= 1.06 * offline_s


def test_reviews_do_not_multiply_with_events() -> None:
    asked = []

    class Reviewed(PfprofilePolicy):
        def decide(self, state):
            asked.append(state.now_s)
            return replace(super().decide(state), review_s=state.now_s + 1800.0)

    jobs = make_jobs(8, 60, 4000.0)
    outcome = simulate(jobs, CLUSTER, Reviewed(), Options(record=False))
    assert len(asked) <= 2 * len(jobs) + (outcome.end_s - outcome.start_s) / 1800.0 + 1


def test_a_budget_that_cannot_be_kept_online_is_not_waited_for_for_ever() -> None:
    jobs = make_jobs(8, 60, 4000.0)
    frugal = simulate(jobs, CLUSTER, make_policy("pfprofile", energy_price=price_grid(jobs)[-1]), Options(record=False))
    least_j = min(
        simulate(jobs, CLUSTER, make_policy("pfprofile", energy_price=p), Options(record=False)).energy_j
        for p in price_grid(jobs)
    )
    policy = OnlineBudget(0.5 * least_j, expected_work_j(jobs), smoothing_s=1.0)
    online = simulate(jobs, CLUSTER, policy, Options(record=False))
    assert online.energy_j <= 1.2 * least_j
    assert online.avg_jct_s < 0.9 * frugal.avg_jct_s


@settings(deadline=None, max_examples=15)
@given(st.integers(0, 10**6), st.integers(2, 30), st.sampled_from((0.0, 2.0**-9)))
def test_a_job_runs_on_one_gpu_type_at_a_time(seed: int, count: int, price: float) -> None:
    groups = [NodeGroup("a", "a100-sxm4", 2, 8, 400.0, 55.0), NodeGroup("t", "tesla-t4", 4, 4, 150.0, 10.0)]
    cluster = make_cluster(groups)
    fast = build_table(Double(), 256, cluster.pools[0])
    slow = build_table(
        Double(device_name="Tesla T4", sample_s=0.004, dynamic_w=40.0, static_w=20.0), 256, cluster.pools[1]
    )
    jobs = [
        replace(job, min_n=1, max_n=16, work=job.work, tables={0: fast, 1: slow} if i % 3 else {1: slow})
        for i, job in enumerate(make_jobs(seed, count, 30.0))
    ]
    outcome = simulate(jobs, cluster, make_policy("pfprofile", energy_price=price), Options())
    for segment in outcome.segments:
        assert segment.pool in jobs[segment.job].tables
        node = "a" if segment.pool == 0 else "t"
        assert all(gpu.startswith(node) for gpu in segment.gpus)
    assert outcome.avg_jct_s >= preemptive_bound_s(jobs, cluster.n_gpus, outcome.energy_j) * (1 - 1e-9)
    if count >= 12 and price == 0.0:
        assert {s.pool for s in outcome.segments} == {0, 1}


def test_nodes_that_stay_on_cost_their_power_and_nothing_else() -> None:
    jobs = make_jobs(6, 6, 500.0)
    off = simulate(jobs, CLUSTER, make_policy("pfprofile"), Options())
    on = simulate(jobs, CLUSTER, make_policy("pfprofile"), Options(always_on=True))
    assert on.node_energy_j == pytest.approx(3 * 400.0 * on.makespan_s)
    assert on.gpu_energy_j == pytest.approx(off.gpu_energy_j) and on.energy_j > off.energy_j


def test_consolidation_saves_energy_and_is_only_done_for_a_price() -> None:
    speeds = table(0, 256)
    hour = 3600 * speeds.fastest(1).speed_per_s
    # Eight short jobs and one long one on each of three nodes: when the short ones end, one node is enough.
    jobs = [Job(f"j{i}", 0.0, hour * (10 if i % 8 == 0 else 0.2), 1, 1, {0: speeds}) for i in range(24)]
    price = 2.0**-12
    outcome = simulate(jobs, CLUSTER, make_policy("pfprofile", energy_price=price), Options())
    assert outcome.migrations >= 2
    last = max(outcome.segments, key=lambda s: s.end_s)
    live = [s for s in outcome.segments if s.start_s <= last.start_s + 1.0 < s.end_s]
    assert len({gpu.split(":")[0] for s in live for gpu in s.gpus}) == 1
    assert simulate(jobs, CLUSTER, make_policy("pfprofile"), Options()).migrations == 0
    assert math.isfinite(outcome.avg_jct_s)


def test_who_waits_goes_to_the_other_kind_of_gpu_when_that_has_become_cheaper(monkeypatch) -> None:
    """A short queue on both kinds; the slow kind's jobs end first."""
    cluster = make_cluster([NodeGroup("f", "a100-sxm4", 1, 1, 0.0, 0.0), NodeGroup("s", "tesla-t4", 1, 1, 0.0, 0.0)])
    tables = {0: build_table(Double(), 256, cluster.pools[0]),
              1: build_table(Double(device_name="Tesla T4", sample_s=0.0015), 256, cluster.pools[1])}  # fmt: skip
    speed = tables[0].fastest(1).speed_per_s
    jobs = [Job(f"j{i}", 0.0, s * speed, 1, 1, tables) for i, s in enumerate((50.0, 900.0, 50.0, 900.0, 100.0, 600.0))]

    def pools_of(most: int) -> tuple[float, set[tuple[int, int]]]:
        monkeypatch.setattr(pfprofile_policy, "MOST_CHANGES", most)
        outcome = simulate(jobs, cluster, PfprofilePolicy(reprice_fraction=0.0), Options(record=True))
        return outcome.avg_jct_s, {(s.job, s.pool) for s in outcome.segments}

    kept_s, before = pools_of(0)
    changed_s, after = pools_of(8)
    assert before != after and changed_s < 0.8 * kept_s
    assert len(after) == len(jobs)  # who has begun stays on its kind
