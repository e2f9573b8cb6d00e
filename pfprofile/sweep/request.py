"""What a person asks of a sweep, and what comes of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Protocol

from pfprofile.sweep.estimate import Estimate
from pfprofile.sweep.space import Point, Row

if TYPE_CHECKING:
    from pfprofile.profile import Profile


def _nothing(_: str) -> None:
    """Swallow a notice."""


@dataclass(frozen=True, slots=True)
class SweepRequest:
    """The flags of `sweep`, as DESIGN names them; ``None`` = not given.

    Attributes:
        workload: zoo name, ``module:Class`` or ``file.py:Class``; may be left out with ``replay``.
        command: a training command with placeholders; then ``workload`` is only its name.
        throughput_regex: finds samples/s in the command's log; None = the step hook counts.
        settings: workload settings as text, e.g. ``{"image_size": "32"}``.
        max_points: the most points, or ``auto`` = until the stop rule is content.
        max_time_s: no new point is begun after this.
        window_s: least length of a measured window, s; None = the device's habit.
        timeout_s: the longest one trial may take, s.
        samples: keep the raw samples beside the profile.
    """

    workload: str | None
    command: str | None = None
    throughput_regex: str | None = None
    replay: str | None = None
    device: str = "auto"
    gpus: tuple[int, ...] | None = None
    batch_sizes: tuple[int, ...] | None = None
    accum_steps: tuple[int, ...] | None = None
    freqs: str | None = None
    settings: dict[str, str] = field(default_factory=dict)
    precision: str | None = None
    repeats: int | None = None
    steps: int | None = None
    seed: int = 0
    max_points: int | Literal["auto"] | None = None
    max_time_s: float | None = None
    window_s: float | None = None
    timeout_s: float = 600.0
    dry_run: bool = False
    fresh: bool = False
    force: bool = False
    retry_failed: bool = False
    require_clocks: bool = False
    shared: bool = False
    allow_mixed: bool = False
    samples: bool = False
    output: Path | None = None
    argv: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Options:
    """How one trial is run."""

    steps: int | None
    window_s: float
    timeout_s: float


class Runner(Protocol):
    """Answers a point with a row: by training for real, or from a recording."""

    def run(self, point: Point, options: Options) -> Row:
        """One trial as a profile's row (without trial_id). A trial that fails is a row too."""


class Progress(Protocol):
    """Who is told how a sweep goes."""

    def begin(self, total: int, done: int) -> None:
        """So many trials are known, so many of them done."""

    def trial(self, row: Row, left: int) -> None:
        """A trial has ended."""

    def end(self) -> None:
        """The sweep is over."""


class Silent:
    """A Progress that says nothing."""

    def begin(self, total: int, done: int) -> None:
        """Nothing."""

    def trial(self, row: Row, left: int) -> None:
        """Nothing."""

    def end(self) -> None:
        """Nothing."""


@dataclass(frozen=True, slots=True)
class Reporter:
    """How a sweep speaks to the person: notices, and progress."""

    notice: Callable[[str], None] = _nothing
    progress: Progress = field(default_factory=Silent)


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a sweep did.

    Attributes:
        path: the profile's file; None on a dry run.
        profile: all its trials; None on a dry run.
        planned: the points of a dry run.
        estimate: a rough guess of a dry run's time and energy.
        role: what this process did, where it is not the one that writes.
        new: trials measured or answered now.
        failed: trials in the file that did not end well.
        finished: nothing that was asked for is missing.
        of_request: trials in the file of the points that were asked for; None where these are chosen on the way.
    """

    path: Path | None
    profile: Profile | None
    planned: tuple[Point, ...] = ()
    estimate: Estimate | None = None
    role: str | None = None
    new: int = 0
    failed: int = 0
    finished: bool = True
    of_request: int | None = None
