"""docs/results.md is what benchmarks/results/ says, and its figures are there."""

from __future__ import annotations

from benchmarks._results_page import DOCS, load, page, picture, traces_of


def test_the_page_is_generated_from_the_results() -> None:
    assert (DOCS / "results.md").read_text(encoding="utf-8") == page(*load())


def test_every_trace_has_its_figure() -> None:
    _, runs = load()
    traces = traces_of(runs)
    assert traces[0].startswith("fig10") and len(traces) == 7
    assert all((DOCS / picture(trace)).read_text(encoding="utf-8").startswith("<?xml") for trace in traces)
