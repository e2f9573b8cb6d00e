"""Residuals: how far each measured trial lies from the model, against every axis."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from pfprofile.errors import InputError
from pfprofile.model.fitted import FittedModel
from pfprofile.model.points import Bools, Floats, Points
from pfprofile.report.asking import predict_under
from pfprofile.report.axes import NAMES, value
from pfprofile.report.parts import Columns, Group, Panel, table
from pfprofile.report.svg import WIDE, to_svg
from pfprofile.report.theme import color
from pfprofile.units import format_clock, format_duration, format_power

if TYPE_CHECKING:
    from matplotlib.axes import Axes

HEIGHT = 200
_WORST: Columns = {
    "n_gpus": ("GPUs", str),
    "n_nodes": ("nodes", str),
    "local_batch": ("batch", str),
    "requested_clock_mhz": ("SM clock", format_clock),
    "power_limit_w": ("power limit", format_power),
    "step_time_s": ("step time", format_duration),
    "time_off": ("time, measured − model", lambda v: f"{100 * v:+.1f} %"),
    "power_w": ("power of one GPU", format_power),
    "power_off": ("power, measured − model", lambda v: f"{100 * v:+.1f} %"),
}
_KEY = (("ok", "a trial inside its 90 % interval"), ("outlier", "a trial outside it"))


@dataclass(frozen=True, slots=True)
class Residuals:
    """Measured over model − 1 of one quantity, (m,), and whether the measurement lies outside its interval."""

    title: str
    off: Floats
    outside: Bools


def residual_group(model: FittedModel, rows: Sequence[dict[str, Any]], prefix: str) -> Group:
    """The pictures and the worst trials; words where there is no profile."""
    title = "Residuals"
    ok = [row for row in rows if row["status"] == "ok" and row["step_time_s"]]
    if not ok:
        return Group(title, "Residuals need the measured points: give the profile beside the model.")
    try:
        found = residuals(model, ok)
    except InputError as error:
        return Group(title, f"The model does not speak about the points of this profile: {error}")
    panels = tuple(_panel(part, ok, f"{prefix}-off-{i}") for i, part in enumerate(found))
    off = {f"{name}_off": part.off for name, part in zip(("time", "power"), found, strict=True)}
    numbers = [{**row, **{k: float(v[i]) for k, v in off.items()}} for i, row in enumerate(ok)]
    numbers.sort(key=lambda row: -max(abs(row[k]) for k in off if not math.isnan(row[k])))
    return Group(title, "", panels, (table("The numbers: residuals, the largest first", numbers, _WORST),), key=_KEY)


def residuals(model: FittedModel, ok: Sequence[dict[str, Any]]) -> tuple[Residuals, Residuals]:
    """Step time and power of finished trials against the model.

    Raises:
        InputError: the model cannot speak about some of the points.
    """
    clock = [math.nan if row["requested_clock_mhz"] is None else row["requested_clock_mhz"] for row in ok]
    points = Points.of(
        [row["n_gpus"] for row in ok], [row["local_batch"] for row in ok], n_nodes=[row["n_nodes"] for row in ok],
        accum_steps=[row["accum_steps"] for row in ok], sm_clock_mhz=clock,
    )  # fmt: skip
    limits = np.array([math.nan if row["power_limit_w"] is None else row["power_limit_w"] for row in ok])
    said = predict_under(model, points, limits)
    time_s = np.array([row["step_time_s"] for row in ok], dtype=np.float64)
    power_w = np.array([math.nan if row["power_w"] is None else row["power_w"] for row in ok], dtype=np.float64)
    return (
        Residuals("Step time, measured − model", time_s / said.step_time_s - 1,
                  (time_s < said.step_time_lo_s) | (time_s > said.step_time_hi_s)),
        Residuals("Power of one GPU, measured − model", power_w / said.power_w - 1,
                  (power_w < said.power_lo_w) | (power_w > said.power_hi_w)),
    )  # fmt: skip


def _panel(part: Residuals, ok: Sequence[dict[str, Any]], key: str) -> Panel:
    known = np.isfinite(part.off)
    if not known.any():
        return Panel(part.title, "Power is unknown in these trials or in the model, so there is nothing to compare.",
                     wide=True)  # fmt: skip
    from matplotlib.figure import Figure

    axes_shown = [axis for axis in NAMES if len({value(row, axis) for row in ok} - {None}) > 1] or ["batch"]
    figure = Figure(figsize=(WIDE / 72, HEIGHT / 72))
    top = max(0.02, float(np.max(np.abs(part.off[known])))) * 115
    pitch = min((WIDE - 48) / len(axes_shown), 426.0)
    for i, axis in enumerate(axes_shown):
        place = ((46 + i * pitch) / WIDE, 42 / HEIGHT, (pitch - 14) / WIDE, (HEIGHT - 66) / HEIGHT)
        axes = figure.add_axes(place)
        _draw(axes, part, ok, axis)
        axes.set_ylim(-top, top)
        axes.set_xlabel(NAMES[axis].label)
        if i > 0:
            axes.tick_params(labelleft=False)
        else:
            axes.set_title("%", loc="left", fontsize=10.5, color=color("muted"), x=-27 / (pitch - 14), pad=8)
    description = _describe(part, known)
    return Panel(part.title, description, to_svg(figure, key, part.title, description), wide=True)


def _draw(axes: Axes, part: Residuals, ok: Sequence[dict[str, Any]], axis: str) -> None:
    from matplotlib.ticker import FuncFormatter, MaxNLocator, NullLocator

    x = np.array([math.nan if (at := value(row, axis)) is None else at for row in ok])
    axes.axhline(0, color=color("muted"), linewidth=0.9)
    for outside, sign, role in ((False, "o", "line-0"), (True, "D", "warn")):
        chosen = np.isfinite(x) & np.isfinite(part.off) & (part.outside == outside)
        if chosen.any():
            axes.plot(x[chosen], 100 * part.off[chosen], sign, color=color(role), markersize=4, alpha=0.7,
                      markeredgewidth=0.8 if outside else 0, fillstyle="none" if outside else "full",
                      gid="mark-outlier" if outside else "mark-residual")  # fmt: skip
    if axis in ("batch", "gpus"):
        axes.set_xscale("log", base=2)
        axes.xaxis.set_major_formatter(FuncFormatter(lambda v, _: f"{v:,.4g}"))
        axes.xaxis.set_minor_locator(NullLocator())
    axes.yaxis.set_major_locator(MaxNLocator(nbins=5, steps=[1, 2, 2.5, 5, 10]))


def _describe(part: Residuals, known: Bools) -> str:
    off, inside = np.abs(part.off[known]), int(np.sum(known & ~part.outside))
    count = int(known.sum())
    return (f"{inside} of {count} trials ({100 * inside / count:.0f} %) lie inside their 90 % interval; "
            f"mean {100 * off.mean():.2f} %, largest {100 * off.max():.1f} % off.")  # fmt: skip
