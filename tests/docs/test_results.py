"""docs/results.md is what benchmarks/results/ says, and its figures are there."""

from __future__ import annotations

import pytest

from benchmarks._results_page import DOCS, load, page, picture, traces_of
from benchmarks.peers import DEMANDS, judge


def test_the_page_is_generated_from_the_results() -> None:
    assert (DOCS / "results.md").read_text(encoding="utf-8") == page(*load())


def test_every_trace_has_its_figure() -> None:
    _, runs = load()
    traces = traces_of(runs)
    assert traces[0].startswith("fig10") and len(traces) == 7
    assert all((DOCS / picture(trace)).read_text(encoding="utf-8").startswith("<?xml") for trace in traces)


def test_the_verdicts_follow_from_the_stored_runs() -> None:
    body, stored = load()
    runs = [
        {
            **r,
            "clock_rule": r["clock_rule"] or None,
            "energy_j": float(r["energy_j"]),
            "avg_jct_s": float(r["avg_jct_s"]),
        }
        for r in stored
        if r["variant"] == "requested batch"
    ]
    found = judge(runs)
    assert len(found) == len(body["demands"]) == len(DEMANDS)
    for mine, row in zip(found, body["demands"], strict=True):
        assert mine["worst"] == pytest.approx(row["worst"], rel=1e-5)
        assert (mine["met"], mine["points"]) == (row["met"], row["points"])


def test_less_energy_than_ours_needs_never_counts_for_us() -> None:
    def run(policy: str, rule: str | None, energy_j: float, jct_s: float) -> dict[str, object]:
        return {"trace": "cluster03.csv", "policy": policy, "clock_rule": rule, "seed": 0, "energy_j": energy_j,
                "avg_jct_s": jct_s}  # fmt: skip

    ours = [run("pfprofile", None, 10.0, 5.0), run("pfprofile", None, 20.0, 2.0)]
    rows = {(r["baseline"], r["clock_rule"]): r for r in judge([*ours, run("tiresias", "max", 8.0, 50.0)])}
    assert rows["tiresias", "max"]["met"] is False and rows["tiresias", "max"]["worst"] is None
    rows = {(r["baseline"], r["clock_rule"]): r for r in judge([*ours, run("tiresias", "max", 30.0, 3.0)])}
    assert rows["tiresias", "max"]["worst"] == 1.5 and rows["tiresias", "max"]["clamped_high"] == 1
