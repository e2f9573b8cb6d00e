"""A schedule in words and characters, for the terminal."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from pfprofile.cluster.nodes import Cluster
from pfprofile.units import format_duration, format_energy, format_power

JOB_CELLS: dict[str, tuple[str, Callable[[Any], str]]] = {
    "name": ("job", str),
    "gpus": ("GPUs", str),
    "clocks": ("SM MHz", str),
    "start_s": ("start", format_duration),
    "finish_s": ("finish", format_duration),
    "jct_s": ("JCT", format_duration),
    "energy_j": ("GPU energy", format_energy),
}
LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
WIDTH = 78


def summary(body: dict[str, Any]) -> str:
    """Totals, budget and bound, one a line."""
    totals, budget, bound = body["totals"], body["budget"], body["bound"]
    lines = [
        f"energy {format_energy(totals['energy_j'])} = GPUs {format_energy(totals['gpu_energy_j'])}"
        f" + idle GPUs {format_energy(totals['idle_energy_j'])} + nodes {format_energy(totals['node_energy_j'])}"
    ]
    if budget["energy_j"] is not None:
        line = f"budget {format_energy(budget['energy_j'])}, {budget['used_fraction']:.1%} used"
        if budget["probability"] is not None:
            line += f"; holds with probability {budget['probability']:.2f}"
        lines.append(line)
    if budget["power_cap_w"] is not None:
        lines.append(f"power cap {format_power(budget['power_cap_w'])}, kept at every instant")
    lines.append(
        f"average JCT {format_duration(totals['avg_jct_s'])}, makespan {format_duration(totals['makespan_s'])}"
    )
    lines.append(f"no schedule has an average JCT below {format_duration(bound['avg_jct_s'])} ({bound['kind']} bound):")
    lines.append(f"this one is within {bound['gap']:.1%} of it")
    if "facility_energy_j" in totals:
        lines.append(f"with everything around it {format_energy(totals['facility_energy_j'])}")
    if "cost" in totals:
        lines.append(f"cost {totals['cost']:.2f}")
    if "carbon_kg" in totals:
        lines.append(f"emissions {totals['carbon_kg']:.3g} kg CO2e")
    return "\n".join(lines)


def placement_view(body: dict[str, Any], cluster: Cluster, at_s: float | None = None) -> str:
    """Who sits where at one moment (default: when most GPUs are busy): a character a GPU, a bracket a node.

    ``.`` is an idle GPU in a node that is on, a blank one in a node that is off.
    """
    if at_s is None:
        at_s = _busiest(body["segments"])
    live = [s for s in body["segments"] if s["start_s"] <= at_s < s["end_s"]]
    names = list(dict.fromkeys(s["job"] for s in live))
    letter = {name: LETTERS[i % len(LETTERS)] for i, name in enumerate(names)}
    seats = {gpu: letter[s["job"]] for s in live for gpu in s["gpus"]}
    lines = [f"placement at {format_duration(at_s)}"]
    for pool in cluster.pools:
        widest = max(len(n) for n in pool.node_names)
        for rack in dict.fromkeys(pool.racks):
            lines.append(f"{pool.gpu}" + (f", rack {rack}" if rack else ""))
            nodes = [n for n, r in zip(pool.node_names, pool.racks, strict=True) if r == rack]
            lines += _rows([_node(n, pool.gpus_per_node, seats, widest) for n in nodes])
    lines += _rows([f"{letter[name]} {name}" for name in names])
    return "\n".join(lines)


def _busiest(segments: Sequence[dict[str, Any]]) -> float:
    busy, most, found = 0, -1, 0.0
    changes = sorted(
        [(s["start_s"], 1, s["n_gpus"]) for s in segments] + [(s["end_s"], 0, -s["n_gpus"]) for s in segments]
    )
    for time, _, change in changes:
        busy += change
        if busy > most:
            most, found = busy, time
    return found


def _node(name: str, size: int, seats: dict[str, str], widest: int) -> str:
    cells = [seats.get(f"{name}:{i}") for i in range(size)]
    idle = "." if any(cells) else " "
    return f"{name:<{widest}} [{''.join(c or idle for c in cells)}]"


def _rows(cells: Sequence[str]) -> list[str]:
    """Cells side by side, as many as a terminal line holds."""
    if not cells:
        return []
    width = max(map(len, cells)) + 2
    each = max(1, WIDTH // width)
    return ["  " + "".join(f"{c:<{width}}" for c in cells[i : i + each]).rstrip() for i in range(0, len(cells), each)]
