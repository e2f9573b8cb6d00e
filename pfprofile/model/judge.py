"""``validate``: held-out errors of one or many profiles, beside the baselines, as rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from pfprofile.errors import QualityError
from pfprofile.model.baselines import IN_REPORTS
from pfprofile.model.fit import Context, clocks_that_count, fit_observations, frame_for
from pfprofile.model.observations import from_profile
from pfprofile.model.validate import AXES, axis_values, baseline_errors, cross_validate, groups

if TYPE_CHECKING:
    from pfprofile.profile import Profile


def validate_profile(profile: Profile, name: str, folds: int | None = None) -> list[dict[str, Any]]:
    """Leave one batch, GPU count and clock out in turn and predict it.

    Args:
        profile: the measurements.
        name: how to call it in the rows and in errors.
        folds: values left out on one axis at most, spread evenly; None = every one.

    Returns:
        One row a part (throughput, power) and axis: ``folds``, ``points``, ``mape`` (a fraction), ``mape_interior`` (of
        values between others), ``coverage`` of the 90 % intervals, and each baseline's MAPE. An axis with fewer than
        three values has a row with nulls: it cannot be judged.

    Raises:
        InputError: nothing to fit.
    """
    obs = clocks_that_count(from_profile(profile, name), profile.metadata)
    context = Context.of(profile)
    fit = fit_observations(obs, frame_for(obs, profile.metadata), context.device_name, context.idle_power_w)
    held = cross_validate(fit, context, folds, starts=2)
    rows = []
    for part in ("throughput", "power") if obs.has_power else ("throughput",):
        truth = obs.step_time_s if part == "throughput" else obs.power_w
        for axis in AXES:
            row: dict[str, Any] = {
                "profile": name, "workload": context.workload, "device_name": context.device_name,
                "source": profile.metadata.source, "part": part, "axis": axis,
                "folds": len(groups(axis_values(obs, axis), folds)), "points": None, "mape": None,
                "mape_interior": None, "coverage": None, **dict.fromkeys(IN_REPORTS),
            }  # fmt: skip
            if axis in held:
                h = held[axis]
                predicted, inside = (h.time_s, h.time_inside) if part == "throughput" else (h.power_w, h.power_inside)
                error = np.abs(predicted / truth[h.rows] - 1)
                known = np.isfinite(error)
                row["points"] = int(known.sum())
                row["mape"] = float(error[known].mean())
                row["mape_interior"] = float(error[known & h.interior].mean()) if (known & h.interior).any() else None
                row["coverage"] = float(inside[known].mean())
                others = baseline_errors(obs, axis, IN_REPORTS, folds)
                for baseline, by_part in others.items():
                    row[baseline] = by_part.get("time" if part == "throughput" else "power")
            rows.append(row)
    return rows


def require(rows: Sequence[dict[str, Any]], limit: float) -> None:
    """Refuse errors above a limit.

    Raises:
        QualityError: it names the worst row.
    """
    judged = [row for row in rows if row["mape"] is not None]
    worst = max(judged, key=lambda row: row["mape"], default=None)
    if worst is not None and worst["mape"] > limit:
        raise QualityError(
            f"{worst['profile']}: {worst['part']}, one {worst['axis']} left out: error {worst['mape']:.1%}, "
            f"above {limit:.1%}",
            "measure more values of that axis, or look at: pfprofile fit",
        )
