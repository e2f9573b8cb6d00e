"""A sweep that measures only what it needs: clocks chosen on lead curves, points by a design, and a rule to stop.

Like every chooser it is a pure function of the rows so far; what it remembers only saves the same fit again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Literal

from pfprofile.sweep.chooser import BatchSearch, grid_order, too_large
from pfprofile.sweep.clock_search import ClockSearch, Curve, curve_of
from pfprofile.sweep.design import design
from pfprofile.sweep.space import Point, Row
from pfprofile.sweep.stop_rule import BATCH, LEAST_POINTS, MOST_POINTS, Look, look, verdict
from pfprofile.sweep.surrogate import Machine, first_trials
from pfprofile.units import format_clock

Budget = int | Literal["auto"] | None


class Adaptive:
    """`--freqs auto` and `--max-points`, live and on replay.

    Args:
        space: the points that may be measured: a list, or the search for the batches that fit.
        machine: what fits must know of the device.
        choose_clocks: whether clocks are chosen among those of the space (else all of them are meant).
        budget: the most points, ``auto`` = by the stop rule, None = all.
        repeats: trials of a point.
        seed: of every order.
    """

    def __init__(
        self, space: Sequence[Point] | BatchSearch, machine: Machine, *, choose_clocks: bool = False,
        budget: Budget = None, repeats: Callable[[Point], int] = lambda _: 1, seed: int = 0,
    ) -> None:  # fmt: skip
        self.space, self.machine, self.budget, self.repeats, self.seed = space, machine, budget, repeats, seed
        self.search = ClockSearch(machine, seed) if choose_clocks else None
        self._looks: dict[int, Look] = {}
        self._stopped = ""

    @property
    def searches_batches(self) -> bool:
        """Whether running out of memory is an answer here, not a failure."""
        return isinstance(self.space, BatchSearch)

    def next_point(self, rows: Sequence[Row]) -> Point | None:
        """The next point, or None when the sweep is done."""
        ahead = self.ahead(rows)
        return ahead[0] if ahead else None

    def left(self, rows: Sequence[Row]) -> int:
        """Trials that are certain by now; more may be decided on."""
        return len(self.ahead(rows))

    def skipped(self, rows: Sequence[Row]) -> int:
        """Points that were left out because a smaller batch did not fit."""
        if isinstance(self.space, BatchSearch):
            return 0
        cannot, done = too_large(rows), {Point.of_row(r) for r in rows}
        return sum(1 for p in self._candidates(rows) if cannot(p) and p not in done)

    def ahead(self, rows: Sequence[Row]) -> list[Point]:
        """The trials that are decided on, in order; what they bring may decide on more. Empty = done."""
        done = Counter(Point.of_row(r) for r in rows)
        cannot = too_large(rows)
        if isinstance(self.budget, int) and len(done) >= self.budget:
            return self._again(list(done), done, cannot)  # what a search would still like to know is given up
        if isinstance(self.space, BatchSearch) and (trial := self.space.next_trial(rows)) is not None:
            return [trial]
        candidates = self._candidates(rows)
        if self.search is not None:
            wish = self.search.next_point(_curves(candidates), rows)
            if wish is not None:
                return [wish]
        points = self._chosen_clocks(candidates, rows)
        points = [p for p in points if not cannot(p)]
        if self.budget is None:
            new = [p for p, _ in grid_order([p for p in points if not done[p]], repeats=1, seed=self.seed)]
        else:
            new = self._designed(points, rows, list(done))
        return [*new, *self._again([*done, *new], done, cannot)]

    def reasons(self, rows: Sequence[Row]) -> list[str]:
        """Why clocks and points are what they are, in words."""
        said = self.space.reasons(rows) if isinstance(self.space, BatchSearch) else []
        candidates = self._candidates(rows)
        if self.search is not None and (clocks := self.search.clocks(_curves(candidates), rows)):
            words = ", ".join(f"{c:g}" for c in clocks)
            why = self.search.reason or "all are measured"
            if self.search.next_point(_curves(candidates), rows) is not None:
                why = f"--max-points {self.budget} is reached"
            said.append(f"--freqs auto: {words} MHz; stopped because {why}")
        if self.budget is not None:
            there = len(set(self._chosen_clocks(candidates, rows)))
            done = len({Point.of_row(r) for r in rows})
            why = self._stopped or "that many were asked for"
            said.append(f"--max-points {self.budget}: {done} of {there} points; stopped because {why}")
        return said

    def _candidates(self, rows: Sequence[Row]) -> list[Point]:
        return self.space.fitting(rows) if isinstance(self.space, BatchSearch) else list(self.space)

    def _chosen_clocks(self, candidates: Sequence[Point], rows: Sequence[Row]) -> list[Point]:
        if self.search is None or not (clocks := self.search.clocks(_curves(candidates), rows)):
            return list(candidates)
        return [p for p in candidates if p.sm_clock_mhz is None or p.sm_clock_mhz in clocks]

    def _designed(self, points: Sequence[Point], rows: Sequence[Row], done: list[Point]) -> list[Point]:
        """The next points of the design, as far as the budget or the stop rule goes."""
        self._stopped = ""
        missing = [p for p in points if p not in set(done)]
        if not missing:
            self._stopped = "all points are measured"
            return []
        if self.budget != "auto":
            assert self.budget is not None
            return design([*done, *missing], self.budget, self.seed, done)
        # A whole number of batches is always measured before the rule is asked again.
        reached = len(done) - len(done) % BATCH
        if len(done) >= LEAST_POINTS and len(done) == reached:
            why = self._verdict(points, rows, done)
            if why is not None:
                self._stopped = why
                return []
        goal = max(LEAST_POINTS, reached + BATCH) if len(done) < MOST_POINTS else len(done)
        return design([*done, *missing], goal, self.seed, done)

    def _verdict(self, points: Sequence[Point], rows: Sequence[Row], done: list[Point]) -> str | None:
        asked = [
            flag
            for flag, values in (
                ("--freqs", {p.sm_clock_mhz for p in points}),
                ("--batch-sizes", {p.local_batch for p in points}),
                ("--gpus", {p.n_gpus for p in points}),
            )
            if len(values) > 1
        ]
        firsts = {Point.of_row(r): r for r in first_trials(rows)}
        looks = []
        for count in range(LEAST_POINTS - 2 * BATCH, len(done) + 1, BATCH):
            if count not in self._looks:
                good = [firsts[p] for p in done[:count] if p in firsts]
                if not good:
                    return "nothing that was measured ended well"
                self._looks[count] = look(good, self.machine, asked)
            looks.append(self._looks[count])
        return verdict(looks, len(done))

    def _again(self, points: Sequence[Point], done: Counter[Point], cannot: Callable[[Point], bool]) -> list[Point]:
        """The repeats that are missing: passes over all points, each in an order of its own."""
        most = max((self.repeats(p) for p in points), default=1)
        if most == 1:
            return []
        order = grid_order(points, repeats=most, seed=self.seed)
        return [p for p, i in order if 0 < i < self.repeats(p) and done[p] <= i and not cannot(p)]


def _curves(points: Sequence[Point]) -> dict[Curve, list[float]]:
    curves: dict[Curve, list[float]] = {}
    for point in points:
        if point.sm_clock_mhz is not None:
            curves.setdefault(curve_of(point), []).append(point.sm_clock_mhz)
    return curves


def describe(budget: Budget, clocks: Sequence[float | None]) -> str:
    """What an adaptive sweep was asked for, for the profile's metadata."""
    span = [format_clock(c) for c in (clocks[0], clocks[-1])] if clocks else []
    return f"chosen on the way: at most {budget or 'all'} points, clocks {' to '.join(span) or 'as they are'}"
