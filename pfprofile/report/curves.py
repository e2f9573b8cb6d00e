"""What a model says along the lines of a cut: values with 90 % intervals, and where it extrapolates."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from pfprofile.model.fitted import FittedModel
from pfprofile.model.points import Bools, Floats, Points
from pfprofile.report.asking import at_fitted_limit, predict_under
from pfprofile.report.axes import NAMES, words
from pfprofile.report.parts import enumerate_words
from pfprofile.report.slices import Slice

LEVEL = 0.9
_DRAWS, _SEED = 400, 0


@dataclass(frozen=True, slots=True)
class Curve:
    """A model along one axis; arrays (m,).

    Attributes:
        values: column of a quantity -> (value, low, high); NaN where the model has no power.
        extrapolated: outside what was measured.
    """

    item: float | None
    x: Floats
    values: dict[str, tuple[Floats, Floats, Floats]]
    extrapolated: Bools


def curves_of(model: FittedModel, part: Slice) -> list[Curve]:
    """One curve for each line of the cut, within the ranges that were measured.

    Raises:
        InputError: the model cannot speak about these points; see `FittedModel.predict`.
    """
    return [_curve(model, part, item) for item, _ in part.lines]


def _curve(model: FittedModel, part: Slice, item: float | None) -> Curve:
    x = _grid(model, part.axis)
    at: dict[str, Floats] = {"limit": np.full(len(x), math.nan)}
    for name, held in (*part.held, (part.line_axis, item)):
        at[name] = np.full(len(x), math.nan if held is None else held)
    at[part.axis] = x
    gpus = at["gpus"].astype(np.int64)
    points = Points.of(
        gpus, at["batch"].astype(np.int64), n_nodes=-(-gpus // model.gpus_per_node), accum_steps=part.accum_steps,
        sm_clock_mhz=at["clock"],
    )  # fmt: skip
    found = predict_under(model, points, at["limit"])
    samples = points.n_gpus * points.local_batch * points.accum_steps
    low, high = energy_interval(model, points, at["limit"])
    values = {
        "step_time_s": (found.step_time_s, found.step_time_lo_s, found.step_time_hi_s),
        "throughput_per_s": (found.throughput_per_s, samples / found.step_time_hi_s, samples / found.step_time_lo_s),
        "power_w": (found.power_w, found.power_lo_w, found.power_hi_w),
        "energy_per_sample_j": (found.energy_per_step_j / samples, low, high),
    }
    return Curve(item, x, values, found.extrapolated)


def energy_interval(model: FittedModel, points: Points, limits_w: Floats) -> tuple[Floats, Floats]:
    """Interval of the GPU energy of a sample, J, from joint draws of time and power (their errors go together).

    NaN where the model has no power, and under limits other than the model's own, of which there are no draws.
    """
    if not model.has_power or not at_fitted_limit(model, limits_w):
        nothing = np.full(len(points), math.nan)
        return nothing, nothing
    time_s, power_w = model.draws(points, _DRAWS, _SEED)
    energy = time_s * power_w / (points.local_batch * points.accum_steps)
    low, high = np.quantile(energy, [(1 - LEVEL) / 2, (1 + LEVEL) / 2], axis=0)
    return low, high


def _grid(model: FittedModel, axis: str) -> Floats:
    domain = model.document.domain
    if axis == "clock":
        return np.linspace(domain.clock_mhz[0], domain.clock_mhz[-1], 40)
    if axis == "gpus":
        powers = [2**i for i in range(domain.n_gpus[-1].bit_length())]
        inside = [n for n in powers if domain.n_gpus[0] <= n <= domain.n_gpus[-1]]
        return np.array(sorted({*inside, *domain.n_gpus}), dtype=np.float64)
    if axis == "limit":
        return np.linspace(domain.power_limit_w[0], domain.power_limit_w[-1], 30)
    ends = domain.local_batch[0], domain.local_batch[-1]
    return np.unique(np.round(np.geomspace(*ends, 28)))


def known_values(model: FittedModel) -> dict[str, Sequence[float]]:
    """Axis -> what was measured of it, ascending."""
    domain = model.document.domain
    return {
        "clock": domain.clock_mhz,
        "batch": domain.local_batch,
        "gpus": domain.n_gpus,
        "limit": domain.power_limit_w,
    }


def cut_of_domain(model: FittedModel, axis: str) -> Slice:
    """The cut to draw where there is no profile: lines over the measured range, the rest held at the reference."""
    known = known_values(model)
    clocks = (known["clock"][0], known["clock"][-1]) if known["clock"] else (0.0, 0.0)
    if len(known[axis]) < 2:
        one = f" ({words(axis, known[axis][0])})" if known[axis] else ""
        intro = f"The model knows only one {NAMES[axis].what}{one}. To see more: {NAMES[axis].how}."
        return Slice(axis, axis, (), (), intro, clocks)
    others = [name for name in NAMES if name != axis]
    line_axis = next((name for name in others if len(known[name]) > 1), others[0])
    facts, first = model.document.facts, known["gpus"][0]
    wanted = {"batch": facts.reference_local_batch, "gpus": first}
    held = tuple((n, _reference(known[n], wanted.get(n))) for n in others if n != line_axis)
    values = known[line_axis]
    items = list(dict.fromkeys((values[0], values[len(values) // 2], values[-1]))) if values else [None]
    told = [words(n, v) for n, v in held if v is not None and (n in ("gpus", "batch") or len(known[n]) > 1)]
    intro = f"Held fixed: {enumerate_words(told)}." if told else ""
    return Slice(axis, line_axis, tuple((item, ()) for item in items), (), intro, clocks, held,
                 model.document.domain.accum_steps[0])  # fmt: skip


def _reference(known: Sequence[float], wanted: float | None) -> float | None:
    if not known:
        return None
    return float(wanted) if wanted in known and wanted is not None else float(known[-1])
