"""Clocks, order, the search for the largest batch."""

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pfprofile.errors import UsageError
from pfprofile.sweep.chooser import BatchLimits, BatchSearch, Grid, grid_order
from pfprofile.sweep.design import design
from pfprofile.sweep.space import AUTO_CLOCKS, Point, choose_clocks, spread

V100 = (135.0, 142.0, 150.0, 1327.0, 1335.0, 1342.0, 1350.0, 1357.0, 1365.0, 1372.0, 1380.0)
clock_lists = st.lists(st.integers(100, 3000).map(float), min_size=1, max_size=200, unique=True)


@settings(deadline=None)
@given(clock_lists)
def test_a_spread_has_the_ends_and_is_short(clocks):
    chosen = spread(clocks)
    assert chosen == sorted(set(chosen))
    assert {min(clocks), max(clocks)} <= set(chosen) <= set(clocks)
    assert len(chosen) <= AUTO_CLOCKS
    middle = (min(clocks) + max(clocks)) / 2
    if len(clocks) > AUTO_CLOCKS:
        assert min(clocks, key=lambda c: abs(c - middle)) in chosen


@settings(deadline=None)
@given(clock_lists, st.data())
def test_a_supported_clock_chooses_itself(clocks, data):
    clock = data.draw(st.sampled_from(clocks))
    assert choose_clocks(f"{clock:g}MHz", clocks) == [clock]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("default", [None]),
        ("1372.5,135", [1372.0, 135.0]),
        ("1380,1380MHz", [1380.0]),
        ("1350:1380:15", [1350.0, 1365.0, 1380.0]),
        ("1327:1342:7.5", [1327.0, 1335.0, 1342.0]),
        ("all", list(V100)),
    ],
)
def test_clocks_are_chosen_from_the_list(text, expected):
    assert choose_clocks(text, V100) == expected


def test_an_empty_list_leaves_the_default():
    assert choose_clocks("auto", ()) == [None]
    with pytest.raises(UsageError, match="offers no clocks"):
        choose_clocks("1380", ())


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("1500", "above the maximum of 1380 MHz"),
        ("800", "nearest supported clock is 1327 MHz"),
        ("800:600:10", "not a range"),
        ("200:1300:100", "no supported clock lies there"),
        ("fast", "is not a clock"),
    ],
)
def test_clocks_that_are_not_there(text, words):
    with pytest.raises(UsageError) as caught:
        choose_clocks(text, V100)
    assert words in str(caught.value)


def row(point, status="ok", step_time_s=0.1, memory=1 << 20):
    return {
        "n_gpus": point.n_gpus, "n_nodes": 1, "local_batch": point.local_batch, "accum_steps": point.accum_steps,
        "requested_clock_mhz": point.sm_clock_mhz, "status": status, "step_time_s": step_time_s,
        "memory_peak_bytes": memory,
    }  # fmt: skip


def drive(chooser, status=lambda p: "ok", rows=(), **more):
    rows = list(rows)
    while (point := chooser.next_point(rows)) is not None:
        assert chooser.left(rows) >= 1
        assert len(rows) < 500
        rows.append(row(point, status(point), **more))
    assert chooser.left(rows) == 0
    return rows


POINTS = [Point(n, b, c) for n in (1, 2) for b in (1, 2, 4) for c in (600.0, 1005.0, 1410.0)]


@settings(deadline=None)
@given(st.integers(0, 2**31), st.integers(1, 3), st.integers(0, 60))
def test_a_grid_measures_each_point_as_often_as_asked_and_resumes(seed, repeats, killed_after):
    order = grid_order(POINTS, repeats=repeats, seed=seed)
    rows = drive(Grid(order))
    assert sorted(str(Point.of_row(r)) for r in rows) == sorted(str(p) for p in POINTS * repeats)
    resumed = drive(Grid(order), rows=rows[:killed_after])
    assert resumed == rows


@settings(deadline=None)
@given(st.integers(0, 2**31))
def test_the_clocks_of_a_worker_set_stay_together(seed):
    sets = [p.worker_set for p, _ in grid_order(POINTS, repeats=2, seed=seed)]
    changes = sum(a != b for a, b in pairwise(sets))
    assert changes <= 2 * 6 - 1


def test_the_order_depends_on_the_seed():
    assert grid_order(POINTS, repeats=1, seed=1) == grid_order(POINTS, repeats=1, seed=1)
    assert grid_order(POINTS, repeats=1, seed=1) != grid_order(POINTS, repeats=1, seed=2)


def test_after_running_out_of_memory_larger_batches_are_not_tried():
    rows = drive(Grid([(Point(n, b, c), 0) for n in (1, 2) for b in (2, 4, 8) for c in (600.0, 900.0)]),
                 lambda p: "oom" if (p.n_gpus, p.local_batch) >= (2, 4) else "ok")  # fmt: skip
    failed = [(r["n_gpus"], r["local_batch"]) for r in rows if r["status"] == "oom"]
    assert failed == [(2, 4)]
    assert len(rows) == 6 + 2 + 1
    assert Grid([(Point(n, b, c), 0) for n in (1, 2) for b in (2, 4, 8) for c in (600.0, 900.0)]).skipped(rows) == 3


@settings(deadline=None, max_examples=25)
@given(st.integers(1, 5000))
def test_the_batch_search_comes_within_an_eighth_of_what_fits(fits):
    search = BatchSearch((1, 2), (600.0, 1410.0), (1,), repeats=2, seed=0, limits=BatchLimits())
    rows = drive(search, lambda p: "ok" if p.local_batch <= fits else "oom")
    for n in (1, 2):
        good = {r["local_batch"] for r in rows if r["status"] == "ok" and r["n_gpus"] == n}
        assert max(good) <= fits
        assert fits - max(good) <= max(1, fits // 8)
        for clock in (600.0, 1410.0):
            for batch in good:
                same = [r for r in rows if (r["n_gpus"], r["local_batch"], r["requested_clock_mhz"]) ==
                        (n, batch, clock) and r["status"] == "ok"]  # fmt: skip
                assert len(same) == 2


def test_the_batch_search_stops_at_nothing_at_all():
    rows = drive(BatchSearch((1,), (None,), (1,), repeats=1, seed=0, limits=BatchLimits()), lambda p: "oom")
    assert [r["local_batch"] for r in rows] == [1]


@pytest.mark.parametrize(
    ("limits", "largest"),
    [
        (BatchLimits(most_batch=64), 64),
        (BatchLimits(most_step_s=0.15), 1),
        (BatchLimits(most_bytes=float(1 << 19)), 1),
    ],
)
def test_the_batch_search_stops_before_it_hurts(limits, largest):
    rows = drive(BatchSearch((1,), (None,), (1,), repeats=1, seed=0, limits=limits))
    assert max(r["local_batch"] for r in rows) == largest


@settings(deadline=None)
@given(st.integers(8, 18), st.integers(0, 100))
def test_a_design_keeps_the_corners(count, seed):
    chosen = design(POINTS, count, seed)
    assert len(chosen) == count == len(set(chosen))
    assert {Point(n, b, c) for n in (1, 2) for b in (1, 4) for c in (600.0, 1410.0)} <= set(chosen)
