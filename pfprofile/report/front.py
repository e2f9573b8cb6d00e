"""Time against energy of one job: what each GPU count and clock gives, the Pareto front, and what `pick` chooses."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from pfprofile.errors import InfeasibleError, InputError
from pfprofile.model.fitted import FittedModel
from pfprofile.model.pick import Choice, Limits, candidates, clocks_to_try, pick
from pfprofile.model.points import Bools, Floats, Predictions
from pfprofile.report.axes import words
from pfprofile.report.parts import Columns, Group, Panel, spread_evenly, table
from pfprofile.report.svg import WIDE, canvas, to_svg
from pfprofile.report.theme import clock_role, color
from pfprofile.units import format_clock, format_duration, format_energy

if TYPE_CHECKING:
    from matplotlib.axes import Axes

HEIGHT = 390
MOST_CLOCKS = 28
_PICKS: Columns = {
    "command": ("choice", str),
    "n_gpus": ("GPUs", str),
    "local_batch": ("batch", str),
    "sm_clock_mhz": ("SM clock", format_clock),
    "time_s": ("time", format_duration),
    "energy_j": ("GPU energy", format_energy),
    "energy_saved": ("energy saved", lambda v: f"{100 * v:.1f} %"),
    "saved_between": ("90 % interval", str),
    "time_added": ("time added", lambda v: f"{100 * v:.1f} %"),
}
_FRONT: Columns = {
    "n_gpus": ("GPUs", str),
    "local_batch": ("batch", str),
    "sm_clock_mhz": ("SM clock", format_clock),
    "time_s": ("time", format_duration),
    "energy_j": ("GPU energy", format_energy),
    "front": ("on the front", lambda v: "yes" if v else "no"),
}


@dataclass(frozen=True, slots=True)
class Work:
    """The work that the picture is about: samples, and what to call them."""

    samples: float
    words: str

    @classmethod
    def of(cls, model: FittedModel) -> Work:
        """One epoch where it is known, else a million samples."""
        facts = model.document.facts
        if facts.samples_per_epoch:
            return cls(float(facts.samples_per_epoch), f"one epoch ({facts.samples_per_epoch:,} {facts.sample_unit}s)")
        return cls(1e6, f"a million {facts.sample_unit}s")


def front_group(model: FittedModel, prefix: str) -> Group:
    """The picture, the choices and the points of the front."""
    title = "Time against energy"
    if not model.has_power:
        return Group(
            title, "Energy is unknown: the profile of this model holds no power, so there is no front to draw."
        )
    work = Work.of(model)
    clocks = np.array(spread_evenly(list(clocks_to_try(model)), MOST_CLOCKS))
    try:
        found = model.predict(candidates(model, model.document.domain.n_gpus, None, clocks))
    except InputError as error:
        return Group(title, f"The model does not speak about these points: {error}")
    if len(found.points) < 2:
        return Group(title, "The model knows one GPU count and one clock, so there is nothing to choose.")
    time_s, energy_j = cost(found, work)
    front = pareto(time_s, energy_j)
    choices = _choices(model)
    panel = _panel(found, work, front, choices, f"{prefix}-front")
    intro = f"The cost of {work.words} at batch {found.points.local_batch[0]} per GPU, GPU energy only."
    tables = (
        table("The choices of pick, against the default clock", [_row(c, n, work) for n, c in choices], _PICKS),
        table("The numbers: the front", _front_rows(found, time_s, energy_j, front), _FRONT),
    )
    key = (("line", "one GPU count over its clocks"), ("front", "Pareto front"), ("picked", "what pick chooses"),
           ("default", "the default clock there"))  # fmt: skip
    return Group(title, intro, (panel,), tables, key=key)


def cost(found: Predictions, work: Work) -> tuple[Floats, Floats]:
    """Time, s, and GPU energy, J, of the work at each point."""
    points = found.points
    samples = points.n_gpus * points.local_batch * points.accum_steps
    return work.samples / found.throughput_per_s, found.energy_per_step_j * work.samples / samples


def pareto(time_s: Floats, energy_j: Floats) -> Bools:
    """Which points no other one beats in both time and energy."""
    on = np.zeros(len(time_s), dtype=np.bool_)
    least = np.inf
    for i in np.lexsort((energy_j, time_s)):
        if energy_j[i] < least:
            on[i], least = True, energy_j[i]
    return on


def _choices(model: FittedModel) -> list[tuple[str, Choice]]:
    out = []
    for command, objective, limits in (
        ("pick", "energy", Limits()), ("pick --max-slowdown 5%", "energy", Limits(max_slowdown=0.05)),
    ):  # fmt: skip
        try:
            out.append((command, pick(model, candidates(model, None, None, None), objective, limits)))
        except (InputError, InfeasibleError):
            continue  # nothing to choose under these limits; the picture shows the points all the same
    return out


def _panel(found: Predictions, work: Work, front: Bools, choices: list[tuple[str, Choice]], key: str) -> Panel:
    time_s, energy_j = cost(found, work)
    unit_t, per_t = (
        ("h", 3600.0) if np.median(time_s) > 3600 else ("min", 60.0) if np.median(time_s) > 90 else ("s", 1.0)
    )
    unit_e, per_e = (
        ("kWh", 3.6e6) if energy_j.max() > 3.6e6 else ("Wh", 3.6e3) if energy_j.max() > 3.6e3 else ("J", 1.0)
    )
    figure, axes = canvas(WIDE, HEIGHT, left=64, right=30, top=30, bottom=44)
    x, y = time_s / per_t, energy_j / per_e
    order = np.flatnonzero(front)[np.argsort(x[front])]
    axes.plot(x[order], y[order], color=color("muted"), linewidth=7, alpha=0.28, gid="mark-front")
    clocks = found.points.sm_clock_mhz
    known = clocks[np.isfinite(clocks)]
    ends = (float(known.min()), float(known.max())) if len(known) else (0.0, 0.0)
    for n in np.unique(found.points.n_gpus):
        mine = np.flatnonzero(found.points.n_gpus == n)
        _one_count(axes, x[mine], y[mine], clocks[mine], ends, int(n), bool(found.extrapolated[mine].any()))
    axes.set_xscale("log")
    _log_ticks(axes)
    axes.margins(x=0.06, y=0.12)
    for clock, commands, choice in _same(choices):
        _mark(axes, f"{commands}: {format_clock(clock)}", choice, work, per_t, per_e)
    axes.set_xlabel(f"time ({unit_t})")
    axes.set_ylabel(f"GPU energy ({unit_e})")
    if len(known) > 1:
        _clock_scale(axes, known, ends)
    description = _describe(choices, work, front)
    return Panel("Every GPU count and clock, the front and the choice", description,
                 to_svg(figure, key, "Time against energy", description), wide=True)  # fmt: skip


def _one_count(axes: Axes, x: Floats, y: Floats, clocks: Floats, ends: tuple[float, float], n: int, far: bool) -> None:
    axes.plot(x, y, color=color("muted"), linewidth=0.9, linestyle=(0, (2, 2)) if far else "-")
    for role in dict.fromkeys(clock_role(None if np.isnan(f) else float(f), *ends) for f in clocks):
        chosen = [i for i, f in enumerate(clocks) if clock_role(None if np.isnan(f) else float(f), *ends) == role]
        axes.plot(x[chosen], y[chosen], "o", color=color(role), markersize=5, markeredgewidth=0, gid="mark-point")
    lowest = int(np.argmin(y))
    axes.annotate(f"{n} GPU{'' if n == 1 else 's'}", (x[lowest], y[lowest]), xytext=(0, -18), ha="center",
                  textcoords="offset points", fontsize=10.5, color=color("muted"), gid="mark-label")  # fmt: skip


def _same(choices: list[tuple[str, Choice]]) -> list[tuple[float, str, Choice]]:
    """Choices with those joined that fall on one point: (clock, names, choice)."""
    found: dict[float, tuple[str, Choice]] = {}
    for command, choice in choices:
        clock = float(choice.chosen.points.sm_clock_mhz[0])
        found[clock] = (f"{found[clock][0]}, {command}", choice) if clock in found else (command, choice)
    return [(clock, *both) for clock, both in found.items()]


def _mark(axes: Axes, label: str, choice: Choice, work: Work, per_t: float, per_e: float) -> None:
    for found, gid in ((choice.default, "mark-default"), (choice.chosen, "mark-picked")):
        (time_s,), (energy_j,) = cost(found, work)
        picked = gid == "mark-picked"
        axes.plot([time_s / per_t], [energy_j / per_e], "D" if picked else "o", markersize=9, fillstyle="none",
                  color=color("warn" if picked else "ink"), markeredgewidth=1.5, gid=gid)  # fmt: skip
    at = (time_s / per_t, energy_j / per_e)
    # Names go to the side where there is room.
    right = float(axes.transAxes.inverted().transform(axes.transData.transform(at))[0]) < 0.62
    axes.annotate(label, at, xytext=(11 if right else -11, 8), textcoords="offset points", fontsize=10.5,
                  ha="left" if right else "right", color=color("warn"), gid="mark-label")  # fmt: skip


def _log_ticks(axes: Axes) -> None:
    from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

    axes.xaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(FuncFormatter(lambda v, _: f"{v:,.4g}"))


def _clock_scale(axes: Axes, known: Floats, ends: tuple[float, float]) -> None:
    x = 0.0
    for clock in spread_evenly(sorted(set(known.tolist())), 6):
        for offset, text, role in ((0, "●", clock_role(clock, *ends)), (14, format_clock(clock), "muted")):
            axes.annotate(text, (0, 1), xytext=(x + offset, 12), xycoords="axes fraction", color=color(role),
                          textcoords="offset points", fontsize=10.5)  # fmt: skip
        x += 84


def _row(choice: Choice, command: str, work: Work) -> dict[str, Any]:
    (time_s,), (energy_j,) = cost(choice.chosen, work)
    low, high = choice.energy_saved_lo, choice.energy_saved_hi
    return {
        **choice.row(), "command": command, "time_s": float(time_s), "energy_j": float(energy_j),
        "saved_between": None if np.isnan(low) else f"{100 * low:.1f} to {100 * high:.1f} %",
    }  # fmt: skip


def _front_rows(found: Predictions, time_s: Floats, energy_j: Floats, front: Bools) -> list[dict[str, Any]]:
    rows = [
        {**row, "time_s": float(time_s[i]), "energy_j": float(energy_j[i]), "front": bool(front[i])}
        for i, row in enumerate(found.rows())
    ]
    return sorted(rows, key=lambda row: (not row["front"], row["time_s"]))


def _describe(choices: list[tuple[str, Choice]], work: Work, front: Bools) -> str:
    parts = [f"{int(front.sum())} of {len(front)} points are on the front."]
    for command, choice in choices:
        (time_s,), (energy_j,) = cost(choice.chosen, work)
        parts.append(f"{command} takes {format_clock(float(choice.chosen.points.sm_clock_mhz[0]))} on "
                     f"{words('gpus', choice.chosen.points.n_gpus[0])}: {format_duration(float(time_s))}, "
                     f"{format_energy(float(energy_j))}, {100 * choice.energy_saved:.1f} % less energy and "
                     f"{100 * choice.time_added:.1f} % more time than the default clock.")  # fmt: skip
    return " ".join(parts)
