"""Fit on one part, predict the other: our model, AdaptDL's objective, and the baselines, on the same splits."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from benchmarks import _adaptdl
from pfprofile.model import baselines
from pfprofile.model.fit import Context, frame_for
from pfprofile.model.observations import Observations, from_columns
from pfprofile.model.validate import axis_values, groups, model_of, predict_rows
from pfprofile.profile import ProfileMetadata

#: a split: rows to fit on, rows to predict
Split = tuple[np.ndarray, np.ndarray]
PEERS = ("adaptdl", "log_linear", "log_quadratic", "gradient_boosting", "random_forest")


@dataclass(slots=True)
class Errors:
    """Absolute relative errors (time, power) by who predicted, and whether our 90 % intervals held."""

    time: dict[str, list[float]] = field(default_factory=dict)
    power: dict[str, list[float]] = field(default_factory=dict)
    energy: list[float] = field(default_factory=list)
    inside: list[bool] = field(default_factory=list)

    def mape(self, who: str = "ours", part: str = "time") -> float:
        """Mean error, %; NaN where there is none."""
        values = self.energy if part == "energy" else getattr(self, part).get(who, [])
        return 100 * float(np.mean(values)) if values else float("nan")

    def coverage(self) -> float:
        """Share of intervals that held, %."""
        return 100 * float(np.mean(self.inside)) if self.inside else float("nan")


def observe(columns: Mapping[str, Sequence[float]]) -> Observations:
    """Columns of a data set, repeats collapsed."""
    return from_columns(columns)


def measure(
    obs: Observations, splits: Sequence[Split], device: str, peers: Sequence[str] = (), starts: int = 2
) -> Errors:
    """Run every split."""
    out = Errors()
    metadata = ProfileMetadata(source="imported")
    context = Context(metadata, "benchmark", device, "fp32", None, [], "", len(obs))
    frame = frame_for(obs, metadata)
    for train, test in splits:
        part, truth = obs.take(train), obs.take(test)
        held = predict_rows(model_of(part, frame, context, starts), obs, frame, test)
        _add(out.time, "ours", held.time_s / truth.step_time_s)
        out.inside += held.time_inside.tolist()
        if truth.has_power:
            _add(out.power, "ours", held.power_w / truth.power_w)
            out.inside += held.power_inside.tolist()
            energy = held.power_w * held.time_s / (truth.power_w * truth.step_time_s)
            out.energy += np.abs(energy - 1).tolist()
        for peer in peers:
            if peer == "adaptdl":
                _add(out.time, peer, _adaptdl.predict(part, truth) / truth.step_time_s)
                continue
            _add(out.time, peer, baselines.predict(peer, part, truth) / truth.step_time_s)
            if truth.has_power:
                _add(out.power, peer, baselines.predict(peer, part, truth, power=True) / truth.power_w)
    return out


def _add(to: dict[str, list[float]], who: str, ratio: np.ndarray) -> None:
    to.setdefault(who, []).extend(np.abs(ratio - 1).tolist())


def everything(obs: Observations) -> list[Split]:
    """Fit on all, predict all."""
    rows = np.arange(len(obs))
    return [(rows, rows)]


def leave_one_out(obs: Observations, axis: str, *, interior: bool = False) -> list[Split]:
    """Each value of an axis (batch, n_gpus, clock) left out in turn; ``interior`` leaves the two ends in."""
    values = axis_values(obs, axis)
    chosen = groups(values, None)
    if interior:
        chosen = chosen[1:-1]
    return [(np.flatnonzero(values != v), np.flatnonzero(values == v)) for v in chosen]


def random_fifths(obs: Observations, seed: int = 0) -> list[Split]:
    """Five random fifths; repeats are collapsed, so none leaks."""
    order = np.random.default_rng(seed).permutation(len(obs))
    return [(np.sort(np.concatenate([order[j::5] for j in range(5) if j != i])), order[i::5]) for i in range(5)]


def five_clocks(obs: Observations) -> Split:
    """Fit on five clocks spread evenly from the lowest to the highest, predict the others."""
    clocks = obs.requested_mhz
    wanted = np.linspace(clocks.min(), clocks.max(), 5)
    train = np.unique([int(np.argmin(np.abs(clocks - w))) for w in wanted])
    return train, np.setdiff1d(np.arange(len(obs)), train)


def mean(values: Iterator[float] | Sequence[float]) -> float:
    """Mean of what is known."""
    known = [v for v in values if v == v]
    return float(np.mean(known)) if known else float("nan")
