"""Adaptive sweeps: which clocks and points are chosen, when they stop, and that a kill changes nothing."""

import random
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pfprofile.profile import read_profile
from pfprofile.sweep import SweepRequest, sweep
from pfprofile.sweep.adaptive import Adaptive
from pfprofile.sweep.chooser import BatchLimits, BatchSearch
from pfprofile.sweep.clock_search import CLOSE, MOST_CLOCKS, ClockSearch, is_close, lead_curves, opening
from pfprofile.sweep.design import END_WEIGHT, design, must_have
from pfprofile.sweep.outliers import outliers
from pfprofile.sweep.request import Reporter
from pfprofile.sweep.space import Point
from pfprofile.sweep.stop_rule import BATCH, LEAST_POINTS, MOST_POINTS, Look, verdict
from pfprofile.sweep.surrogate import Machine

RECORDING = Path(__file__).parent.parent / "fixtures" / "gpu_small.parquet"
CLOCKS = [float(c) for c in range(600, 1411, 45)]
MACHINE = Machine("NVIDIA A100", 1410.0, tuple(CLOCKS), 400.0)


def truth(point, energy_best_mhz=1005.0):
    """A row of a job whose energy is least near one clock: time = memory + compute / f, power = floor + f³."""
    f = point.sm_clock_mhz or 1410.0
    n, b = point.n_gpus, point.local_batch
    time_s = (0.02 + 0.002 * b * (0.3 + 0.7 * 1410 / f)) * (1 + 0.02 * (n - 1)) + 0.01 * (n > 1)
    power_w = 80 + 200 * (f / 1410) * (1 + max(0.0, f / 1410 - energy_best_mhz / 1410)) ** 2
    return {
        "n_gpus": n, "n_nodes": point.n_nodes, "local_batch": b, "accum_steps": point.accum_steps, "status": "ok",
        "requested_clock_mhz": point.sm_clock_mhz, "achieved_clock_mhz": f, "step_time_s": time_s, "power_w": power_w,
        "memory_peak_bytes": 1 << 20 * b.bit_length(),
    }  # fmt: skip


def drive(chooser, answer=truth, rows=(), most=500):
    rows = list(rows)
    while (point := chooser.next_point(rows)) is not None:
        rows.append(answer(point))
        assert len(rows) < most
    return rows


def failing(status, when):
    return lambda p: {**truth(p), "status": status if when(p) else "ok"}


def space(gpus=(1, 2, 4), batches=(8, 32, 128), clocks=CLOCKS):
    return [Point(n, b, c) for n in gpus for b in batches for c in clocks]


def test_clocks_are_few_and_the_optimum_is_among_them():
    chooser = Adaptive(space((1,), (64,)), MACHINE, choose_clocks=True)
    rows = drive(chooser)
    measured = [r["requested_clock_mhz"] for r in rows]
    assert set(measured[:3]) == set(opening(CLOCKS))
    assert len(measured) <= MOST_CLOCKS
    best = min(CLOCKS, key=lambda c: truth(Point(1, 64, c))["step_time_s"] * truth(Point(1, 64, c))["power_w"])
    assert is_close(best, measured)
    assert "within 2% of a measured clock" in chooser.reasons(rows)[0] or len(measured) == MOST_CLOCKS


def test_a_grid_is_measured_at_the_clocks_that_two_curves_chose():
    chooser = Adaptive(space(), MACHINE, choose_clocks=True)
    rows = drive(chooser)
    clocks = {r["requested_clock_mhz"] for r in rows}
    assert len(clocks) <= MOST_CLOCKS
    assert len(rows) == 9 * len(clocks)
    assert lead_curves({(1, 1, 128, 1): CLOCKS, (4, 1, 8, 1): CLOCKS, (2, 1, 8, 1): CLOCKS}, []) == [
        (1, 1, 128, 1), (4, 1, 8, 1)
    ]  # fmt: skip


