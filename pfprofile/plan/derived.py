"""Columns derived from energy: the whole facility, money, emissions. They change nothing about the plan."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pfprofile.errors import UsageError

J_PER_KWH = 3.6e6


@dataclass(frozen=True, slots=True)
class Rates:
    """Factors; None = not asked for.

    Attributes:
        pue: facility energy ÷ IT energy, at least 1.
        price_per_kwh: money a kWh.
        carbon_g_per_kwh: g CO2e a kWh.
    """

    pue: float | None = None
    price_per_kwh: float | None = None
    carbon_g_per_kwh: float | None = None

    def __post_init__(self) -> None:
        if self.pue is not None and not self.pue >= 1.0:
            raise UsageError(f"--pue: {self.pue:g} is below 1", "a facility uses at least what its computers use")
        for name, value in (("--price", self.price_per_kwh), ("--carbon", self.carbon_g_per_kwh)):
            if value is not None and not value >= 0.0:
                raise UsageError(f"{name}: {value:g} is below 0")

    def add(self, body: dict[str, Any]) -> None:
        """Add the columns to a schedule's totals and jobs (a job's share is of its GPUs' energy)."""
        for row in (body["totals"], *body["jobs"]):
            energy_j = row["energy_j"] * (self.pue or 1.0)
            if self.pue is not None:
                row["facility_energy_j"] = energy_j
            if self.price_per_kwh is not None:
                row["cost"] = energy_j / J_PER_KWH * self.price_per_kwh
            if self.carbon_g_per_kwh is not None:
                row["carbon_kg"] = energy_j / J_PER_KWH * self.carbon_g_per_kwh / 1e3
