"""How a comparison is printed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pfprofile.cli._output import Cells, Format, print_csv, print_json, print_table


def print_comparison(body: Mapping[str, Any], fmt: Format) -> None:
    """Two tables; or the whole body as JSON; or the runs as CSV."""
    from pfprofile.plan.compare.contract import columns
    from pfprofile.plan.compare.output import ratio_rows, run_rows
    from pfprofile.units import format_duration, format_energy

    if fmt is Format.json:
        print_json(body)
        return
    if fmt is Format.csv:
        print_csv(body["runs"], columns("runs"))
        return
    runs: Cells = {
        "policy": ("policy", str),
        "knob": ("knob", lambda v: f"{v:.3g}"),
        "avg_jct_s": ("avg JCT", format_duration),
        "p99_jct_s": ("p99", format_duration),
        "queueing_s": ("queueing", format_duration),
        "energy_j": ("energy", format_energy),
        "utilisation": ("used", lambda v: f"{v:.0%}"),
        "rescales": ("rescales", lambda v: f"{v:.0f}"),
    }
    ratios: Cells = {
        "baseline": ("baseline", str),
        "policy": ("policy", str),
        "least": ("least", lambda v: f"{v:.2f}"),
        "median": ("median", lambda v: f"{v:.2f}"),
        "greatest": ("greatest", lambda v: f"{v:.2f}"),
        "interval": ("95 % of mean", str),
        "note": ("note", str),
    }
    found, rated = run_rows(body["runs"]), ratio_rows(body["equal_energy"])
    for trace in dict.fromkeys(row["trace"] for row in found):
        own = [row for row in found if row["trace"] == trace]
        print_table(own, runs, title=f"{trace}: means over seeds; of a sweep, its fastest and its least energy")
        own = [row for row in rated if row["trace"] == trace]
        if own:
            print_table(own, ratios, title="average JCT of the baseline ÷ the policy's at the same energy")
