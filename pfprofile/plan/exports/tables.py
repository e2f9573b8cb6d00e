"""``csv:DIR``: the schedule's segments and jobs as CSV, with the contract's columns."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import BaseModel

from pfprofile.plan.contracts import JobRow, SegmentRow
from pfprofile.plan.exports.base import ExportPlan


class Tables:
    """segments.csv and jobs.csv; a segment's GPUs are separated by blanks, null is an empty field."""

    name = "csv"
    options: Mapping[str, str] = {}

    def files(self, plan: ExportPlan, options: Mapping[str, str]) -> dict[str, str]:
        """See `pfprofile.plan.exports.base.Exporter`."""
        segments = [{**row, "gpus": " ".join(row["gpus"])} for row in plan.body["segments"]]
        jobs = plan.body["jobs"]
        return {"segments.csv": _csv(segments, SegmentRow), "jobs.csv": _csv(jobs, JobRow)}


def _csv(rows: Sequence[Mapping[str, Any]], contract: type[BaseModel]) -> str:
    out = io.StringIO()
    names = list(rows[0]) if rows else list(contract.model_fields)
    writer = csv.DictWriter(out, fieldnames=names, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return out.getvalue()
