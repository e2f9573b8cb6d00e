"""Every line of the accuracy table: what is measured, on which data, and what is demanded of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from benchmarks import _datasets as data
from benchmarks._measure import (
    PEERS,
    Errors,
    Split,
    everything,
    five_clocks,
    leave_one_out,
    mean,
    measure,
    observe,
    random_fifths,
)
from pfprofile.model.observations import Observations

CURVE_PEERS = ("log_linear", "log_quadratic", "gradient_boosting", "random_forest")


@dataclass(frozen=True, slots=True)
class Line:
    """One line: ``low`` ≤ value ≤ ``high`` (%), beside what the peers reach."""

    what: str
    data: str
    value: float
    low: float | None
    high: float | None
    peers: dict[str, float] = field(default_factory=dict)

    @property
    def met(self) -> bool:
        """Whether the demand is met."""
        above = self.low is None or self.value >= self.low
        return above and (self.high is None or self.value <= self.high)


Named = tuple[str, Observations, str]


def elasticflow(root: Path) -> list[Named]:
    """The A100 throughput tables."""
    return [(m, observe(data.elasticflow(root, m)), "A100") for m in data.ELASTICFLOW]


def pollux(root: Path) -> list[Named]:
    """The T4 placements."""
    return [(m, observe(data.pollux(root, m)), "T4") for m in data.POLLUX]


def _all(sets: list[Named], splits: Callable[[Observations], list[Split]], peers: tuple[str, ...] = ()) -> list[Errors]:
    return [measure(obs, splits(obs), device, peers) for _, obs, device in sets]


def _line(what: str, where: str, runs: list[Errors], high: float, part: str = "time") -> Line:
    peers = {p: mean([r.mape(p, part) for r in runs]) for p in PEERS} if part != "energy" else {}
    return Line(what, where, mean([r.mape(part=part) for r in runs]), None, high,
                {p: v for p, v in peers.items() if v == v})  # fmt: skip


def scaling(root: Path) -> Iterator[Line]:
    """Throughput over GPUs and batch."""
    covered: dict[str, list[Errors]] = {"random": [], "new n": []}
    for where, sets, in_sample in (("elasticflow_a100", elasticflow(root), 2.5), ("pollux_t4", pollux(root), 7.5)):
        yield _line("in-sample", where, _all(sets, everything, PEERS), in_sample)
        yield _line("one batch out", where, _all(sets, lambda o: leave_one_out(o, "batch"), PEERS), 6.0)
        interior = _all(sets, lambda o: leave_one_out(o, "n_gpus", interior=True), PEERS)
        yield _line("one n out (interior)", where, interior, 5.5)
        covered["new n"] += interior
        covered["random"] += _all(sets, random_fifths)
        yield _line("n ≤ 16 → n ≥ 32", where, _all(_with_large(root, where, sets), _small_to_large, PEERS), 13.0)
    yield Line("90 % intervals, random", "scaling", mean([r.coverage() for r in covered["random"]]), 85.0, 97.0)
    yield Line("90 % intervals, new n", "scaling", mean([r.coverage() for r in covered["new n"]]), 78.0, None)


def _with_large(root: Path, where: str, sets: list[Named]) -> list[Named]:
    if where != "pollux_t4":
        return sets
    out = []
    for model, _, device in sets:
        near, far = data.pollux(root, model), data.pollux_scalability(root, model)
        out.append((model, observe({name: near[name] + far[name] for name in near}), device))
    return out


def _small_to_large(obs: Observations) -> list[Split]:
    return [(np.flatnonzero(obs.n_gpus <= 16), np.flatnonzero(obs.n_gpus >= 32))]


def clocks(root: Path) -> Iterator[Line]:
    """Time, power and energy over the clock, from five clocks."""
    runs, regrets = [], []
    for name, columns in data.clock_curves(root).items():
        obs = observe(columns)
        train, test = five_clocks(obs)
        runs.append(measure(obs, [(train, test)], "A100", CURVE_PEERS, starts=3))
        regrets.append(_regret(obs, train))
        del name
    yield _line("five clocks: time", "clock", runs, 2.0)
    yield _line("five clocks: power", "clock", runs, 2.5, "power")
    yield _line("five clocks: energy", "clock", runs, 2.5, "energy")
    yield Line("energy regret, mean", "clock", mean(regrets), None, 2.5)
    yield Line("energy regret, p90", "clock", float(np.percentile(regrets, 90)), None, 5.0)
    yield Line("90 % intervals, clocks", "clock", mean([r.coverage() for r in runs]), 90.0, None)


def _regret(obs: Observations, train: np.ndarray) -> float:
    """How much more energy the clock that looks best takes than the best one, %."""
    from pfprofile.model.fit import Context, frame_for
    from pfprofile.model.validate import model_of, predict_rows
    from pfprofile.profile import ProfileMetadata

    metadata = ProfileMetadata(source="imported")
    frame = frame_for(obs, metadata)
    model = model_of(obs.take(train), frame, Context(metadata, "b", "A100", "fp32", None, [], "", len(obs)), 3)
    held = predict_rows(model, obs, frame, np.arange(len(obs)))
    energy = obs.power_w * obs.step_time_s
    return 100 * float(energy[np.argmin(held.power_w * held.time_s)] / energy.min() - 1)


def saturated(root: Path) -> Iterator[Line]:
    """Rows whose clock the 300 W limit of an A40 holds down."""
    runs = []
    for columns in data.perseus(root, "a40").values():
        obs = observe(columns)
        capped = np.flatnonzero(obs.requested_mhz >= 1480)
        runs.append(measure(obs, [(np.arange(len(obs)), capped)], "A40", starts=3))
    yield _line("capped rows: time", "clock/perseus_gpt3_a40", runs, 1.0)
    yield _line("capped rows: power", "clock/perseus_gpt3_a40", runs, 1.0, "power")


def latent(root: Path) -> Iterator[Line]:
    """Batch × power limit; the clock was not recorded."""
    sets = [(name, observe(columns), name.split("-")[1]) for name, columns in data.zeus(root)]
    inside = _all(sets, everything, CURVE_PEERS)
    yield _line("batch × limit, in-sample: time", "batch", inside, 4.5)
    yield _line("batch × limit, in-sample: power", "batch", inside, 4.5, "power")
    left = _all(sets, lambda o: leave_one_out(o, "batch"), CURVE_PEERS)
    yield _line("one batch out: time", "batch", left, 6.5)
    yield _line("one batch out: power", "batch", left, 5.5, "power")


def all_lines(root: Path) -> Iterator[Line]:
    """The whole table."""
    for part in (scaling, clocks, saturated, latent):
        yield from part(root)
