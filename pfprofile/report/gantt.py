"""The Gantt chart: nodes and their GPUs downwards, time across, the clock as colour, the job as text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING

from pfprofile.report.occupancy import occupancy_panel
from pfprofile.report.parts import Panel, columns_of, shorten, spread_evenly
from pfprofile.report.schedule_file import Schedule, Segment, split_gpu
from pfprofile.report.svg import LEFT, RIGHT, WIDE, canvas, to_svg
from pfprofile.report.theme import clock_role, color
from pfprofile.report.time_axis import TimeScale, time_ticks
from pfprofile.units import format_clock, format_duration

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: above either, single bars can no longer be read and the chart shows how full each node is instead
MOST_LANES, MOST_BARS = 256, 1500


@dataclass(frozen=True, slots=True)
class Lanes:
    """Where each GPU is drawn: nodes in natural order, their GPUs below each other."""

    nodes: tuple[str, ...]
    first: dict[str, int]
    count: dict[str, int]

    @classmethod
    def of(cls, schedule: Schedule) -> Lanes:
        """Lanes for every GPU that any segment uses; a node gets as many as its highest index says."""
        count: dict[str, int] = {}
        for segment in schedule.segments:
            for gpu in segment.gpus:
                node, index = split_gpu(gpu)
                count[node] = max(count.get(node, 0), index + 1)
        nodes = tuple(sorted(count, key=natural))
        first, total = {}, 0
        for node in nodes:
            first[node] = total
            total += count[node]
        return cls(nodes, first, count)

    @property
    def total(self) -> int:
        """Number of GPU lanes."""
        return sum(self.count.values())


def natural(text: str) -> list[tuple[int, int, str]]:
    """Sort key that puts ``node-2`` before ``node-10``."""
    runs = ("".join(run) for _, run in groupby(text, str.isdecimal))
    return [(0, int(run), "") if run.isdecimal() else (1, 0, run) for run in runs]


@dataclass(frozen=True, slots=True)
class Bar:
    """One segment on neighbouring GPUs of a node: lanes ``lane`` to ``lane + height``."""

    segment: Segment
    lane: int
    height: int


def bars_of(schedule: Schedule, lanes: Lanes) -> list[Bar]:
    """Each segment as one bar for every run of neighbouring GPUs."""
    bars = []
    owner = [node for node in lanes.nodes for _ in range(lanes.count[node])]
    for segment in schedule.segments:
        spots = sorted(lanes.first[node] + index for node, index in map(split_gpu, segment.gpus))
        start = 0
        for i in range(1, len(spots) + 1):
            broken = i == len(spots) or spots[i] != spots[i - 1] + 1 or owner[spots[i]] != owner[spots[i - 1]]
            if broken:
                bars.append(Bar(segment, spots[start], i - start))
                start = i
    return bars


def gantt(schedule: Schedule, prefix: str) -> Panel:
    """The chart, or words where the schedule places nothing."""
    title = "Who runs where, at which clock"
    lanes = Lanes.of(schedule)
    if not lanes.total:
        return Panel(title, "The schedule names no GPUs, so there is nothing to place.", wide=True)
    if lanes.total > MOST_LANES or len(bars := bars_of(schedule, lanes)) > MOST_BARS:
        return occupancy_panel(schedule, lanes.nodes, lanes.count, prefix)
    lane_px = min(14.0, max(5.0, 420 / lanes.total))
    gap_px = 6.0
    height = int(lanes.total * lane_px + len(lanes.nodes) * gap_px) + 78
    figure, axes = canvas(WIDE, height, left=LEFT, right=RIGHT, top=34, bottom=44)
    scale = TimeScale.of(max(s.end_s for s in schedule.segments))
    clocks = [s.sm_clock_mhz for s in schedule.segments if s.sm_clock_mhz is not None]
    ends = (min(clocks), max(clocks)) if clocks else (0.0, 0.0)
    tops = {node: i * gap_px + lanes.first[node] * lane_px for i, node in enumerate(lanes.nodes)}
    begin = min(0.0, *(s.start_s for s in schedule.segments))
    axes.set_xlim(begin / scale.unit_s, max(s.end_s for s in schedule.segments) / scale.unit_s)
    axes.set_ylim(height - 78, -gap_px / 2)
    px_per_unit = (WIDE - LEFT - RIGHT) / (axes.get_xlim()[1] - axes.get_xlim()[0])
    lane_node = [node for node in lanes.nodes for _ in range(lanes.count[node])]
    for bar in bars:
        node = lane_node[bar.lane]
        top = tops[node] + (bar.lane - lanes.first[node]) * lane_px
        _draw_bar(axes, bar, top, bar.height * lane_px, scale, px_per_unit, ends)
    for node in lanes.nodes:
        axes.annotate(shorten(node, 13), (0, tops[node] + lanes.count[node] * lane_px / 2), xytext=(-8, 0), ha="right",
                      va="center", xycoords=axes.get_yaxis_transform(), textcoords="offset points")  # fmt: skip
    axes.set_yticks([])
    axes.grid(False)
    axes.spines["left"].set_visible(False)
    time_ticks(axes, scale)
    _clock_key(axes, sorted(set(clocks)), ends, any(s.kind == "rescale" for s in schedule.segments))
    description = _describe(schedule, lanes)
    return Panel(title, description, to_svg(figure, f"{prefix}-gantt", title, description), wide=True)


def _draw_bar(axes: Axes, bar: Bar, top: float, height: float, scale: TimeScale, px_per_unit: float,
              ends: tuple[float, float]) -> None:  # fmt: skip
    from matplotlib.patches import Rectangle

    segment = bar.segment
    start, width = segment.start_s / scale.unit_s, (segment.end_s - segment.start_s) / scale.unit_s
    role = clock_role(segment.sm_clock_mhz, *ends)
    rescale = segment.kind == "rescale"
    axes.add_patch(Rectangle(
        (start, top), width, height, linewidth=0.8, edgecolor=color(role if rescale else "surface"),
        facecolor="none" if rescale else color(role), hatch="/////" if rescale else None,
        gid="mark-rescale" if rescale else "mark-run",
    ))  # fmt: skip
    if rescale or height < 11:
        return
    room = int((width * px_per_unit - 8) / 6.6)
    if room < 3:
        return
    clock = "" if segment.sm_clock_mhz is None else f" {segment.sm_clock_mhz:g}"
    name = shorten(segment.job, room)
    text = name + clock if columns_of(name + clock) <= room and name == segment.job else name
    axes.annotate(text, (start, top + height / 2), xytext=(4, 0), textcoords="offset points", va="center",
                  fontsize=10.5, color=color(f"on-{role}"), annotation_clip=False)  # fmt: skip


def _clock_key(axes: Axes, clocks: Sequence[float], ends: tuple[float, float], rescales: bool) -> None:
    """The scale of clocks above the chart, with its numbers."""
    entries = [("■", clock_role(c, *ends), format_clock(c)) for c in spread_evenly(clocks, 8)]
    if rescales:
        entries.append(("▨", "muted", "restart, no progress"))
    x = 0.0
    for sign, role, words in entries:
        for offset, text, shade in ((0, sign, role), (14, words, "muted")):
            axes.annotate(text, (0, 1), xytext=(x + offset, 12), xycoords="axes fraction", color=color(shade),
                          textcoords="offset points", fontsize=10.5)  # fmt: skip
        x += 30 + 6.6 * len(words)


def _describe(schedule: Schedule, lanes: Lanes) -> str:
    end = max(s.end_s for s in schedule.segments)
    rescales = sum(s.kind == "rescale" for s in schedule.segments)
    where = f"{lanes.total} GPUs of {len(lanes.nodes)} nodes"
    what = f"{len(schedule.segments) - rescales} runs, {rescales} restarts"
    return f"{len(schedule.jobs)} jobs on {where}, {format_duration(end)}: {what}. The table of jobs has all times."
