"""`--max-points`: an endpoint-stratified Latin design over placements × batches × clocks, as one endless sequence.

Each next point takes the levels that were used least on every axis, an axis' ends counting for two; among equals the
one farthest from what is there. So every prefix is a design, a longer one only adds to a shorter one, and a grid with
holes (a recording) needs no special case. What a sweep knows worst is bias, not noise: the form is wrong somewhere
inside, so points spread over the whole space beat those where a correct form would have the greatest variance.
"""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import replace

from pfprofile.sweep.space import Point

#: How much more often than an inner level the ends of an axis are used.
END_WEIGHT = 2.0
#: Shares of placement, batch and clock in the distance: all the same.
AXES = 3
TWO_NODES = 2


def design(points: Sequence[Point], count: int, seed: int, given: Sequence[Point] = ()) -> list[Point]:
    """The next points of the sequence over some points; all of them where there are no more.

    Args:
        points: the candidates, each once.
        count: how many there shall be in all, ``given`` included.
        seed: decides between equals.
        given: points that are there already; the sequence goes on from them.
    """
    return _Sequence(list(dict.fromkeys(points)), seed, given).take(count - len(given))


def must_have(points: Sequence[Point]) -> list[Point]:
    """What no design may lack: the corners of the space, and both ways to put GPUs on two nodes.

    First the least and most GPUs with their largest and smallest batch at the highest clock, then two full nodes and
    two nodes with one GPU each, then the corners at the lowest clock.
    """
    if not points:
        return []
    top, bottom = _top(points), _bottom(points)
    at_top = [p for p in points if p.sm_clock_mhz == top]
    fewest = min(at_top, key=lambda p: (p.n_gpus, p.n_nodes))
    most = max(at_top, key=lambda p: (p.n_gpus, -p.n_nodes))
    corners = [*_ends(at_top, fewest), *_ends(at_top, most)]
    across = [p for p in at_top if p.n_nodes == TWO_NODES]
    both = [*_ends(at_top, max(across, key=_gpus)), *_ends(at_top, min(across, key=_gpus))] if across else []
    low = [replace(p, sm_clock_mhz=bottom) for p in corners] if bottom is not None else []
    known = set(points)
    return [p for p in dict.fromkeys([*corners, *both, *low]) if p in known]


def _gpus(point: Point) -> int:
    return point.n_gpus


def _top(points: Sequence[Point]) -> float | None:
    """The highest clock; an unlocked GPU runs at it."""
    return None if any(p.sm_clock_mhz is None for p in points) else max((p.sm_clock_mhz or 0.0) for p in points)


def _bottom(points: Sequence[Point]) -> float | None:
    return min((p.sm_clock_mhz for p in points if p.sm_clock_mhz is not None), default=None)


def _placement(point: Point) -> tuple[int, int, int]:
    return point.n_gpus, point.n_nodes, point.accum_steps


def _ends(points: Sequence[Point], like: Point) -> tuple[Point, Point]:
    """The largest and the smallest batch of a placement."""
    same = [p for p in points if _placement(p) == _placement(like)]
    return max(same, key=lambda p: p.local_batch), min(same, key=lambda p: p.local_batch)


class _Sequence:
    """The greedy choice; the state is how often each level has been used."""

    def __init__(self, points: list[Point], seed: int, given: Sequence[Point]) -> None:
        # Sorted first: what is drawn must not depend on the order in which points came in.
        self.left = sorted(points, key=lambda p: (*_placement(p), p.local_batch, p.sm_clock_mhz or 0.0))
        random.Random(seed).shuffle(self.left)
        self.first = [p for p in must_have(points) if p not in set(given)]
        self.used: list[Counter[Hashable]] = [Counter() for _ in range(AXES)]
        self.weight = [_weights([_levels(p)[axis] for p in points]) for axis in range(AXES)]
        self.place = dict(zip(points, _places(points), strict=True))
        self.nearest = dict.fromkeys(points, math.inf)
        for point in given:
            if point in self.place:
                self._note(point)

    def take(self, count: int) -> list[Point]:
        """The next points of the sequence."""
        taken: list[Point] = []
        while self.left and len(taken) < count:
            point = self.first.pop(0) if self.first else min(self.left, key=self._cost)
            self._note(point)
            taken.append(point)
        return taken

    def _note(self, point: Point) -> None:
        self.left.remove(point)
        for axis, level in enumerate(_levels(point)):
            self.used[axis][level] += 1
        for other in self.left:
            self.nearest[other] = min(self.nearest[other], math.dist(self.place[point], self.place[other]))

    def _cost(self, point: Point) -> tuple[float, float]:
        use = sum(
            self.used[axis][level] / self.weight[axis][level]
            for axis, level in enumerate(_levels(point))
            if len(self.weight[axis]) > 1
        )
        return round(use, 9), -self.nearest[point]


def _levels(point: Point) -> tuple[Hashable, ...]:
    return _placement(point), point.local_batch, point.sm_clock_mhz


def _weights(levels: Sequence[Hashable]) -> dict[Hashable, float]:
    """Weight of each level of one axis; its two ends count for more."""
    ordered = sorted(set(levels), key=_rank)
    return {level: END_WEIGHT if level in (ordered[0], ordered[-1]) else 1.0 for level in ordered}


def _rank(level: Hashable) -> tuple[float, ...]:
    if isinstance(level, tuple):
        return tuple(map(float, level))
    return (math.inf if level is None else float(level),)  # type: ignore[arg-type]


def _places(points: Sequence[Point]) -> list[tuple[float, ...]]:
    """Points in the unit cube of log GPUs, log nodes, log batch and log clock (an unlocked clock is the highest)."""
    top = max((p.sm_clock_mhz for p in points if p.sm_clock_mhz is not None), default=1.0)
    raw = [
        (math.log(p.n_gpus), math.log(p.n_nodes), math.log(p.local_batch), math.log(p.sm_clock_mhz or top))
        for p in points
    ]
    if not raw:
        return []
    low = [min(column) for column in zip(*raw, strict=True)]
    span = [max(column) - min(column) or 1.0 for column in zip(*raw, strict=True)]
    return [tuple((v - a) / s for v, a, s in zip(values, low, span, strict=True)) for values in raw]
