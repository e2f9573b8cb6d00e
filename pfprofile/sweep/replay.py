"""The replay runner: answers exactly what a recording holds, and says what it lacks."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from itertools import product

from pfprofile.errors import InputError
from pfprofile.profile import Profile
from pfprofile.sweep.request import Options, SweepRequest
from pfprofile.sweep.space import CLOCK_TOLERANCE_MHZ, Point, Row, clocks_in_range
from pfprofile.units import format_clock, parse_clock

#: How many missing points an error spells out.
SHOWN = 6


class ReplayRunner:
    """A Runner over a recording: each call for a point gives its next recorded trial, unchanged."""

    def __init__(self, recording: Profile, name: str) -> None:
        self.name = name
        self._trials: dict[Point, list[Row]] = defaultdict(list)
        for row in recording.rows():
            self._trials[Point.of_row(row)].append(row)
        self._given: dict[Point, int] = defaultdict(int)

    @property
    def points(self) -> list[Point]:
        """The recorded points, in the order of the recording."""
        return list(self._trials)

    def repeats(self, point: Point) -> int:
        """Recorded trials of a point."""
        return len(self._trials[point]) if point in self._trials else 0

    def run(self, point: Point, options: Options) -> Row:
        """The point's next recorded trial. Raises InputError where there is none (left)."""
        given = self._given[point]
        if given >= self.repeats(point):
            raise InputError(f"{self.name} has no {'further ' if given else ''}trial of {point}")
        self._given[point] += 1
        return self._trials[point][given]


def choose_recorded(runner: ReplayRunner, request: SweepRequest, default_clock_mhz: float | None) -> list[Point]:
    """The recorded points that a request means; an axis that it leaves open takes everything recorded.

    Raises:
        InputError: it names points that the recording lacks; they are listed.
    """
    recorded = runner.points
    clocks = _clock_choice(request.freqs, recorded, default_clock_mhz)
    # Live, `auto` chooses among all supported clocks; here among those that are recorded.
    axes: list[Sequence[float | None] | None] = [request.gpus, request.batch_sizes, request.accum_steps, clocks]
    wanted = [p for p in recorded if _inside(p, axes)]
    lacking = [
        combination
        for combination in product(*(axis if axis is not None else (...,) for axis in axes))
        if not any(_matches(p, combination) for p in wanted)
    ]
    adaptive = request.freqs is not None and request.freqs.strip().lower() in ("auto", "all")
    if adaptive:
        # Not every clock is recorded for every batch; a chosen clock is a wish, not a demand.
        lacking = [c for c in lacking if not any(_matches(p, (*c[:3], ...)) for p in wanted)]
    if lacking:
        words = [_words(c) for c in lacking]
        more = f" and {len(words) - SHOWN} more" if len(words) > SHOWN else ""
        raise InputError(
            f"{runner.name} lacks {len(words)} of the points asked for: {', '.join(words[:SHOWN])}{more}",
            f"it holds {_holdings(recorded)}",
        )
    return wanted


def _clock_choice(
    freqs: str | None, recorded: Sequence[Point], default_clock_mhz: float | None
) -> list[float | None] | None:
    known = sorted({p.sm_clock_mhz for p in recorded if p.sm_clock_mhz is not None})
    unlocked = any(p.sm_clock_mhz is None for p in recorded)
    word = (freqs or "all").strip().lower()
    if word in ("all", "auto"):
        return None
    if word == "default":
        if unlocked:
            return [None]
        # A recording that locked every clock answers with the one that an unlocked GPU runs at.
        return [_near(default_clock_mhz if default_clock_mhz is not None else known[-1], known)]
    if ":" in word:
        return list(clocks_in_range(word, known))
    return list(dict.fromkeys(_near(parse_clock(part, what="--freqs"), known) for part in word.split(",")))


def _near(clock_mhz: float, known: Sequence[float]) -> float:
    """The recorded clock that is meant, or the clock itself where none is close (then it is reported as lacking)."""
    close = [c for c in known if abs(c - clock_mhz) <= CLOCK_TOLERANCE_MHZ]
    return min(close, key=lambda c: abs(c - clock_mhz)) if close else clock_mhz


def _inside(point: Point, axes: Sequence[Sequence[float | None] | None]) -> bool:
    values = (point.n_gpus, point.local_batch, point.accum_steps, point.sm_clock_mhz)
    return all(axis is None or value in axis for value, axis in zip(values, axes, strict=True))


def _matches(point: Point, combination: Sequence[object]) -> bool:
    values = (point.n_gpus, point.local_batch, point.accum_steps, point.sm_clock_mhz)
    return all(want is ... or value == want for value, want in zip(values, combination, strict=True))


def _words(combination: Sequence[object]) -> str:
    n, batch, accum, clock = combination
    parts = []
    if n is not ...:
        parts.append(f"{n} GPU")
    if batch is not ...:
        parts.append(f"batch {batch}")
    if accum is not ...:
        parts.append(f"{accum} passes")
    if clock is not ...:
        parts.append(f"@ {format_clock(clock)}")  # type: ignore[arg-type]
    return " ".join(parts) or "everything"


def _holdings(recorded: Sequence[Point]) -> str:
    gpus = sorted({p.n_gpus for p in recorded})
    batches = sorted({p.local_batch for p in recorded})
    clocks = sorted({p.sm_clock_mhz for p in recorded if p.sm_clock_mhz is not None})
    names = [f"{c:g}" for c in clocks] + (["default"] if any(p.sm_clock_mhz is None for p in recorded) else [])
    if len(names) > 12:
        names = [*names[:3], "…", *names[-3:]]
    return f"GPUs {','.join(map(str, gpus))}; batches {','.join(map(str, batches))}; clocks {','.join(names)}"
