"""What a model says along the lines of a cut: values with 90 % intervals, and where it extrapolates."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from pfprofile.model.fitted import FittedModel
from pfprofile.model.points import Bools, Floats, Points
from pfprofile.report.slices import NAMES, Slice, words

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


def curves_of(model: FittedModel, part: Slice, accum_steps: int = 1) -> list[Curve]:
    """One curve for each line of the cut, within the ranges that were measured.

    Raises:
        InputError: the model cannot speak about these points; see `FittedModel.predict`.
    """
    return [_curve(model, part, item) for item, _ in part.lines]


def _curve(model: FittedModel, part: Slice, item: float | None) -> Curve:
    x = _grid(model, part.axis)
    at: dict[str, Floats] = {
        part.axis: x,
        part.line_axis: np.full(len(x), math.nan if item is None else item),
        part.held_axis: np.full(len(x), math.nan if part.held is None else part.held),
    }
    gpus = at["gpus"].astype(np.int64)
    points = Points.of(
        gpus, at["batch"].astype(np.int64), n_nodes=-(-gpus // model.gpus_per_node), accum_steps=part.accum_steps,
        sm_clock_mhz=at["clock"],
    )  # fmt: skip
    found = model.predict(points, LEVEL)
    samples = points.n_gpus * points.local_batch * points.accum_steps
    energy = found.energy_per_step_j / samples
    low, high = energy_interval(model, points)
    values = {
        "step_time_s": (found.step_time_s, found.step_time_lo_s, found.step_time_hi_s),
        "throughput_per_s": (found.throughput_per_s, samples / found.step_time_hi_s, samples / found.step_time_lo_s),
        "power_w": (found.power_w, found.power_lo_w, found.power_hi_w),
        "energy_per_sample_j": (energy, low, high),
    }
    return Curve(item, x, values, found.extrapolated)


def energy_interval(model: FittedModel, points: Points) -> tuple[Floats, Floats]:
    """Interval of the GPU energy of a sample, J, from joint draws of time and power (their errors go together)."""
    if not model.has_power:
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
    ends = domain.local_batch[0], domain.local_batch[-1]
    return np.unique(np.round(np.geomspace(*ends, 28)))


def cut_of_domain(model: FittedModel, axis: str) -> Slice:
    """The cut to draw where there is no profile: lines over the measured range, the rest held at the reference."""
    domain, facts = model.document.domain, model.document.facts
    known: dict[str, Sequence[float]] = {
        "clock": domain.clock_mhz, "batch": domain.local_batch, "gpus": domain.n_gpus,
    }  # fmt: skip
    clocks = (domain.clock_mhz[0], domain.clock_mhz[-1]) if domain.clock_mhz else (0.0, 0.0)
    if len(known[axis]) < 2:
        what = {"clock": "SM clock", "batch": "batch size", "gpus": "GPU count"}[axis]
        one = f" ({words(axis, known[axis][0])})" if known[axis] else ""
        return Slice(
            axis, axis, (), (), f"The model knows only one {what}{one}. To see more: {NAMES[axis][3]}.", clocks
        )
    first, second = [name for name in NAMES if name != axis]
    line_axis = first if len(known[first]) > 1 else second
    held_axis = second if line_axis == first else first
    wanted = {"batch": facts.reference_local_batch, "gpus": domain.n_gpus[0]}.get(held_axis)
    held = _reference(known[held_axis], wanted)
    ends = (known[line_axis][0], known[line_axis][len(known[line_axis]) // 2], known[line_axis][-1])
    items = list(dict.fromkeys(ends)) if known[line_axis] else [None]
    intro = f"Held fixed: {words(held_axis, held) if held is not None else 'clock not locked'}."
    return Slice(axis, line_axis, tuple((item, ()) for item in items), (), intro, clocks, held_axis, held,
                 domain.accum_steps[0])  # fmt: skip


def _reference(known: Sequence[float], wanted: float | None) -> float | None:
    if not known:
        return None
    return float(wanted) if wanted in known and wanted is not None else float(known[-1])
