"""The default policy: GPUs, clocks and energy shared by price (docs/planner.md derives the rule)."""

from __future__ import annotations

from bisect import bisect_left, insort

from pfprofile.cluster.speed_table import Config
from pfprofile.policy.base import Choice, Decision, JobState, State
from pfprofile.policy.hulls import Ladder, grid_index, ladder
from pfprofile.policy.prices import Claim, best_at, rank_weights, share, worth_rescaling
from pfprofile.policy.settle import settle

#: below this many running jobs every event is priced afresh; above it, once a set fraction of them has changed
ALWAYS_REPRICE = 32
REPRICE_FRACTION = 0.03
#: refused steps looked at when GPUs fall free between repricings
GROWTH_TRIES = 12


class Book:
    """One pool's memory between events: who waits, what would be wanted, the last prices."""

    __slots__ = ("at_best", "changed", "claims", "gpu_price", "least", "lengths", "queue", "refused", "theta", "wanted")

    def __init__(self) -> None:
        self.queue: list[tuple[float, int, JobState]] = []  # waiting, shortest first
        self.wanted = 0  # Σ n of all jobs if GPUs were free
        self.least = 0  # Σ n_min of all jobs
        self.changed = 0
        self.at_best = True
        self.gpu_price = 0.0
        self.theta = 0.0
        self.lengths: list[float] = []
        self.claims: list[Claim] = []
        self.refused: list[tuple[float, int, int]] = []


