"""A small arithmetic language for `--map`: columns, numbers, + − × ÷ and parentheses. No calls, no attributes."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

import numpy as np
from numpy.typing import NDArray

from pfprofile.errors import UsageError, nearest

Array = NDArray[np.float64]

#: Far more than a unit conversion needs; keeps nesting below Python's recursion limit.
_MOST_TOKENS = 100

_TOKEN = re.compile(
    r"""\s*(?:
        (?P<number>(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][-+]?\d+)?)
      | (?P<name>[^\W\d]\w*)
      | `(?P<quoted>[^`]+)`
      | (?P<op>[-+*/()×÷−])
    )""",
    re.VERBOSE,
)
_SAME = {"×": "*", "÷": "/", "−": "-"}


def evaluate(text: str, columns: Mapping[str, Array], length: int, what: str) -> Array:
    """Value of an expression over columns.

    Args:
        text: e.g. ``energy / time`` or ``1e-3 * `power draw (mW)```; a name in backticks may hold anything.
        columns: numeric columns, each (m,), NaN = unknown.
        length: m, for an expression of numbers alone.
        what: the option's text, for errors.

    Returns:
        (m,) float64; a division by zero is unknown (NaN), as is anything computed from an unknown.

    Raises:
        UsageError: a syntax error or an unknown column (the nearest one is named).
    """
    parser = _Parser(_tokens(text, what), columns, what)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        value = parser.sum_()
    if parser.rest:
        raise UsageError(f"{what}: unexpected {parser.rest[0][1]!r}")
    value = np.broadcast_to(np.asarray(value, dtype=np.float64), (length,))
    return np.where(np.isfinite(value), value, np.nan)


def _tokens(text: str, what: str) -> list[tuple[str, str]]:
    tokens, at = [], 0
    text = text.rstrip()
    while at < len(text):
        match = _TOKEN.match(text, at)
        if not match:
            raise UsageError(f"{what}: cannot read {text[at:]!r}", "use column names, numbers, + - * / and parentheses")
        kind = str(match.lastgroup)
        tokens.append((kind, _SAME.get(match[kind], match[kind])))
        at = match.end()
    if len(tokens) > _MOST_TOKENS:
        raise UsageError(f"{what}: the expression has more than {_MOST_TOKENS} parts")
    return tokens


def _divide(a: Array, b: Array) -> Array:
    """Unknown where the divisor is zero, so that ``x / (1 / 0)`` does not turn back into a number."""
    return np.where(np.equal(b, 0), np.nan, np.divide(a, b))


class _Parser:
    """Recursive descent: sum → product → signed → atom."""

    def __init__(self, tokens: list[tuple[str, str]], columns: Mapping[str, Array], what: str) -> None:
        self.rest = tokens
        self.columns = columns
        self.what = what

    def sum_(self) -> Array:
        return self._chain(self._product, {"+": np.add, "-": np.subtract})

    def _product(self) -> Array:
        return self._chain(self._signed, {"*": np.multiply, "/": _divide})

    def _chain(self, part: Callable[[], Array], operators: Mapping[str, Callable[[Array, Array], Array]]) -> Array:
        value = part()
        while self.rest and self.rest[0][0] == "op" and self.rest[0][1] in operators:
            value = operators[self.rest.pop(0)[1]](value, part())
        return value

    def _signed(self) -> Array:
        sign = 1.0
        while self.rest and self.rest[0] in (("op", "-"), ("op", "+")):
            sign = -sign if self.rest.pop(0)[1] == "-" else sign
        return np.multiply(sign, self._atom())

    def _atom(self) -> Array:
        if not self.rest:
            raise UsageError(f"{self.what}: the expression ends too early")
        kind, text = self.rest.pop(0)
        if kind == "number":
            return np.asarray(float(text))
        if kind in ("name", "quoted"):
            if text not in self.columns:
                raise UsageError(
                    f"{self.what}: no numeric column {text!r}{nearest(text, self.columns)}",
                    f"columns: {', '.join(self.columns)}",
                )
            return self.columns[text]
        if text == "(":
            value = self.sum_()
            if not self.rest or self.rest.pop(0) != ("op", ")"):
                raise UsageError(f"{self.what}: a closing parenthesis is missing")
            return value
        raise UsageError(f"{self.what}: unexpected {text!r}")
