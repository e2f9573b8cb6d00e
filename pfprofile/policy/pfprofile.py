"""The default policy: GPUs, clocks and energy shared by price (docs/planner.md derives the rule)."""

from __future__ import annotations

import math
from bisect import bisect_left

from pfprofile.cluster.speed_table import Config
from pfprofile.policy.base import Choice, Decision, JobState, State
from pfprofile.policy.book import Book, Fit
from pfprofile.policy.hulls import grid_index, grid_indices, ladder
from pfprofile.policy.prices import Claim, rank_weights, share, worth_rescaling
from pfprofile.policy.settle import settle

#: up to this many running jobs everybody is priced afresh at every event; above it, once this share has changed
ALWAYS_REPRICE = 8
REPRICE_FRACTION = 0.15
#: refused steps looked at when GPUs fall free between full pricings
GROWTH_TRIES = 12
#: how many times over the admitted jobs' wishes may ask for the pool
CROWDING = 5.0

#: waiting jobs of a pool that are looked at for another one at an event, and how much cheaper that must be
MOST_CHANGES, WORTH_CHANGING = 8, 1.3

Changes = dict[int, Choice | None]


class PfprofilePolicy:
    """Least Σ JCT + λ·energy with GPUs, clocks, admission and restarts decided at every event.

    Args:
        energy_price: λ, s of JCT per J.
        known_work: whether remaining work may be used; else admission is by least attained service, all weights 1.
        reprice_fraction: share of the running jobs that may change before everybody is priced afresh; 0 = at every
            event, which costs time and is worth a few per cent of JCT where the cluster is overloaded.
        crowding: jobs are admitted, shortest first, until what they would take if GPUs were free comes to so many times
            the pool; the others wait. 1 runs few jobs at a time, each as fast as it can, which is best where speed-ups
            are nearly linear; infinity runs all at once, down to one GPU each.
    """

    name = "pfprofile"

    def __init__(
        self, energy_price: float = 0.0, known_work: bool = True, reprice_fraction: float = REPRICE_FRACTION,
        crowding: float = CROWDING,
    ) -> None:  # fmt: skip
        self.energy_price = energy_price
        self.known_work = known_work
        self.reprice_fraction = reprice_fraction
        self.crowding = crowding
        self._books: dict[int, Book] = {}
        self._fits: dict[int, Fit] = {}

    def decide(self, state: State) -> Decision:
        """See `pfprofile.policy.base.Policy`."""
        changes: Changes = {}
        for job in state.arrived:
            self._enter(job, state)
        for job in state.bounced:
            self._enqueue(job, state.now_s)
        for job in state.finished:
            fit = self._fits.pop(job.index)
            self._books[fit.pool].part(job, fit)
        if len(state.cluster.pools) > 1:
            self._change_pools(state)
        if math.isfinite(state.power_cap_w):
            from pfprofile.policy.cap import decide_within_cap

            decide_within_cap(self, state, changes)
            return Decision(changes, consolidate_price=self.energy_price)
        for pool, book in self._books.items():
            if not book.members:
                continue
            if state.shortened or state.bounced:
                book.at_best = False
            running = len(book.members) - len(book.queue)
            if book.at_best and book.wanted <= book.capacity and not book.urgent:
                self._start_at_best(pool, book, changes)
            elif running > ALWAYS_REPRICE and book.changed < self.reprice_fraction * running and not book.urgent:
                self._patch(pool, book, state, changes)
            else:
                claims, final = self.price(book, state.now_s, self.energy_price)
                self.commit(pool, book, claims, final, state.now_s, changes)
        return Decision(changes, consolidate_price=self.energy_price)

    def reprice(self, energy_price: float, state: State) -> None:
        """Change λ; everybody is priced afresh at the next decision."""
        self.energy_price = energy_price
        for pool, book in self._books.items():
            book.wanted = 0
            for job in book.members.values():
                self._fits[job.index] = fit = self._fit(job, pool)
                book.wanted += fit.ladder.best.n
            book.changed = len(book.members) + 1
            book.at_best = False

    @property
    def books(self) -> dict[int, Book]:
        """Each pool's book."""
        return self._books

    # ── membership ──

    def _fit(self, job: JobState, pool: int) -> Fit:
        table = job.job.tables[pool]
        options = ladder(table, grid_index(self.energy_price), job.job.min_n, job.job.max_n)
        least = options.rungs[0].n
        return Fit(pool, options, least, 1.0 / table.fastest(least).speed_per_s)

    def _enter(self, job: JobState, state: State) -> None:
        self._join(job, self._choose_pool(job, state), state)

    def _join(self, job: JobState, fit: Fit, state: State) -> None:
        self._fits[job.index] = fit
        book = self._books.get(fit.pool)
        if book is None:
            book = self._books[fit.pool] = Book(state.cluster.pools[fit.pool].n_gpus)
            self._books = dict(sorted(self._books.items()))
        book.join(job, fit)
        if job.config is None:
            self._enqueue(job, state.now_s)
        else:
            book.at_best = False

    def _choose_pool(self, job: JobState, state: State) -> Fit:
        """The pool where it costs least at the last prices; a pool in demand counts as that much slower."""
        fits = [self._fit(job, pool) for pool in job.job.tables if job.config is None or pool == job.pool]
        if len(fits) == 1:
            return fits[0]
        return min(fits, key=lambda fit: (self._cost(fit, state, member=False), fit.pool))

    def _cost(self, fit: Fit, state: State, *, member: bool) -> float:
        """Of a sample in a pool; ``member``: the job is among those that crowd it already."""
        book = self._books.get(fit.pool)
        gpu_price, wanted = (book.gpu_price, book.wanted) if book else (0.0, 0)
        config = fit.ladder.rungs[fit.ladder.rung_at(gpu_price)]
        crowd = max(1.0, (wanted + (0 if member else config.n)) / state.cluster.pools[fit.pool].n_gpus)
        return (crowd + self.energy_price * config.power_w) / config.speed_per_s

    def _change_pools(self, state: State) -> None:
        """Who waits may go to another pool that has become cheaper; who runs stays on its type of GPU."""
        for pool, book in list(self._books.items()):
            for _, index, job in book.queue[:MOST_CHANGES]:
                held = self._fits[index]
                own = self._cost(held, state, member=True)
                others = [self._fit(job, other) for other in job.job.tables if other != pool]
                if not others:
                    continue
                best = min(others, key=lambda fit: (self._cost(fit, state, member=False), fit.pool))
                if self._cost(best, state, member=False) * WORTH_CHANGING < own:
                    book.part(job, held)
                    book.queue = [entry for entry in book.queue if entry[1] != index]
                    self._join(job, best, state)

    def _enqueue(self, job: JobState, now_s: float) -> None:
        fit = self._fits[job.index]
        self._books[fit.pool].wait(job, self._length(job, fit, now_s))

    def _length(self, job: JobState, fit: Fit, now_s: float) -> float:
        """What admission sorts by: remaining time on the fewest GPUs, or attained service; deadlines before all."""
        if job.job.deadline_s < math.inf:
            return -1.0 / max(job.job.deadline_s, 1e-9)
        return job.remaining_at(now_s) * fit.unit_s if self.known_work else job.attained_at(now_s)

    # ── the three ways through an event ──

    def _start_at_best(self, pool: int, book: Book, changes: Changes) -> None:
        """Nobody is short of GPUs: newcomers get their best, nobody else is touched."""
        for _, index, _ in book.queue:
            fit = self._fits[index]
            changes[index] = Choice(pool, fit.ladder.best, fit.least)
        book.queue.clear()
        book.changed = 0
        book.gpu_price = 0.0

    def price(
        self, book: Book, now_s: float, price: float, most: int | None = None
    ) -> tuple[list[Claim], list[Config]]:
        """Admission, weights, prices and rescale test for a whole pool.

        Args:
            book: the pool's.
            now_s: the time.
            price: λ + ν, s/J.
            most: admit no more jobs than this.
        """
        admitted = self._admit(book, now_s)[:most]
        theta = max(0.0, 1.0 - book.capacity / book.wanted) if self.known_work and book.wanted else 0.0
        book.theta = theta
        book.lengths = [length for length, _, _ in admitted]
        weights = rank_weights(len(admitted), theta) if theta else [1.0] * len(admitted)
        indices = grid_indices(price, weights)
        claims = []
        for (_, index, job), weight, grid in zip(reversed(admitted), weights, indices, strict=True):
            fit = self._fits[index]
            least, needed = fit.least, 0.0
            if book.urgent and job.job.deadline_s < math.inf:
                least, needed = _deadline_floor(job, fit, now_s)
            if weight == 1.0 and price == self.energy_price and least == fit.least:
                options = fit.ladder
            else:
                options = ladder(fit.ladder.table, grid, least, job.job.max_n)
            claims.append(Claim(job, options, weight, price, needed))
        _trim(claims, book.capacity)
        shares = share(claims, book.capacity)
        book.gpu_price, book.refused, book.claims = shares.gpu_price, shares.refused, claims
        return claims, settle(claims, book.capacity, shares.gpu_price, now_s)

    def commit(
        self, pool: int, book: Book, claims: list[Claim], final: list[Config], now_s: float, changes: Changes
    ) -> None:
        """Turn a pricing into changes, and remember who waits."""
        changes |= self.draft(pool, book, claims, final)
        chosen = {claim.state.index for claim in claims}
        book.queue = [entry for entry in book.queue if entry[1] not in chosen]
        for index, choice in changes.items():
            if choice is None and index in book.members:
                job = book.members[index]
                book.wait(job, self._length(job, self._fits[index], now_s))
        book.changed = 0
        book.at_best = book.theta == 0.0 and book.wanted <= book.capacity and not book.queue

    def draft(self, pool: int, book: Book, claims: list[Claim], final: list[Config]) -> Changes:
        """Who starts, changes, stops."""
        changes: Changes = {}
        chosen = set()
        for claim, config in zip(claims, final, strict=True):
            job = claim.state
            chosen.add(job.index)
            if config is not job.config:
                changes[job.index] = Choice(pool, config, self._fits[job.index].least)
        if len(chosen) < len(book.members):
            for index, job in book.members.items():
                if job.config is not None and index not in chosen:
                    changes[index] = None
        return changes

    def fit(self, index: int) -> Fit:
        """How a member fits its pool."""
        return self._fits[index]

    def _admit(self, book: Book, now_s: float) -> list[tuple[float, int, JobState]]:
        """Who may run, shortest first, while the fewest GPUs of all fit."""
        fits, known = self._fits, self.known_work
        waiting = {entry[1] for entry in book.queue}
        held = []
        for index, job in book.members.items():
            if index not in waiting:
                if known and not book.urgent:
                    held.append((job.remaining_at(now_s) * fits[index].unit_s, index, job))
                else:
                    held.append((self._length(job, fits[index], now_s), index, job))
        everybody = held + book.queue[: book.capacity + 1]
        everybody.sort()
        most = self.crowding * book.capacity if known else math.inf
        if book.least <= book.capacity and book.wanted <= most:
            return everybody
        least = wanted = 0
        for position, (length, index, _) in enumerate(everybody):
            least += fits[index].least
            # Deadlines, whose lengths are negative, are not kept waiting by wishes.
            if least > book.capacity or (wanted >= most and length >= 0.0):
                return everybody[:position]
            wanted += fits[index].ladder.most_n
        return everybody

    def _patch(self, pool: int, book: Book, state: State, changes: Changes) -> None:
        """Between full pricings: what is free goes to the shortest that wait, then to growth that was refused."""
        free, now_s = state.free[pool], state.now_s
        while free > 0 and book.queue:
            length, index, job = book.queue[0]
            count = max(1, len(book.lengths))
            rank = count - bisect_left(book.lengths, length)
            weight = 1.0 - book.theta + book.theta * max(1, 2 * rank - 1) / count
            fit = self._fits[index]
            options = ladder(fit.ladder.table, grid_index(self.energy_price / weight), job.job.min_n, job.job.max_n)
            wanted: Config | None = options.rungs[options.rung_at(book.gpu_price / weight)]
            if wanted is not None and wanted.n > free:
                wanted = options.below(free)
            if wanted is None:
                return
            changes[index] = Choice(pool, wanted, fit.least)
            book.queue.pop(0)
            free -= wanted.n
        for i, k in book.refused[:GROWTH_TRIES]:
            if free <= 0:
                break
            claim = book.claims[i]
            job, target = claim.state, claim.ladder.rungs[k]
            held = job.config
            if held is None or held.n != claim.ladder.rungs[k - 1].n or not 0 < target.n - held.n <= free:
                continue
            kept = claim.ladder.clock_for(held.n)
            if job.index not in changes and worth_rescaling(claim, kept, target, book.gpu_price, now_s):
                changes[job.index] = Choice(pool, target, held.n)
                free -= target.n - held.n


def _deadline_floor(job: JobState, fit: Fit, now_s: float) -> tuple[int, float]:
    """The fewest GPUs, and the speed, with which a job still meets its deadline; its fastest where none does."""
    table = fit.ladder.table
    counts = table.counts(job.job.min_n, job.job.max_n)
    held = job.config.n if job.config is not None else 0
    remaining = job.remaining_at(now_s)
    started = not math.isnan(job.started_s)
    best = counts[0]
    for n in counts:
        pause = job.job.restart_s(n) if started and n != held else max(0.0, job.ready_s - now_s)
        left = job.job.deadline_s - now_s - pause
        fastest = table.fastest(n).speed_per_s
        if left > 0 and fastest * left >= remaining:
            return n, remaining / left * (1.0 + 1e-9)
        if fastest > table.fastest(best).speed_per_s:
            best = n
    return best, math.inf


def _trim(claims: list[Claim], capacity: int) -> None:
    """Deadlines may raise floors above what fits: the least urgent (they come first) are left out until it does."""
    total = sum(claim.ladder.rungs[0].n for claim in claims)
    while total > capacity and claims:
        total -= claims.pop(0).ladder.rungs[0].n
