"""The pictures of one cut through a profile."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pfprofile.report.axes import NAMES, short_words, value
from pfprofile.report.lines import Line, Mark, draw_failures, draw_lines, label_ends
from pfprofile.report.parts import Panel
from pfprofile.report.slices import Slice, fewest_nodes
from pfprofile.report.svg import canvas, to_svg
from pfprofile.report.theme import category, clock_role, color

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

THROTTLED = ("power", "thermal", "hardware")


@dataclass(frozen=True, slots=True)
class Quantity:
    """What is drawn upwards: its column, title, unit, and how its spread is known."""

    column: str
    title: str
    unit: str
    spread: Callable[[dict[str, Any]], float | None] = lambda row: None

    def scaled(self, largest: float) -> tuple[str, float]:
        """The unit to draw in and the factor to it: thousandths where all is small."""
        return (f"m{self.unit}", 1e3) if self.unit in ("s", "J") and largest < 1.0 else (self.unit, 1.0)


def quantities(unit: str) -> tuple[Quantity, ...]:
    """The four pictures of a cut, for a workload whose sample is called ``unit``."""
    return (
        Quantity("step_time_s", "Step time", "s", lambda row: row["step_time_std_s"]),
        Quantity("throughput_per_s", "Throughput", f"{unit}s/s"),
        Quantity("power_w", "Power of one GPU", "W", lambda row: _half(row["power_spread_w"])),
        Quantity("energy_per_sample_j", f"GPU energy per {unit}", "J"),
    )


def _half(spread: float | None) -> float | None:
    return None if spread is None else spread / 2


def panels_of(part: Slice, unit: str, prefix: str) -> tuple[tuple[Panel, ...], tuple[tuple[str, str], ...]]:
    """The pictures of a cut and the key to the shapes in them; no pictures where the cut is empty."""
    if not part.lines:
        return (), ()
    panels = tuple(_panel(part, quantity, prefix) for quantity in quantities(unit))
    trials = [row for _, rows in part.lines for row in rows]
    key = [("ok", "a trial; the line joins the medians")]
    if any(row["limited_by"] in THROTTLED for row in trials):
        key.append(("throttled", "throttled: the clock asked for was not held"))
    if part.axis == "clock" and any(_missed(row) for row in trials):
        key.append(("requested", "the clock that was asked for"))
    if part.axis == "gpus" and _wider(trials):
        key.append(("wider", "on more nodes than needed"))
    if any(row["step_time_std_s"] is not None or row["power_spread_w"] is not None for row in trials):
        key.append(("spread", "time: ± std between windows; power: lowest to highest GPU"))
    if part.failed:
        key.append(("failed", "failed trial"))
    return panels, tuple(key)


def _missed(row: dict[str, Any]) -> bool:
    asked, got = row["requested_clock_mhz"], row["achieved_clock_mhz"]
    return asked is not None and got is not None and abs(asked - got) > 0.01 * asked


def _wider(trials: Sequence[dict[str, Any]]) -> set[tuple[int, int]]:
    least = fewest_nodes(trials)
    return {(row["n_gpus"], row["n_nodes"]) for row in trials if row["n_nodes"] > least[row["n_gpus"]]}


def _mark(row: dict[str, Any], part: Slice, quantity: Quantity, scale: float, wider: set[tuple[int, int]]) -> Mark:
    x = value(row, part.axis)
    assert x is not None
    asked = None
    if part.axis == "clock" and _missed(row):
        asked, x = x, float(row["achieved_clock_mhz"])
    y = row[quantity.column] * scale
    spread = quantity.spread(row)
    shape = "throttled" if row["limited_by"] in THROTTLED else "ok"
    if part.axis == "gpus" and (row["n_gpus"], row["n_nodes"]) in wider:
        shape = "wider"
    low, high = (None, None) if spread is None else (y - spread * scale, y + spread * scale)
    return Mark(x, y, low, high, asked, shape)


def marks_of(rows: Sequence[dict[str, Any]], part: Slice, quantity: Quantity, scale: float) -> tuple[Mark, ...]:
    """The trials that know this quantity, as marks in order of x; times ``scale``."""
    wider = _wider([row for _, trials in part.lines for row in trials])
    marks = [_mark(row, part, quantity, scale, wider) for row in rows if row[quantity.column] is not None]
    return tuple(sorted(marks, key=lambda mark: mark.x))


def panel_canvas(unit: str) -> tuple[Figure, Axes]:
    """A small picture with its unit above the vertical axis."""
    figure, axes = canvas(300, 225, left=48, right=66, top=24, bottom=40)
    axes.set_title(unit, loc="left", fontsize=10.5, color=color("muted"), x=-0.16, pad=8)
    return figure, axes


def _panel(part: Slice, quantity: Quantity, prefix: str) -> Panel:
    known = [row[quantity.column] for _, rows in part.lines for row in rows if row[quantity.column] is not None]
    if not known:
        return Panel(quantity.title, f"{quantity.title} is unknown in these trials: no sensor reported power. "
                     "Unknown is not zero, so nothing is drawn.")  # fmt: skip
    unit, scale = quantity.scaled(max(known))
    lines = []
    for index, (item, rows) in enumerate(part.lines):
        role = clock_role(item, *part.clocks_mhz) if part.line_axis == "clock" else category(index)
        marks = marks_of(rows, part, quantity, scale)
        if marks:
            lines.append(Line(short_words(part.line_axis, item), role, marks))
    figure, axes = panel_canvas(unit)
    draw_lines(axes, lines)
    scale_axes(axes, part.axis, quantity)
    draw_failures(axes, [(value(row, part.axis) or 0.0, row["status"]) for row in part.failed])
    axes.set_xlabel(NAMES[part.axis].label)
    label_ends(axes, [(line.marks[-1].y, line.label, line.role) for line in lines])
    description = _describe(lines, unit, NAMES[part.axis].label, part.intro)
    title = f"{quantity.title} {part.title[0].lower()}{part.title[1:]}"
    return Panel(
        quantity.title, description, to_svg(figure, f"{prefix}-{part.axis}-{quantity.column}", title, description)
    )


def scale_axes(axes: Axes, axis: str, quantity: Quantity) -> None:
    """Doublings across for batch and GPUs; upwards from zero, or by factors where factors are what counts."""
    from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullLocator

    plain = FuncFormatter(lambda v, _: f"{v:,.4g}" if abs(v) < 1e4 else f"{v:,.0f}")
    if axis in ("batch", "gpus"):
        axes.set_xscale("log", base=2)
        axes.xaxis.set_major_formatter(plain)
        axes.xaxis.set_minor_locator(NullLocator())
    else:
        axes.xaxis.set_major_locator(MaxNLocator(nbins=4, steps=[1, 2, 2.5, 5, 10]))
    if quantity.column == "throughput_per_s" and axis == "gpus":
        axes.set_yscale("log")
        axes.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
        axes.yaxis.set_minor_locator(NullLocator())
    else:
        axes.set_ylim(bottom=0)
        axes.yaxis.set_major_locator(MaxNLocator(nbins=5, steps=[1, 2, 2.5, 5, 10]))
    axes.yaxis.set_major_formatter(plain)


def _describe(lines: Sequence[Line], unit: str, x_label: str, intro: str) -> str:
    parts = []
    for line in lines:
        first, last = line.marks[0], line.marks[-1]
        parts.append(f"{line.label}: {first.y:.4g} {unit} at {first.x:g}, {last.y:.4g} {unit} at {last.x:g}")
    return f"Across: {x_label}. " + "; ".join(parts) + f". {intro}"
