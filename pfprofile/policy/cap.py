"""The default policy under a power cap: the smallest price ν of energy at which the true power fits, else fewer jobs.

True power (GPUs, idle GPUs, nodes that are on) depends on where things end up, so each try is placed on a copy. A high
ν goes to the configurations of least energy for the work, which need not be those of least power; where even these do
not fit, jobs are deferred, longest first, and what is left of the cap goes to the next ones at whatever they can run
with, and to faster clocks.
"""

from __future__ import annotations

from collections.abc import Callable
from heapq import heappop, heappush
from typing import TYPE_CHECKING

from pfprofile.cluster.speed_table import Config
from pfprofile.policy.base import Choice, State
from pfprofile.policy.book import Book
from pfprofile.policy.hulls import STEPS_PER_OCTAVE, grid_index, grid_price
from pfprofile.policy.prices import Claim, unit_cost

if TYPE_CHECKING:
    from pfprofile.policy.pfprofile import Changes, PfprofilePolicy

#: from where ν is tried, 1/W, and in steps of half an octave up to where time no longer matters
LOWEST_NU, HIGHEST_NU = 2.0**-26, 2.0**3
STEP = STEPS_PER_OCTAVE // 2
#: jobs beyond the admitted ones that are tried with what is left of the cap
MOST_EXTRA = 8

Priced = list[tuple[int, Book, list[Claim], list[Config]]]


def decide_within_cap(policy: PfprofilePolicy, state: State, changes: Changes) -> None:
    """Fill in changes that keep the cluster's power within the cap."""
    books = [(pool, book) for pool, book in policy.books.items() if book.members]

    def attempt(nu: float, most: int | None = None) -> tuple[Priced, Changes, bool]:
        priced: Priced = []
        draft: Changes = {}
        for pool, book in books:
            claims, final = policy.price(book, state.now_s, policy.energy_price + nu, most)
            priced.append((pool, book, claims, final))
            draft |= policy.draft(pool, book, claims, final)
        return priced, draft, state.preview_w(draft) <= state.power_cap_w

    low, high = grid_index(LOWEST_NU), grid_index(HIGHEST_NU)
    assert low is not None and high is not None
    priced, _, fits = attempt(0.0)
    if not fits:
        found = _first(lambda k: attempt(grid_price(low + k * STEP)), (high - low) // STEP)
        if found is None:
            counts = max(len(book.members) for _, book in books)
            found = _first(lambda k: attempt(HIGHEST_NU, counts - k), counts)
        priced = found if found is not None else []
    done: Changes = {}
    for pool, book, claims, final in priced:
        policy.commit(pool, book, claims, final, state.now_s, done)
    if not priced:
        for pool, book in books:
            policy.commit(pool, book, [], [], state.now_s, done)
    for _, book in books:
        book.at_best = False
    if not fits:
        _use_the_rest(policy, state, books, done)
        _raise_clocks(policy, state, priced, done)
    changes |= done


def _first(attempt: Callable[[int], tuple[Priced, Changes, bool]], last: int) -> Priced | None:
    """The outcome at the smallest k in 0 … last that fits, by bisection; None where the last does not."""
    best, _, fits = attempt(last)
    if not fits:
        return None
    low, high = -1, last
    while high - low > 1:
        middle = (low + high) // 2
        priced, _, fits = attempt(middle)
        if fits:
            best, high = priced, middle
        else:
            low = middle
    return best


def _use_the_rest(policy: PfprofilePolicy, state: State, books: list[tuple[int, Book]], done: Changes) -> None:
    """Start further jobs, shortest first, in the cheapest configuration that the rest of the cap allows."""
    power_w = state.preview_w(done)
    for pool, book in books:
        for entry in book.queue[:MOST_EXTRA]:
            job = entry[2]
            if job.config is not None:  # just stopped; leave it
                continue
            table, nodes = job.job.tables[pool], state.cluster.pools[pool]
            options = [
                c
                for n in table.counts(job.job.min_n, job.job.max_n)
                for c in table.by_n[n]
                if power_w + n * (c.gpu_w - nodes.idle_w) <= state.power_cap_w
            ]
            options.sort(key=lambda c: (unit_cost(c, 1.0, policy.energy_price, book.gpu_price), c.power_w))
            for config in options[:6]:
                trial = {**done, job.index: Choice(pool, config, policy.fit(job.index).least)}
                trial_w = state.preview_w(trial)
                if trial_w <= state.power_cap_w:
                    done[job.index] = trial[job.index]
                    book.queue.remove(entry)
                    power_w = trial_w
                    break


def _raise_clocks(policy: PfprofilePolicy, state: State, priced: Priced, done: Changes) -> None:
    """Spend what is left of the cap on faster clocks, largest fall of the cost for a watt first."""
    spare_w = state.power_cap_w - state.preview_w(done)
    steps: list[tuple[float, int, int, Claim, Config]] = []

    def offer(pool: int, claim: Claim, config: Config) -> None:
        group = claim.ladder.table.by_n[config.n]
        position = group.index(config) + 1
        if position == len(group):
            return
        faster = group[position]
        price, weight = policy.energy_price, claim.weight
        gain = unit_cost(config, weight, price, 0.0) - unit_cost(faster, weight, price, 0.0)
        extra_w = config.n * (faster.gpu_w - config.gpu_w)
        if gain > 0 and extra_w > 0:
            worth = claim.state.remaining_at(state.now_s) * gain / extra_w
            heappush(steps, (-worth, claim.state.index, pool, claim, config))

    for pool, _, claims, final in priced:
        for claim, config in zip(claims, final, strict=True):
            offer(pool, claim, config)
    while steps:
        _, index, pool, claim, config = heappop(steps)
        group = claim.ladder.table.by_n[config.n]
        faster = group[group.index(config) + 1]
        extra_w = config.n * (faster.gpu_w - config.gpu_w)
        if extra_w <= spare_w:
            spare_w -= extra_w
            done[index] = Choice(pool, faster, policy.fit(index).least)
            offer(pool, claim, faster)
