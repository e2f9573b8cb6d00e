"""JCT at equal energy: a baseline's run against the same point of another policy's (energy, JCT) curve."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from pfprofile.plan.compare.entries import Entry

Point = tuple[float, float]


class Reading(NamedTuple):
    """A curve read at an energy; ``clamped`` says at which end it was read instead: low, high, or None."""

    jct_s: float
    clamped: str | None


def frontier(points: Sequence[Point]) -> list[Point]:
    """The (energy, JCT) points that no other beats in both, by rising energy."""
    best: list[Point] = []
    for energy_j, jct_s in sorted(points):
        if not best or jct_s < best[-1][1]:
            best.append((energy_j, jct_s))
    return best


def read_curve(points: Sequence[Point], energy_j: float) -> Reading:
    """Average JCT at an energy, by straight lines between the frontier's points; clamped where the curve ends.

    Above the curve's end the policy needs less energy even at its fastest, so its JCT there is a fair one; below it
    cannot use so little, and its JCT at its least energy flatters it.
    """
    line = frontier(points)
    energies = [e for e, _ in line]
    # Sums of a run's energy by part may differ in the last digits: equal is not outside.
    slack = 1e-9 * energy_j
    clamped = "low" if energy_j < energies[0] - slack else "high" if energy_j > energies[-1] + slack else None
    return Reading(float(np.interp(energy_j, energies, [j for _, j in line])), clamped)


def equal_energy(entries: Sequence[Entry], runs: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Rows of the contract: every baseline point against every swept curve of another policy.

    Args:
        entries: of each run, in order.
        runs: with trace, seed, energy_j and avg_jct_s.
    """
    curves: dict[tuple[str, str, int], list[Point]] = {}
    for entry, run in zip(entries, runs, strict=True):
        key = (run["trace"], entry.curve, run["seed"])
        curves.setdefault(key, []).append((run["energy_j"], run["avg_jct_s"]))
    names = _judges(entries)
    baselines: dict[tuple[str, str, str], list[Mapping[str, Any]]] = {}
    for entry, run in zip(entries, runs, strict=True):
        baselines.setdefault((run["trace"], entry.curve, entry.label), []).append(run)
    rows = []
    for (trace, curve, label), found in baselines.items():
        for name in names:
            if name != curve:
                rows.append(_row(trace, name, label, found, curves))
    return rows


def _judges(entries: Sequence[Entry]) -> list[str]:
    """Whose curves are read: policies that sweep JCT against energy, else anything swept, else everything."""
    count: dict[str, int] = {}
    for entry in dict.fromkeys(entries):
        count[entry.curve] = count.get(entry.curve, 0) + 1
    own = [e.curve for e in entries if e.rule is None and count[e.curve] > 1]
    swept = [e.curve for e in entries if count[e.curve] > 1]
    return list(dict.fromkeys(own or swept or [e.curve for e in entries]))


def _row(
    trace: str, name: str, label: str, found: Sequence[Mapping[str, Any]],
    curves: Mapping[tuple[str, str, int], Sequence[Point]],
) -> dict[str, Any]:  # fmt: skip
    ratios, clamps = [], []
    for run in found:
        reading = read_curve(curves[trace, name, run["seed"]], run["energy_j"])
        ratios.append(run["avg_jct_s"] / reading.jct_s)
        clamps.append(reading.clamped)
    low, high = interval(ratios)
    ends = sorted({clamp for clamp in clamps if clamp is not None}, reverse=True)
    return {
        "baseline": label,
        "policy": name,
        "energy_j": float(np.mean([run["energy_j"] for run in found])),
        "jct_ratio": float(np.mean(ratios)),
        "clamped": bool(ends),
        "trace": trace,
        "seeds": len(ratios),
        "jct_ratio_lo": low,
        "jct_ratio_hi": high,
        "clamped_at": ends[0] if ends else None,
    }


def interval(values: Sequence[float], level: float = 0.95) -> tuple[float | None, float | None]:
    """Student's confidence interval of the mean; (None, None) for one value."""
    from scipy.stats import t

    if len(values) < 2:
        return None, None
    mean = float(np.mean(values))
    half = float(t.ppf((1.0 + level) / 2.0, len(values) - 1)) * float(np.std(values, ddof=1)) / math.sqrt(len(values))
    return mean - half, mean + half
