"""Samples/s out of a command's log, by --throughput-regex."""

from __future__ import annotations

import re

from pfprofile.errors import UsageError
from pfprofile.train.launch import WorkerError

_FACTORS = {"": 1.0, "k": 1e3, "K": 1e3, "M": 1e6, "G": 1e9}
_NUMBER = re.compile(r"([+]?\d[\d,_]*\.?\d*(?:[eE][+-]?\d+)?|\.\d+)\s*([kKMG]?)")
#: What goes on with a number behind or before the group: more digits, or a k, M or G that ends the word.
_GOES_ON = re.compile(r"[.,]?\d[\d.,]*[kKMG]?|[eE][+-]?\d+|\s?[kKMG](?![A-Za-z])")
_BEGAN = re.compile(r"\d[\d.,]*$")


def rate_pattern(text: str) -> re.Pattern[str]:
    """Compile --throughput-regex. Raises UsageError: it is none, or has no group for the number."""
    try:
        pattern = re.compile(text)
    except re.error as error:
        raise UsageError(f"--throughput-regex {text!r} is no regular expression: {error}") from None
    if pattern.groups < 1:
        raise UsageError(
            f"--throughput-regex {text!r} has no group", r"put the number in parentheses, e.g. '([\d.]+) samples/s'"
        )
    return pattern


class LogRates:
    """Reads rates line by line.

    Attributes:
        odd: what the group held last where it was no number above zero; None = that never happened.
    """

    def __init__(self, pattern: re.Pattern[str]) -> None:
        self._pattern = pattern
        self.odd: str | None = None

    def read(self, line: str) -> float | None:
        """The rate in a line, samples/s; None where the line has none.

        Raises:
            WorkerError: the group cuts through a number (``640`` out of ``640k``): what it holds would be false.
        """
        match = self._pattern.search(line)
        if match is None:
            return None
        text = match[1] or ""
        if _NUMBER.fullmatch(text.strip()):
            _refuse_part(match)
        rate = number(text)
        if rate is None:
            self.odd = text
        return rate

    def trouble(self) -> str:
        """Why there is no rate at all."""
        if self.odd is not None:
            return f"--throughput-regex matched {self.odd!r} where a number of samples/s belongs"
        return "no line matched --throughput-regex"


def number(text: str) -> float | None:
    """``1,234.5`` or ``640.0k`` as a number above zero; None = it is none."""
    match = _NUMBER.fullmatch(text.strip())
    if match is None:
        return None
    value = float(match[1].replace(",", "").replace("_", "")) * _FACTORS[match[2]]
    return value if value > 0 else None


def _refuse_part(match: re.Match[str]) -> None:
    line, begin, end = match.string, match.start(1), match.end(1)
    before = _BEGAN.search(line[:begin]) if begin == match.start() else None
    after = None if line[begin:end][-1:] in "kKMG" else _GOES_ON.match(line, end)
    if before is None and after is None:
        return
    whole = (before[0] if before else "") + match[1] + (after[0] if after else "")
    raise WorkerError(
        "failed",
        f"--throughput-regex takes {match[1]!r} out of {whole!r}, another number: let its group hold all of it, "
        r"e.g. ([\d.,]+ ?[kMG]?)",
    )
