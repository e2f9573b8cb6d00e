"""Repeats that disagree: marked in the metadata and said, never dropped (a fit takes the median of a point)."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from typing import Any

from pfprofile.sweep.space import Point, Row

#: Fewer repeats than this have no majority that one could differ from.
LEAST_REPEATS = 3
#: How many scaled median deviations (σ of a normal distribution) away from the median …
SIGMAS = 5.0
MAD_TO_SIGMA = 1.4826
#: … and at least by this part, an outlier lies.
LEAST_PART = 0.03


def outliers(rows: Sequence[Row]) -> list[dict[str, Any]]:
    """Trials whose step time or power lies far from that of the other repeats of their point.

    Returns:
        one dict each: ``trial_id``, ``column``, ``deviation`` (a fraction of the median).
    """
    groups: dict[Point, list[Row]] = {}
    for row in rows:
        if row["status"] == "ok":
            groups.setdefault(Point.of_row(row), []).append(row)
    found: list[dict[str, Any]] = []
    for same in groups.values():
        for column in ("step_time_s", "power_w"):
            known = [r for r in same if r.get(column) is not None]
            if len(known) < LEAST_REPEATS:
                continue
            middle = statistics.median(r[column] for r in known)
            spread = statistics.median(abs(r[column] - middle) for r in known)
            limit = max(SIGMAS * MAD_TO_SIGMA * spread, LEAST_PART * middle)
            found += [
                {"trial_id": r["trial_id"], "column": column, "deviation": r[column] / middle - 1}
                for r in known
                if abs(r[column] - middle) > limit
            ]
    return found
