"""Held-out errors: leave one batch, one GPU count or one clock out, fit on the rest, predict what was left out."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from pfprofile.model.document import ModelDocument, PartQuality, Quality
from pfprofile.model.domain import outside
from pfprofile.model.fit import FOLDS_IN_FIT, Context, Fit, document_of, fit_observations
from pfprofile.model.fitted import FittedModel
from pfprofile.model.fitting import Frame, caps_of, design_of
from pfprofile.model.observations import Observations
from pfprofile.model.points import Bools, Floats, Points

LEVEL = 0.9


@dataclass(frozen=True, slots=True)
class HeldOut:
    """Predictions of points that the fit had not seen.

    Attributes:
        rows: which observations, (m,).
        group: value of the axis that was left out, (m,).
        interior: the left-out value lies between others, (m,).
        time_s, power_w: predicted.
        time_inside, power_inside: the measured value lies in the 90 % interval.
    """

    rows: np.ndarray
    group: Floats
    interior: Bools
    time_s: Floats
    power_w: Floats
    time_inside: Bools
    power_inside: Bools


def axis_values(obs: Observations, axis: str) -> Floats:
    """The values of an axis: ``batch``, ``n_gpus`` or ``clock`` (power limits where the clock is latent)."""
    if axis == "batch":
        return obs.local_batch
    if axis == "n_gpus":
        return obs.n_gpus
    return obs.power_limit_w if obs.latent_clock else obs.setting_mhz


AXES = ("batch", "n_gpus", "clock")
Fitter = Callable[[Observations], FittedModel]


def groups(values: Floats, limit: int | None) -> list[float]:
    """The distinct values, thinned evenly to ``limit``; empty where leaving one out leaves fewer than two."""
    distinct = [float(v) for v in np.unique(values)]
    if len(distinct) < 3:
        return []
    if limit is not None and len(distinct) > limit:
        distinct = [distinct[i] for i in np.unique(np.linspace(0, len(distinct) - 1, limit).round().astype(int))]
    return distinct


def model_of(obs: Observations, frame: Frame, context: Context, starts: int = 1) -> FittedModel:
    """Fit observations as `fit_profile` does, without held-out errors."""
    fit = fit_observations(obs, frame, context.device_name, context.idle_power_w, starts)
    return FittedModel(document_of(fit, context))


def predict_rows(model: FittedModel, obs: Observations, frame: Frame, rows: np.ndarray) -> HeldOut:
    """What a model says of some observations, each under its own power limit."""
    sub = obs.take(rows)
    points = Points.of(sub.n_gpus, sub.local_batch, n_nodes=sub.n_nodes, accum_steps=sub.accum_steps,
                       sm_clock_mhz=sub.clock_mhz)  # fmt: skip
    far = outside(model.document.domain, model.document.clocks, points)
    if sub.latent_clock or obs.latent_clock:
        limits = model.document.domain.power_limit_w
        if limits:
            far |= (sub.power_limit_w < limits[0]) | (sub.power_limit_w > limits[-1])
    caps = caps_of(sub, frame) if model.has_power else np.full(len(sub), np.nan)
    a = model.answer(design_of(sub, frame), caps, far, LEVEL)
    with np.errstate(invalid="ignore"):
        return HeldOut(
            rows, np.zeros(len(rows)), np.ones(len(rows), dtype=np.bool_), a.time_s, a.power_w,
            np.abs(np.log(sub.step_time_s / a.time_s)) <= a.time_half,
            np.abs(np.log(sub.power_w / a.power_w)) <= a.power_half,
        )  # fmt: skip


def leave_one_out(
    obs: Observations, frame: Frame, fitter: Fitter, axis: str, limit: int | None = None
) -> Iterator[HeldOut]:
    """Leave each value of an axis out in turn, fit on the rest, predict it."""
    values = axis_values(obs, axis)
    distinct = np.unique(values)
    for value in groups(values, limit):
        test = values == value
        held = predict_rows(fitter(obs.take(~test)), obs, frame, np.flatnonzero(test))
        inner = np.full(int(test.sum()), bool(distinct[0] < value < distinct[-1]))
        yield HeldOut(held.rows, np.full(len(held.rows), value), inner, held.time_s, held.power_w,
                      held.time_inside, held.power_inside)  # fmt: skip


def join(parts: list[HeldOut]) -> HeldOut | None:
    """All left-out points of an axis together."""
    if not parts:
        return None
    return HeldOut(*(np.concatenate([getattr(p, name) for p in parts]) for name in HeldOut.__slots__))


def cross_validate(fit: Fit, context: Context, limit: int | None = FOLDS_IN_FIT, starts: int = 1) -> dict[str, HeldOut]:
    """Held-out predictions on every axis that has at least three values."""
    frame = fit.problem.frame

    def fitter(obs: Observations) -> FittedModel:
        return model_of(obs, frame, context, starts)

    out = {}
    for axis in AXES:
        held = join(list(leave_one_out(fit.problem.obs, frame, fitter, axis, limit)))
        if held is not None:
            out[axis] = held
    return out


def baseline_errors(
    obs: Observations, axis: str, names: tuple[str, ...], limit: int | None = FOLDS_IN_FIT
) -> dict[str, dict[str, float]]:
    """Held-out MAPE of the baselines on one axis: baseline -> part (time, power) -> MAPE, on the same folds."""
    from pfprofile.model.baselines import predict

    values = axis_values(obs, axis)
    out: dict[str, dict[str, float]] = {}
    for name in names:
        for part, truth in (("time", obs.step_time_s), ("power", obs.power_w)):
            errors: list[Floats] = []
            for value in groups(values, limit):
                test = values == value
                predicted = predict(name, obs.take(~test), obs.take(test), power=part == "power")
                errors.append(np.abs(predicted / truth[test] - 1))
            joined = np.concatenate(errors) if errors else np.zeros(0)
            if np.isfinite(joined).any():
                out.setdefault(name, {})[part] = float(np.nanmean(joined))
    return out


def with_quality(
    document: ModelDocument,
    obs: Observations,
    held: dict[str, HeldOut],
    baselines: dict[str, dict[str, dict[str, float]]],
) -> ModelDocument:
    """The document with held-out errors, interval coverage and baselines (axis -> name -> part) filled in."""
    quality = document.quality
    time = _part_quality(quality.throughput, obs.step_time_s, held, baselines, "time")
    power = quality.power and _part_quality(quality.power, obs.power_w, held, baselines, "power")
    filled = Quality(throughput=time, power=power)
    return document.model_copy(update={"quality": filled, "warnings": [*document.warnings, *_beaten(filled)]})


def _part_quality(
    before: PartQuality,
    truth: Floats,
    held: dict[str, HeldOut],
    baselines: dict[str, dict[str, dict[str, float]]],
    part: str,
) -> PartQuality:
    cv, coverage = {}, {}
    for axis, h in held.items():
        known = np.isfinite(truth[h.rows])
        if known.any():
            predicted = h.time_s if part == "time" else h.power_w
            inside = h.time_inside if part == "time" else h.power_inside
            cv[axis] = float(np.mean(np.abs(predicted / truth[h.rows] - 1)[known]))
            coverage[axis] = float(np.mean(inside[known]))
    others: dict[str, dict[str, float]] = {}
    for axis, by_name in baselines.items():
        for name, by_part in by_name.items():
            if part in by_part and axis in cv:
                others.setdefault(name, {})[axis] = by_part[part]
    return before.model_copy(update={"cv": cv, "coverage": coverage, "baselines": others})


def _beaten(quality: Quality) -> list[str]:
    """Where a baseline does better on what was left out, the report says so."""
    out = []
    for words, part in (("step time", quality.throughput), ("power", quality.power)):
        for name, by_axis in (part.baselines if part else {}).items():
            for axis, error in by_axis.items():
                if part is not None and error < part.cv[axis]:
                    out.append(f"{words}, one {axis} left out: {name.replace('_', ' ')} errs by {error:.1%}, "
                               f"the model by {part.cv[axis]:.1%}")  # fmt: skip
    return out
