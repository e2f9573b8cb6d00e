"""Which point comes next. A chooser is a pure function of the rows so far, so that resuming needs no other state."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from pfprofile.sweep.space import Point, Row
from pfprofile.units import counted


class Chooser(Protocol):
    """Decides what to measure."""

    def next_point(self, rows: Sequence[Row]) -> Point | None:
        """The next point, or None when the sweep is done."""

    def left(self, rows: Sequence[Row]) -> int:
        """How many trials are left, as far as one knows now."""

    def skipped(self, rows: Sequence[Row]) -> int:
        """How many trials are left out because they cannot fit in memory."""

    def reasons(self, rows: Sequence[Row]) -> list[str]:
        """Why no more is measured, in words, where this chooser decided that itself."""


def too_large(rows: Iterable[Row]) -> Callable[[Point], bool]:
    """Whether a point's batch, or a smaller one of the same n, ran out of memory: then it need not be tried."""
    ceilings: dict[tuple[int, int], int] = {}
    for r in rows:
        if r["status"] == "oom":
            key = r["n_gpus"], r["accum_steps"]
            ceilings[key] = min(r["local_batch"], ceilings.get(key, r["local_batch"]))

    def answer(point: Point) -> bool:
        ceiling = ceilings.get((point.n_gpus, point.accum_steps))
        return ceiling is not None and point.local_batch >= ceiling

    return answer


def grid_order(points: Sequence[Point], *, repeats: int, seed: int) -> list[tuple[Point, int]]:
    """Every point ``repeats`` times in random order, as (point, repeat).

    Repeats are passes over all points, so that a drift of the machine does not fall on one point; within a pass the
    clocks of one worker set stay together, since starting one costs more than changing a clock.
    """
    shuffle = random.Random(seed).shuffle
    order: list[tuple[Point, int]] = []
    for repeat in range(repeats):
        sets = list(dict.fromkeys(p.worker_set for p in points))
        shuffle(sets)
        for key in sets:
            clocks = list(dict.fromkeys(p for p in points if p.worker_set == key))
            shuffle(clocks)
            order += [(p, repeat) for p in clocks]
    return order


class Grid:
    """A fixed list of points, taken in its order. A batch that cannot fit (see `too_large`) is left out."""

    def __init__(self, order: Sequence[tuple[Point, int]]) -> None:
        self.order = list(order)

    @property
    def points(self) -> list[Point]:
        """The points, each once, sorted."""
        return sorted({p for p, _ in self.order}, key=lambda p: (*p.worker_set, p.sm_clock_mhz or 0.0))

    def _missing(self, rows: Sequence[Row], *, fits: bool) -> Iterator[Point]:
        done = Counter(Point.of_row(r) for r in rows)
        cannot = too_large(rows)
        return (p for p, repeat in self.order if done[p] <= repeat and cannot(p) != fits)

    def next_point(self, rows: Sequence[Row]) -> Point | None:
        """The first of the order that has too few rows."""
        return next(self._missing(rows, fits=True), None)

    def left(self, rows: Sequence[Row]) -> int:
        """Trials of the order that are not done."""
        return sum(1 for _ in self._missing(rows, fits=True))

    def skipped(self, rows: Sequence[Row]) -> int:
        """Trials of the order that were not made and never will be, after a smaller batch did not fit."""
        return sum(1 for _ in self._missing(rows, fits=False))

    def reasons(self, rows: Sequence[Row]) -> list[str]:
        """None: what was asked for is all there is."""
        return []


@dataclass(frozen=True, slots=True)
class BatchLimits:
    """Where doubling stops before memory does: a step too long to be worth it, or a machine's shared memory."""

    most_step_s: float = 30.0
    most_bytes: float | None = None
    most_batch: int = 1 << 20


