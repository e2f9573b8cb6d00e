"""Tables and words of a report."""

from __future__ import annotations

import math
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from pfprofile.report.lines import spread_apart
from pfprofile.report.parts import ROW_LIMIT, columns_of, enumerate_words, in_one_unit, shorten, spread_evenly, table

COLUMNS = {"a": ("A", str), "b": ("B", lambda v: f"{v:.1f}"), "c": ("C", str)}


def test_unknown_is_a_word_and_empty_columns_are_left_out():
    found = table("t", [{"a": "x", "b": 1.25}, {"a": "y", "b": math.nan}, {"a": "z", "b": None}], COLUMNS)
    assert found.columns == (("A", False), ("B", True))
    assert found.rows == (("x", "1.2"), ("y", "unknown"), ("z", "unknown"))


def test_a_long_table_says_how_many_rows_it_leaves_out():
    found = table("t", [{"a": i} for i in range(ROW_LIMIT + 7)], COLUMNS)
    assert (len(found.rows), found.omitted) == (ROW_LIMIT, 7)


def test_durations_share_the_unit_of_the_longest():
    rows = [{"b": 60.0}, {"b": 4 * 3600.0}]
    found = table("t", rows, in_one_unit(COLUMNS, rows, ("b",)))
    assert found.columns == (("B (h)", True),)
    assert found.rows == (("0.02",), ("4.00",))


def test_words_are_joined_as_people_do():
    assert [enumerate_words(list("abc"[:n])) for n in range(4)] == ["", "a", "a and b", "a, b and c"]


def test_names_lose_their_middle():
    assert shorten("rack-17/dgx-204", 20) == "rack-17/dgx-204"
    assert shorten("rack-17/dgx-204", 9) == "rack…-204"
    assert columns_of("中文") == 4


@given(st.text(max_size=60), st.integers(3, 40))
def test_a_short_name_fits(text, most):
    assert columns_of(shorten(text, most)) <= most


@given(st.lists(st.integers(), min_size=1, max_size=50), st.integers(2, 9))
def test_a_selection_keeps_both_ends(values, most):
    chosen = spread_evenly(values, most)
    assert len(chosen) == min(len(values), most)
    assert (chosen[0], chosen[-1]) == (values[0], values[-1])


@given(st.lists(st.floats(0, 200), min_size=1, max_size=10).map(sorted))
def test_labels_keep_their_distance_and_their_order(heights):
    placed = spread_apart(heights, 14.0, 0.0, 200.0)
    assert all(b - a >= 14.0 - 1e-6 for a, b in pairwise(placed))
    assert max(placed) <= 200.0 + 1e-9
