"""The pictures of a model along one axis: curve, interval, and the measured trials where there are any."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from pfprofile.model.fitted import FittedModel
from pfprofile.model.points import Floats
from pfprofile.report.axes import NAMES, words
from pfprofile.report.curves import Curve
from pfprofile.report.lines import Line, draw_lines, label_ends
from pfprofile.report.parts import Columns, DataTable, Panel, table
from pfprofile.report.slice_panels import Quantity, marks_of, panel_canvas, quantities, scale_axes
from pfprofile.report.slices import Slice
from pfprofile.report.svg import to_svg
from pfprofile.report.theme import category, clock_role, color
from pfprofile.units import format_duration, format_energy, format_power

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_CURVE: Columns = {
    "line": ("line", str),
    "x": ("at", lambda v: f"{v:g}"),
    "step_time_s": ("step time", format_duration),
    "step_time_s_lo": ("low", format_duration),
    "step_time_s_hi": ("high", format_duration),
    "throughput_per_s": ("throughput /s", lambda v: f"{v:.4g}"),
    "power_w": ("power of one GPU", format_power),
    "power_w_lo": ("low", format_power),
    "power_w_hi": ("high", format_power),
    "energy_per_sample_j": ("energy a sample", format_energy),
    "energy_per_sample_j_lo": ("low", format_energy),
    "energy_per_sample_j_hi": ("high", format_energy),
    "extrapolated": ("extrapolated", lambda v: "yes" if v else "no"),
}


def curve_panels(model: FittedModel, part: Slice, curves: Sequence[Curve], prefix: str,
                 ) -> tuple[tuple[Panel, ...], tuple[tuple[str, str], ...], tuple[DataTable, ...]]:  # fmt: skip
    """Pictures, the key to their signs, and their numbers."""
    unit = model.document.facts.sample_unit
    panels = tuple(_panel(part, curves, quantity, prefix) for quantity in quantities(unit))
    key = [("line", "the model"), ("band", "its 90 % interval for a new measurement")]
    if any(rows for _, rows in part.lines):
        key.append(("ok", "a measured trial"))
    if any(bool(curve.extrapolated.any()) for curve in curves):
        key.append(("outside", "extrapolated: nothing was measured there"))
    return panels, tuple(key), (_table(part, curves),)


def _panel(part: Slice, curves: Sequence[Curve], quantity: Quantity, prefix: str) -> Panel:
    title = quantity.title
    every = np.concatenate([curve.values[quantity.column][0] for curve in curves])
    if not np.isfinite(every).any():
        return Panel(title, f"{title} is unknown: the profile of this model holds no power. Unknown is not zero, so "
                     "nothing is drawn.")  # fmt: skip
    unit, scale = quantity.scaled(float(np.nanmax(every)))
    figure, axes = panel_canvas(unit)
    ends = []
    for index, (curve, (item, rows)) in enumerate(zip(curves, part.lines, strict=True)):
        role = clock_role(item, *part.clocks_mhz) if part.line_axis == "clock" else category(index)
        _draw_curve(axes, curve, quantity.column, scale, role)
        label = words(part.line_axis, item)
        draw_lines(axes, [Line(label, role, marks_of(rows, part, quantity, scale))], connect=False)
        ends.append((float(curve.values[quantity.column][0][-1]) * scale, label, role))
    scale_axes(axes, part.axis, quantity)
    axes.set_xlabel(NAMES[part.axis].label)
    label_ends(axes, ends)
    description = _describe(part, curves, quantity.column, unit, scale)
    key = f"{prefix}-fit-{part.axis}-{quantity.column}"
    return Panel(title, description, to_svg(figure, key, f"{title}, the fit", description))


def _draw_curve(axes: Axes, curve: Curve, column: str, scale: float, role: str) -> None:
    value, low, high = (v * scale for v in curve.values[column])
    if np.isfinite(low).any():
        axes.fill_between(curve.x, low, high, color=color(role), alpha=0.16, linewidth=0, gid="mark-interval")
    axes.plot(curve.x, np.where(curve.extrapolated, np.nan, value), color=color(role), gid="mark-curve")
    if curve.extrapolated.any():
        # The stretch into the unmeasured starts at the last measured point, so that no gap is left.
        near = curve.extrapolated | np.roll(curve.extrapolated, 1) | np.roll(curve.extrapolated, -1)
        axes.plot(curve.x, np.where(near, value, np.nan), color=color(role), linestyle=(0, (2, 2)),
                  linewidth=1.2, gid="mark-extrapolated")  # fmt: skip


def _describe(part: Slice, curves: Sequence[Curve], column: str, unit: str, scale: float) -> str:
    parts = []
    for curve in curves:
        value, low, high = (v * scale for v in curve.values[column])
        ends = [f"{value[i]:.4g} {unit} ({low[i]:.4g} to {high[i]:.4g}) at {curve.x[i]:g}" for i in (0, -1)]
        parts.append(f"{words(part.line_axis, curve.item)}: {', '.join(ends)}")
    return f"Across: {NAMES[part.axis].label}. {'; '.join(parts)}. {part.intro}"


def _table(part: Slice, curves: Sequence[Curve]) -> DataTable:
    rows: list[dict[str, Any]] = []
    far = any(bool(curve.extrapolated.any()) for curve in curves)
    for curve in curves:
        for i in _some(curve.x):
            row: dict[str, Any] = {"line": words(part.line_axis, curve.item), "x": float(curve.x[i])}
            for column, (value, low, high) in curve.values.items():
                row |= {column: float(value[i]), f"{column}_lo": float(low[i]), f"{column}_hi": float(high[i])}
            rows.append({**row, "extrapolated": bool(curve.extrapolated[i]) if far else None})
    columns = {**_CURVE, "x": (NAMES[part.axis].label, _CURVE["x"][1])}
    return table(f"The numbers: the fit {part.title[0].lower()}{part.title[1:]}", rows, columns)


def _some(x: Floats) -> list[int]:
    """About a dozen places along a curve, both ends among them."""
    return sorted({round(i * (len(x) - 1) / 11) for i in range(12)}) if len(x) > 12 else list(range(len(x)))
