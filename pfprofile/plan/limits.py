"""Limits as people write them on the command line."""

from __future__ import annotations

from pfprofile.errors import UsageError
from pfprofile.plan.planner import Limits
from pfprofile.units import is_power, parse_energy, parse_fraction, parse_power


def parse_limits(
    budget: str | None, power_cap: str | None, confidence: str | None, *, always_on: bool, seed: int
) -> Limits:
    """Read budget, cap and confidence.

    Raises:
        UsageError: no unit, a unit of another kind (a power as budget names ``--power-cap``), not above 0, a confidence
            outside 0 … 1 or without a budget.
    """
    if budget is not None and is_power(budget):
        raise UsageError(f"--budget: {budget!r} is a power, not an energy", f"for a limit: --power-cap {budget}")
    budget_j = parse_energy(budget, what="--budget") if budget is not None else None
    cap_w = parse_power(power_cap, what="--power-cap") if power_cap is not None else None
    for name, value in (("--budget", budget_j), ("--power-cap", cap_w)):
        if value is not None and value <= 0:
            raise UsageError(f"{name}: must be above 0")
    sure = parse_fraction(confidence, what="--confidence") if confidence is not None else None
    if sure is not None and not 0.0 < sure < 1.0:
        raise UsageError(f"--confidence: {confidence} does not lie between 0 and 1", "write for example 0.95")
    if sure is not None and budget_j is None:
        raise UsageError("--confidence: needs --budget", "say which energy must hold")
    return Limits(budget_j, cap_w, always_on, sure, seed)
