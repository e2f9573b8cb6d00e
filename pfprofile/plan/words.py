"""A schedule in words, for the terminal."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

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


def summary(body: dict[str, Any]) -> str:
    """Totals, budget and bound, one a line."""
    totals, budget, bound = body["totals"], body["budget"], body["bound"]
    lines = [
        f"energy {format_energy(totals['energy_j'])} = GPUs {format_energy(totals['gpu_energy_j'])}"
        f" + idle GPUs {format_energy(totals['idle_energy_j'])} + nodes {format_energy(totals['node_energy_j'])}"
    ]
    if budget["energy_j"] is not None:
        lines.append(f"budget {format_energy(budget['energy_j'])}, {budget['used_fraction']:.1%} used")
    if budget["power_cap_w"] is not None:
        lines.append(f"power cap {format_power(budget['power_cap_w'])}, kept at every instant")
    lines.append(
        f"average JCT {format_duration(totals['avg_jct_s'])}, makespan {format_duration(totals['makespan_s'])}"
    )
    lines.append(
        f"no schedule has an average JCT below {format_duration(bound['avg_jct_s'])} "
        f"({bound['kind']} bound): within {bound['gap']:.1%}"
    )
    return "\n".join(lines)
