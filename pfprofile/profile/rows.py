"""Checks of single trials: what no profile may hold, whoever made it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pfprofile.telemetry import plausibility
from pfprofile.telemetry.plausibility import Doubt


def doubts_of(row: Mapping[str, Any]) -> list[tuple[str, Doubt]]:
    """Implausible values of one trial as (column, doubt); unknown (null) values are never doubted."""
    found: list[tuple[str, Doubt | None]] = []
    limit = row.get("power_limit_w")
    if row.get("step_time_s") is not None:
        found.append(("step_time_s", plausibility.step_time(row["step_time_s"])))
    for column in ("requested_clock_mhz", "achieved_clock_mhz"):
        if row.get(column) is not None:
            found.append((column, plausibility.clock(row[column])))
    for column in ("power_w", "idle_power_w"):
        if row.get(column) is not None:
            found.append((column, plausibility.power(row[column], limit)))
    if limit is not None:
        found.append(("power_limit_w", plausibility.power(limit)))
    if row.get("temperature_c") is not None:
        found.append(("temperature_c", plausibility.temperature(row["temperature_c"])))
    if row.get("energy_j") is not None:
        steps, step_time_s = row.get("steps"), row.get("step_time_s")
        seconds = steps * step_time_s if steps and step_time_s else None
        energy = plausibility.window_energy(row["energy_j"], row.get("power_w"), seconds, row.get("n_gpus") or 1)
        found.append(("energy_j", energy))
    return [(column, doubt) for column, doubt in found if doubt is not None]