class BatchSearch:
    """`--batch-sizes auto`: doubles the batch until memory runs out, then bisects; then the grid of what fits."""

    def __init__(
        self, gpus: Sequence[int], clocks: Sequence[float | None], accum_steps: Sequence[int], *, repeats: int,
        seed: int, limits: BatchLimits, n_nodes: int = 1,
    ) -> None:  # fmt: skip
        self.gpus, self.clocks, self.accum_steps = gpus, clocks, accum_steps
        self.repeats, self.seed, self.limits, self.n_nodes = repeats, seed, limits, n_nodes

    def next_point(self, rows: Sequence[Row]) -> Point | None:
        """A batch to try, else the next trial of the grid of batches that fit."""
        return self.next_trial(rows) or self._grid(rows).next_point(rows)

    def next_trial(self, rows: Sequence[Row]) -> Point | None:
        """The next batch to try, at the last clock; None = the largest that fits is known for every n."""
        for n in self.gpus:
            for accum in self.accum_steps:
                batch = next_batch([r for r in rows if (r["n_gpus"], r["accum_steps"]) == (n, accum)], n, self.limits)
                if batch is not None:
                    return Point(n, batch, self.clocks[-1], accum, self.n_nodes)
        return None

    def left(self, rows: Sequence[Row]) -> int:
        """Trials of the grid as known now, at least one while the search goes on."""
        return max(self._grid(rows).left(rows), int(self.next_point(rows) is not None))

    def skipped(self, rows: Sequence[Row]) -> int:
        """None: finding what does not fit is what was asked for."""
        return 0

    def reasons(self, rows: Sequence[Row]) -> list[str]:
        """The largest batch of each n, and why it went no further."""
        said = []
        for n in self.gpus:
            for accum in self.accum_steps:
                ours = [r for r in rows if (r["n_gpus"], r["accum_steps"]) == (n, accum)]
                where = counted(n, "GPU") + (f" × {accum} passes" if accum > 1 else "")
                said.append(f"--batch-sizes auto: {where}: {_largest(ours)}")
        return said

    def _grid(self, rows: Sequence[Row]) -> Grid:
        return Grid(grid_order(self.fitting(rows), repeats=self.repeats, seed=self.seed))

    def fitting(self, rows: Sequence[Row]) -> list[Point]:
        """The grid of the batches that fit."""
        fits = dict.fromkeys((r["n_gpus"], r["local_batch"], r["accum_steps"]) for r in rows if r["status"] == "ok")
        return [Point(n, b, clock, a, self.n_nodes) for n, b, a in sorted(fits) for clock in self.clocks]


def _largest(rows: Sequence[Row]) -> str:
    fits = max((r["local_batch"] for r in rows if r["status"] == "ok"), default=None)
    larger = [r for r in rows if r["local_batch"] > (fits or 0)]
    if fits is None:
        return "no batch fits" if any(r["status"] == "oom" for r in rows) else "no batch ended well"
    if not larger:
        return f"up to {fits}; the next would pass the limit on a step's length or on this machine's memory"
    first = min(larger, key=lambda r: r["local_batch"])
    ended = "ran out of memory" if first["status"] == "oom" else "failed"
    return f"{fits} is the largest that fits; {first['local_batch']} {ended}"


def next_batch(rows: Sequence[Row], n_gpus: int, limits: BatchLimits) -> int | None:
    """The next batch to try for one n, from the trials so far; None = the largest that fits is known well enough."""
    fits = [r for r in rows if r["status"] == "ok"]
    bad = [r["local_batch"] for r in rows if r["status"] == "oom"]
    if any(r["status"] not in ("ok", "oom") for r in rows):
        return None  # a failure of another kind says nothing about size
    if not fits:
        if not bad:
            return 1
        return min(bad) // 2 if min(bad) > 1 else None
    best = max(fits, key=lambda r: r["local_batch"])
    low = int(best["local_batch"])
    if bad:
        high = min(bad)
        return None if high - low <= max(1, low // 8) else (low + high) // 2
    if low * 2 > limits.most_batch or 2 * best["step_time_s"] > limits.most_step_s:
        return None
    peak = best["memory_peak_bytes"]
    if limits.most_bytes is not None and peak is not None and 2 * peak * n_gpus > limits.most_bytes:
        return None
    return low * 2