class PfprofilePolicy:
    """Least Σ JCT + λ·energy with GPUs, clocks, admission and restarts decided at every event.

    Args:
        energy_price: λ, s of JCT per J.
        known_work: whether remaining work may be used; else admission is by least attained service, all weights 1.
    """

    name = "pfprofile"

    def __init__(self, energy_price: float = 0.0, known_work: bool = True) -> None:
        self.energy_price = energy_price
        self.known_work = known_work
        self._books: dict[int, Book] = {}
        self._home: dict[int, int] = {}

    def decide(self, state: State) -> Decision:
        """See `pfprofile.policy.base.Policy`."""
        changes: dict[int, Choice | None] = {}
        for job in state.arrived:
            self._enter(job, state.now_s)
        for job in state.bounced:
            self._enqueue(job, state.now_s)
        for job in state.finished:
            pool = self._home.pop(job.index)
            book = self._books[pool]
            full = self._ladder(job, pool, 1.0)
            book.wanted -= full.best.n
            book.least -= full.rungs[0].n
            book.changed += 1
        for pool, book in self._books.items():
            running = [job for job in state.running.values() if job.pool == pool]
            if not running and not book.queue:
                continue
            capacity = state.cluster.pools[pool].n_gpus
            if state.shortened or state.bounced:
                book.at_best = False
            if book.at_best and book.wanted <= capacity:
                self._start_at_best(pool, book, changes)
            elif len(running) > ALWAYS_REPRICE and book.changed < REPRICE_FRACTION * len(running):
                self._patch(pool, book, state, changes)
            else:
                self._reprice(pool, book, running, state, changes)
        return Decision(changes)

    # ── membership ──

    def _enter(self, job: JobState, now_s: float) -> None:
        pool = self._home[job.index] = self._choose_pool(job)
        book = self._books.setdefault(pool, Book())
        full = self._ladder(job, pool, 1.0)
        book.wanted += full.best.n
        book.least += full.rungs[0].n
        book.changed += 1
        self._enqueue(job, now_s)

    def _enqueue(self, job: JobState, now_s: float) -> None:
        pool = self._home[job.index]
        insort(self._books[pool].queue, (self._length(job, pool, now_s), job.index, job))

    def _choose_pool(self, job: JobState) -> int:
        """The pool where it costs least at the prices of the last event."""

        def cost(pool: int) -> float:
            options = self._ladder(job, pool, 1.0)
            book = self._books.get(pool)
            gpu_price = book.gpu_price if book else 0.0
            config = options.rungs[options.rung_at(gpu_price)]
            return (1.0 + self.energy_price * config.power_w + gpu_price * config.n) / config.speed_per_s

        return (
            min(job.job.tables, key=lambda p: (cost(p), p)) if len(job.job.tables) > 1 else next(iter(job.job.tables))
        )

    def _ladder(self, job: JobState, pool: int, weight: float) -> Ladder:
        return ladder(job.job.tables[pool], grid_index(self.energy_price / weight), job.job.min_n, job.job.max_n)

    def _length(self, job: JobState, pool: int, now_s: float) -> float:
        """What admission sorts by: remaining time on the fewest GPUs, or attained service."""
        if not self.known_work:
            return job.attained_at(now_s)
        least = self._ladder(job, pool, 1.0).rungs[0].n
        return job.remaining_at(now_s) / job.job.tables[pool].fastest(least).speed_per_s

    # ── the three ways through an event ──

    def _start_at_best(self, pool: int, book: Book, changes: dict[int, Choice | None]) -> None:
        """Nobody is short of GPUs: newcomers get their best, nobody else is touched."""
        for _, index, job in book.queue:
            best = self._ladder(job, pool, 1.0)
            changes[index] = Choice(pool, best.best, best.rungs[0].n)
        book.queue.clear()
        book.changed = 0
        book.gpu_price = 0.0

    def _reprice(
        self, pool: int, book: Book, running: list[JobState], state: State, changes: dict[int, Choice | None]
    ) -> None:
        """Admission, weights, prices, rescale test for everybody."""
        capacity, now_s = state.cluster.pools[pool].n_gpus, state.now_s
        admitted = self._admit(pool, book, running, capacity, now_s)
        theta = max(0.0, 1.0 - capacity / book.wanted) if self.known_work else 0.0
        book.theta = theta
        book.lengths = [length for length, _, _ in admitted]
        weights = rank_weights(len(admitted), theta) if theta else [1.0] * len(admitted)
        claims = [
            Claim(job, self._ladder(job, pool, weight), weight, self.energy_price)
            for (_, _, job), weight in zip(reversed(admitted), weights, strict=True)
        ]
        shares = share(claims, capacity)
        book.gpu_price, book.refused, book.claims = shares.gpu_price, shares.refused, claims
        final = settle(claims, capacity, shares.gpu_price, now_s, pool)
        chosen = set()
        for claim, config in zip(claims, final, strict=True):
            chosen.add(claim.state.index)
            if config is not claim.state.config:
                changes[claim.state.index] = Choice(pool, config, claim.ladder.rungs[0].n)
        for job in running:
            if job.index not in chosen:
                changes[job.index] = None
        book.queue = [entry for entry in book.queue if entry[1] not in chosen]
        for job in running:
            if job.index not in chosen:
                self._enqueue(job, now_s)
        book.changed = 0
        book.at_best = theta == 0.0 and book.wanted <= capacity and not book.queue

    def _admit(
        self, pool: int, book: Book, running: list[JobState], capacity: int, now_s: float
    ) -> list[tuple[float, int, JobState]]:
        """Who may run, shortest first, while the fewest GPUs of all fit."""
        held = [(self._length(job, pool, now_s), job.index, job) for job in running]
        everybody = sorted(held + book.queue[: capacity + 1])
        if book.least <= capacity:
            return everybody
        total = 0
        for position, (_, _, job) in enumerate(everybody):
            total += self._ladder(job, pool, 1.0).rungs[0].n
            if total > capacity:
                return everybody[:position]
        return everybody

    def _patch(self, pool: int, book: Book, state: State, changes: dict[int, Choice | None]) -> None:
        """Between repricings: what is free goes to the shortest that wait, then to the growth that was refused."""
        free, now_s = state.free[pool], state.now_s
        while free > 0 and book.queue:
            length, index, job = book.queue[0]
            count = max(1, len(book.lengths))
            rank = count - bisect_left(book.lengths, length)
            weight = 1.0 - book.theta + book.theta * max(1, 2 * rank - 1) / count
            options = self._ladder(job, pool, weight)
            wanted: Config | None = options.rungs[options.rung_at(book.gpu_price / weight)]
            if wanted is not None and wanted.n > free:
                wanted = options.below(free)
            if wanted is None:
                return
            changes[index] = Choice(pool, wanted, options.rungs[0].n)
            book.queue.pop(0)
            free -= wanted.n
        for _, i, k in book.refused[:GROWTH_TRIES]:
            if free <= 0:
                break
            claim = book.claims[i]
            job, target = claim.state, claim.ladder.rungs[k]
            held = job.config
            if held is None or held.n != claim.ladder.rungs[k - 1].n or not 0 < target.n - held.n <= free:
                continue
            kept = best_at(claim, held.n, job.job.tables[pool].by_n[held.n])
            if job.index not in changes and worth_rescaling(claim, kept, target, book.gpu_price, now_s):
                changes[job.index] = Choice(pool, target, held.n)
                free -= target.n - held.n
