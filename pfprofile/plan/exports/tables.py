"""``csv:DIR``: the schedule's segments and jobs as CSV, with the contract's columns."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from typing import Any

from pfprofile.plan.exports.base import ExportPlan


class Tables:
    """segments.csv and jobs.csv; a segment's GPUs are separated by blanks, null is an empty field."""

    name = "csv"
    options: Mapping[str, str] = {}

    def files(self, plan: ExportPlan, options: Mapping[str, str]) -> dict[str, str]:
        """See `pfprofile.plan.exports.base.Exporter`."""
        segments = [{**row, "gpus": " ".join(row["gpus"])} for row in plan.body["segments"]]
        return {"segments.csv": _csv(segments), "jobs.csv": _csv(plan.body["jobs"])}


def _csv(rows: Sequence[Mapping[str, Any]]) -> str:
    out = io.StringIO()
    writer = csv.DictWriter(out, fieldnames=list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return out.getvalue()