def test_another_curve_leads_where_one_fails():
    chooser = Adaptive(space((1,), (8, 128)), MACHINE, choose_clocks=True)
    rows = drive(chooser, failing("failed", lambda p: p.local_batch == 128))
    assert len({r["requested_clock_mhz"] for r in rows if r["local_batch"] == 8}) >= 3


def test_without_power_the_slowest_clock_within_the_slowdown_is_sought():
    chooser = Adaptive(space((1,), (64,)), MACHINE, choose_clocks=True)
    rows = drive(chooser, lambda p: {**truth(p), "power_w": None})
    top = truth(Point(1, 64, 1410.0))["step_time_s"]
    slow = [truth(Point(1, 64, r["requested_clock_mhz"]))["step_time_s"] / top - 1 for r in rows]
    assert any(0.02 <= s <= 0.05 for s in slow)


@settings(max_examples=4)
@given(st.integers(0, 1000), st.integers(0, 40), st.sampled_from([None, 14, "auto"]))
def test_a_kill_changes_nothing(seed, killed_after, budget):
    def chooser():
        return Adaptive(space(), MACHINE, choose_clocks=True, budget=budget, repeats=lambda _: 2, seed=seed)

    rows = drive(chooser())
    assert drive(chooser(), rows=rows[:killed_after]) == rows
    assert chooser().next_point(rows) is None


@pytest.mark.parametrize("budget", [1, 4, 5, 8])
def test_the_most_points_bound_the_search_for_clocks_too(budget):
    chooser = Adaptive(space(), MACHINE, choose_clocks=True, budget=budget, repeats=lambda _: 2)
    rows = drive(chooser)
    assert len({Point.of_row(r) for r in rows}) == budget and len(rows) == 2 * budget
    assert all(f"--max-points {budget}" in words for words in chooser.reasons(rows))


def test_the_search_for_batches_comes_first_and_tells_the_clocks_apart():
    search = BatchSearch((1,), CLOCKS, (1,), repeats=1, seed=0, limits=BatchLimits())
    rows = drive(Adaptive(search, MACHINE, choose_clocks=True, budget=20), failing("oom", lambda p: p.local_batch > 40))
    assert max(r["local_batch"] for r in rows if r["status"] == "ok") > 35
    assert all(r["requested_clock_mhz"] == 1410.0 for r in rows if r["status"] == "oom")
    assert len({Point.of_row(r) for r in rows}) == 20


def test_what_cannot_fit_is_left_out_and_counted():
    chooser = Adaptive(space(clocks=[None], batches=(8, 16, 32, 64)), MACHINE, budget=9)
    rows = drive(chooser, failing("oom", lambda p: p.local_batch >= 32))
    assert sum(r["status"] == "oom" for r in rows) <= 6
    assert chooser.skipped(rows) + len(rows) <= 12


@settings(deadline=None, max_examples=30)
@given(st.integers(1, 60), st.integers(0, 99), st.data())
def test_a_longer_design_begins_with_a_shorter_one(count, seed, data):
    points = [Point(n, b, c, 1, k) for n, k in ((1, 1), (2, 1), (4, 1), (8, 2), (2, 2)) for b in (1, 4, 16)
              for c in (600.0, 900.0, 1410.0)]  # fmt: skip
    shuffled = list(points)
    random.Random(seed + 1).shuffle(shuffled)
    chosen = design(points, count, seed)
    assert len(chosen) == len(set(chosen)) == min(count, len(points))
    assert design(shuffled, count, seed) == chosen
    cut = data.draw(st.integers(0, len(chosen)))
    assert chosen[:cut] + design(points, count, seed, chosen[:cut]) == chosen


