"""Policies on the same work: runs over traces, seeds and knobs, and JCT ratios at equal energy."""

from pfprofile.plan.compare.contract import FIELDS, json_schema
from pfprofile.plan.compare.output import write_comparison
from pfprofile.plan.compare.study import Request, compare

__all__ = ["FIELDS", "Request", "compare", "json_schema", "write_comparison"]
