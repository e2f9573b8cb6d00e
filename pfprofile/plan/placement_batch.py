"""Carry out a batch of changes on the placers alone, for real or on copies to see what would come of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from pfprofile.cluster.speed_table import Config
from pfprofile.plan.placement import Placer
from pfprofile.policy.base import Choice, JobState


@dataclass(slots=True)
class Placed:
    """What became of the changes.

    Attributes:
        results: by job index, pool and configuration, or None if it has no place (any more).
        moved: jobs moved to make room, in order.
        shortened: somebody got fewer GPUs than chosen, or did not get to grow.
    """

    results: dict[int, tuple[int, Config] | None] = field(default_factory=dict)
    moved: list[int] = field(default_factory=list)
    shortened: bool = False


def place_all(
    placers: Sequence[Placer], jobs: Sequence[JobState], changes: Mapping[int, Choice | None], may_move: bool = True
) -> Placed:
    """Stops first, then shrinks and clocks, then growth and starts from the largest down (so that blocks fit)."""
    placed = Placed()
    placing: list[tuple[int, int, Choice]] = []
    for index, choice in changes.items():
        job = jobs[index]
        held = job.config
        if choice is None:
            if held is not None:
                placers[job.pool].remove(index)
                placed.results[index] = None
        elif held is not None and choice.pool == job.pool and choice.config.n <= held.n:
            if choice.config.n < held.n:
                placers[job.pool].shrink(index, choice.config.n)
            placed.results[index] = (choice.pool, choice.config)
        else:
            placing.append((-choice.config.n, index, choice))
    placing.sort(key=lambda item: item[:2])
    for _, index, choice in placing:
        _place(placers, jobs[index], choice, placed, may_move)
    return placed


def _place(placers: Sequence[Placer], job: JobState, choice: Choice, placed: Placed, may_move: bool) -> None:
    """Start, grow or move a job: best fit, else make room, else halve, else stay as it was."""
    index, placer, held = job.index, placers[choice.pool], job.config
    before = placers[job.pool].remove(index) if held is not None else None
    table = job.job.tables[choice.pool]
    config = choice.config
    if held is not None and job.pool == choice.pool:
        floor = 2 * held.n
    else:
        floor = choice.least_n or config.n
    while not placer.put(index, config.n):
        moved = placer.make_room(config.n) if may_move else []
        if moved:
            placed.moved += moved
            continue
        placed.shortened = True
        smaller = [n for n in table.by_n if floor <= n < config.n]
        if not smaller:
            break
        config = min(table.by_n[max(smaller)], key=lambda c: _clock_gap(c, choice.config))
    else:
        placed.results[index] = (choice.pool, config)
        return
    if held is not None and before is not None and placers[job.pool].put_at(index, before):
        return  # stays as it was
    placed.results[index] = None


def _clock_gap(config: Config, wanted: Config) -> float:
    """How far a configuration's clock lies from the wanted one, MHz."""
    return abs((config.clock_mhz or 0.0) - (wanted.clock_mhz or 0.0))


def standing_w(placers: Sequence[Placer], always_on: bool) -> tuple[float, float]:
    """Power of idle GPUs in nodes that are on, and of these nodes, W."""
    idle_w = node_w = 0.0
    for placer in placers:
        pool = placer.pool
        on = pool.n_nodes if always_on else placer.nodes_on
        idle_w += (on * pool.gpus_per_node - placer.busy) * pool.idle_w
        node_w += on * pool.node_w
    return idle_w, node_w