def test_a_design_uses_levels_evenly_and_ends_twice():
    points = [Point(n, b, c) for n in (1, 2, 4, 8) for b in (1, 4, 16, 64, 256) for c in (600.0, 900.0, 1200.0, 1410.0)]
    chosen = design(points, 40, 0)
    for axis in (lambda p: p.n_gpus, lambda p: p.local_batch, lambda p: p.sm_clock_mhz):
        counts = {level: sum(axis(p) == level for p in chosen) for level in map(axis, points)}
        inner = [v for k, v in counts.items() if k not in (min(counts), max(counts))]
        assert max(inner) - min(inner) <= 1
        assert END_WEIGHT * min(inner) - 3 <= min(counts[min(counts)], counts[max(counts)])


def test_two_nodes_full_and_with_one_gpu_each_are_always_there():
    points = [Point(n, b, None, 1, k) for n, k in ((1, 1), (4, 1), (2, 2), (6, 2), (8, 2), (16, 4)) for b in (1, 2, 4)]
    first = design(points, 8, 3)
    assert {(8, 2), (2, 2)} <= {(p.n_gpus, p.n_nodes) for p in first}
    assert set(must_have(points)) == set(first)


def looks(*errors, weak=()):
    return [Look(e, tuple(weak)) for e in errors]


def test_the_rule_stops_when_the_error_stands_still_and_no_axis_is_weak():
    assert "moved by 0.3 points over the last 8 points" in verdict(looks(0.050, 0.052, 0.053), LEAST_POINTS)
    assert verdict(looks(0.050, 0.056, 0.053), LEAST_POINTS) is None
    assert verdict(looks(0.050, 0.052), LEAST_POINTS - BATCH) is None
    assert verdict(looks(0.05, 0.05, 0.05, weak=("--gpus",)), 32) is None
    assert "30 points" in verdict(looks(0.05, 0.07, 0.05), 32)
    assert "still weak: --gpus" in verdict(looks(0.05, 0.05, 0.05, weak=("--gpus",)), MOST_POINTS)


def test_auto_stops_early_on_an_easy_job_and_says_why():
    chooser = Adaptive(space(gpus=(1, 2, 4, 8), clocks=CLOCKS[::6]), MACHINE, budget="auto")
    rows = drive(chooser)
    assert LEAST_POINTS <= len(rows) <= 32
    assert "stopped because its leave-one-out error of" in chooser.reasons(rows)[0]
    assert "no axis is weak" in chooser.reasons(rows)[0]


def test_outliers_are_marked():
    times = {8: [1.0, 1.001, 1.5], 16: [1.0, 1.0, 1.02], 32: [1.0, 2.0]}
    rows = [{**truth(Point(1, b)), "step_time_s": t, "trial_id": f"{b}-{i}"} for b, ts in times.items()
            for i, t in enumerate(ts)]  # fmt: skip
    (mark,) = outliers(rows)
    assert (mark["trial_id"], mark["column"]) == ("8-2", "step_time_s")
    assert mark["deviation"] == pytest.approx(0.5, abs=0.01)


def test_a_replay_uses_only_what_it_picked_and_says_what_it_saved(tmp_path):
    said = []
    request = SweepRequest(
        "resnet50", replay=str(RECORDING), freqs="auto", max_points=12, output=tmp_path / "p.parquet"
    )
    outcome = sweep(request, Reporter(notice=said.append))
    recorded = {r["trial_id"]: r for r in read_profile(RECORDING).rows()}
    rows = outcome.profile.rows()
    assert all(recorded[r["trial_id"]] == r for r in rows)
    points = {Point.of_row(r) for r in rows}
    assert len(points) == 12
    assert any("--max-points 12: 12 of" in words for words in said)
    assert any("need not be measured" in words for words in said)
    assert sweep(request).new == 0


def test_the_opening_clocks():
    assert opening([600.0, 607.0, 900.0, 1400.0]) == [600.0, 900.0, 1400.0]
    assert opening([600.0]) == [600.0]
    assert not is_close(1000.0, [1000 * (1 + CLOSE) + 1])
    assert ClockSearch(MACHINE).next_point({}, []) is None
