from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pfprofile.errors import UsageError
from pfprofile.profile.importers.expression import evaluate

COLUMNS = {"a": np.array([1.0, 2.0]), "b": np.array([4.0, 0.0]), "power draw (mW)": np.array([1e5, 2e5])}


def value(text: str) -> list[float]:
    return evaluate(text, COLUMNS, 2, f"--map x={text}").tolist()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a", [1, 2]),
        ("3", [3, 3]),
        ("a + 2*b", [9, 2]),
        ("(a + 2)*b", [12, 0]),
        ("a - 1 - 1", [-1, 0]),
        ("8/b/2", [1, math.nan]),
        ("-a*-2", [2, 4]),
        ("a × 2 ÷ 4 − 1", [-0.5, 0]),
        ("`power draw (mW)`/1000", [100, 200]),
        ("1e-3*a", [0.001, 0.002]),
    ],
)
def test_arithmetic(text, expected):
    np.testing.assert_allclose(value(text), expected)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a.b", "cannot read"), ("f(a)", "no numeric column 'f'"), ("a b", "unexpected 'b'"), ("a +", "ends too early"),
        ("(a", "closing parenthesis"), ("c", "no numeric column"), ("a**2", "unexpected '*'"), ("", "ends too early"),
        ("__import__('os')", "cannot read"), ("(" * 5000 + "a", "more than"),
    ],
)  # fmt: skip
def test_nothing_but_arithmetic(text, words):
    with pytest.raises(UsageError) as caught:
        value(text)
    assert words in str(caught.value)


@given(st.text(alphabet="ab+-*/() .1e`×", max_size=30))
def test_any_text_is_a_value_or_a_usage_error(text):
    try:
        result = value(text)
    except UsageError:
        return
    assert len(result) == 2


_TREE = st.recursive(
    st.sampled_from(["a", "b", "2", "0.5"]),
    lambda kids: st.tuples(kids, st.sampled_from("+-*/"), kids).map(lambda t: f"({t[0]} {t[1]} {t[2]})"),
    max_leaves=12,
)


@given(_TREE)
def test_agrees_with_python(text):
    expected = []
    for i in range(2):
        try:
            expected.append(eval(text, {"__builtins__": {}}, {k: float(v[i]) for k, v in COLUMNS.items()}))
        except ZeroDivisionError:
            expected.append(math.nan)
    np.testing.assert_allclose(value(text), expected, rtol=1e-12)
