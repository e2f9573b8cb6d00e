"""How full the nodes are over time: the Gantt chart of schedules too large to show single jobs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from pfprofile.report.parts import Panel, shorten
from pfprofile.report.schedule_file import Schedule, split_gpu
from pfprofile.report.svg import LEFT, RIGHT, WIDE, canvas, to_svg
from pfprofile.report.theme import color
from pfprofile.report.time_axis import TimeScale, time_ticks
from pfprofile.units import format_duration

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MOST_ROWS, TIMES, LEVELS = 64, 240, 5


@dataclass(frozen=True, slots=True)
class Occupancy:
    """Share of the GPUs of each row in use, mean over equal times.

    Attributes:
        rows: label of each row, a node or a run of nodes.
        share: (rows, TIMES), 0 to 1.
        begin_s, end_s: the span of time.
    """

    rows: tuple[str, ...]
    share: NDArray[np.float64]
    begin_s: float
    end_s: float


def occupancy(schedule: Schedule, nodes: tuple[str, ...], gpus: dict[str, int]) -> Occupancy:
    """Add up the segments.

    Args:
        nodes: in the order to draw.
        gpus: GPUs of each node.
    """
    per_row = -(-len(nodes) // MOST_ROWS)
    row_of = {node: i // per_row for i, node in enumerate(nodes)}
    bundles = [nodes[i : i + per_row] for i in range(0, len(nodes), per_row)]
    begin = min(s.start_s for s in schedule.segments)
    end = max(s.end_s for s in schedule.segments)
    step = (end - begin) / TIMES or 1.0
    # GPU-steps by prefix sums: a segment adds to the slope where it starts and takes away where it ends.
    busy = np.zeros((len(bundles), TIMES))
    for segment in schedule.segments:
        counts: dict[int, int] = {}
        for gpu in segment.gpus:
            row = row_of[split_gpu(gpu)[0]]
            counts[row] = counts.get(row, 0) + 1
        first, last = (segment.start_s - begin) / step, (segment.end_s - begin) / step
        i, j = min(int(first), TIMES - 1), min(int(last), TIMES - 1)
        cover = np.ones(j - i + 1)
        cover[0] -= first - i
        cover[-1] -= j + 1 - last
        for row, count in counts.items():
            busy[row, i : j + 1] += count * cover
    sizes = np.array([sum(gpus[node] for node in bundle) for bundle in bundles], dtype=np.float64)
    labels = tuple(bundle[0] if len(bundle) == 1 else f"{bundle[0]} … {bundle[-1]}" for bundle in bundles)
    return Occupancy(labels, np.clip(busy / sizes[:, None], 0.0, 1.0), begin, end)


def occupancy_panel(schedule: Schedule, nodes: tuple[str, ...], gpus: dict[str, int], prefix: str) -> Panel:
    """The picture."""
    found = occupancy(schedule, nodes, gpus)
    title = "How full the nodes are"
    rows = len(found.rows)
    pitch = min(16.0, max(7.0, 420 / rows))
    height = int(rows * pitch) + 78
    figure, axes = canvas(WIDE, height, left=LEFT, right=RIGHT, top=34, bottom=44)
    scale = TimeScale.of(found.end_s)
    _draw(axes, found, scale)
    every = max(1, round(14 / pitch))
    labels = [shorten(label, 13) for label in found.rows[::every]]
    axes.set_yticks(range(0, rows, every), labels)
    axes.grid(False)
    axes.spines["left"].set_visible(False)
    time_ticks(axes, scale)
    _key_above(axes)
    mean = 100 * float(np.mean(found.share))
    description = (
        f"{len(schedule.segments)} segments of {len(schedule.jobs)} jobs on {sum(gpus.values())} GPUs of {len(nodes)} "
        f"nodes over {format_duration(found.end_s - found.begin_s)}: too many to draw one by one, so the colour says "
        f"what share of a row's GPUs is in use; {mean:.0f} % on the whole."
    )
    return Panel(title, description, to_svg(figure, f"{prefix}-gantt", title, description), wide=True)


def _draw(axes: Axes, found: Occupancy, scale: TimeScale) -> None:
    """One path for each level, equal neighbours joined, so that the page stays small."""
    from matplotlib.patches import PathPatch
    from matplotlib.path import Path

    level = np.ceil(found.share * LEVELS - 1e-9).astype(np.int64)
    edges = np.linspace(found.begin_s, found.end_s, TIMES + 1) / scale.unit_s
    axes.set_xlim(edges[0], edges[-1])
    axes.set_ylim(len(found.rows) - 0.5, -0.5)
    for wanted in range(1, LEVELS + 1):
        paths = []
        for y in range(len(found.rows)):
            inside = np.flatnonzero(np.diff(np.concatenate([[0], (level[y] == wanted).astype(np.int64), [0]])))
            for i, j in inside.reshape(-1, 2):
                corners = [(edges[i], y - 0.42), (edges[j], y - 0.42), (edges[j], y + 0.42), (edges[i], y + 0.42)]
                paths.append(Path([*corners, corners[0]], closed=True))
        if paths:
            axes.add_patch(PathPatch(Path.make_compound_path(*paths), facecolor=color("line-0"), linewidth=0,
                                     alpha=wanted / LEVELS, gid="mark-occupancy"))  # fmt: skip


def _key_above(axes: Axes) -> None:
    for level in range(1, LEVELS + 1):
        x = (level - 1) * 92
        axes.annotate("■", (0, 1), xytext=(x, 12), xycoords="axes fraction", textcoords="offset points",
                      color=color("line-0"), alpha=level / LEVELS)  # fmt: skip
        words = f"{100 * (level - 1) // LEVELS}–{100 * level // LEVELS} %"
        axes.annotate(words, (0, 1), xytext=(x + 14, 12), xycoords="axes fraction", textcoords="offset points",
                      color=color("muted"), fontsize=10.5)  # fmt: skip
