"""The errors a user may meet. Each class carries its exit code; each instance says what, where and what to do."""

from __future__ import annotations

from difflib import get_close_matches
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable


class PfprofileError(Exception):
    """An expected error: shown as one line, never as a traceback.

    Args:
        message: what is wrong and where (file, row, key).
        hint: what to do about it.
    """

    exit_code = 1

    def __init__(self, message: str, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        text = " ".join(self.message.split())
        return f"{text} ({' '.join(self.hint.split())})" if self.hint else text


class UsageError(PfprofileError):
    """The command line or a call's arguments are wrong."""

    exit_code = 2


class InputError(PfprofileError):
    """A file that was read is wrong: missing, foreign, damaged, contradictory."""

    exit_code = 3


class HardwareError(PfprofileError):
    """The machine lacks a device, a driver or a permission."""

    exit_code = 4


class OutputError(PfprofileError):
    """An output cannot be written: no permission, no space, no such device."""

    exit_code = 4


class InfeasibleError(PfprofileError):
    """No schedule exists within the limits that were asked for.

    Args:
        message: what cannot be met.
        hint: what to change.
        least_energy_j: the smallest total energy of any schedule that can be emitted, J.
        lower_bound_j: energy below which no schedule can lie, J.
    """

    exit_code = 5

    def __init__(
        self,
        message: str,
        hint: str | None = None,
        *,
        least_energy_j: float | None = None,
        lower_bound_j: float | None = None,
    ) -> None:
        super().__init__(message, hint)
        self.least_energy_j = least_energy_j
        self.lower_bound_j = lower_bound_j


class QualityError(PfprofileError):
    """A quality gate (accuracy, coverage) was missed."""

    exit_code = 6


class PartialSweepError(PfprofileError):
    """A sweep ended with points that failed; what was measured is kept."""

    exit_code = 7


class InterruptedSweepError(PfprofileError):
    """The user interrupted; what was finished is kept."""

    exit_code = 130


def nearest(word: str, known: Iterable[str]) -> str:
    """``"; did you mean 'x'?"`` for the closest of ``known``, or an empty string."""
    match = get_close_matches(word, list(known), n=1, cutoff=0.5)
    return f"; did you mean {match[0]!r}?" if match else ""
