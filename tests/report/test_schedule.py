"""Pictures of a schedule: what is read, added up and said."""

from __future__ import annotations

import copy

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pfprofile.errors import InputError
from pfprofile.report.gantt import MOST_LANES, Lanes, bars_of, natural
from pfprofile.report.occupancy import TIMES, occupancy
from pfprofile.report.power_series import energy_j, peak, power_series
from pfprofile.report.schedule import section, where
from pfprofile.report.schedule_file import read_schedule, sources_in, split_gpu
from pfprofile.report.svg import drawing


def read(body, tmp_path):
    return read_schedule(body, tmp_path / "schedule.json")


def drawn(body, tmp_path):
    with drawing():
        return section(read(body, tmp_path), "schedule.json", "s1")


def panels(part):
    return {panel.title: panel for group in part.groups for panel in group.panels}


def test_power_steps_are_the_sum_of_the_segments(schedule_body, tmp_path):
    series = power_series(read(schedule_body, tmp_path))
    assert series.edges_s.tolist() == [0, 100, 110, 200, 250]
    assert series.jobs_w.tolist() == [300, 900, 900, 600]
    assert energy_j(series) == 150000.0


def test_standing_energy_is_shared_over_the_time_nodes_are_in_use(schedule_body, tmp_path):
    series = power_series(read(schedule_body, tmp_path))
    # node-2 is in use for 200 s, node-10 for 150 s: 70 kJ over 350 node-seconds are 200 W a node.
    assert series.standing_w.tolist() == [200, 400, 400, 200]
    assert peak(series) == (100.0, 1300.0)


def test_without_totals_nothing_is_made_up(schedule_body, tmp_path):
    schedule_body["totals"].update(idle_energy_j=None, node_energy_j=None)
    assert power_series(read(schedule_body, tmp_path)).standing_w is None


@given(st.lists(st.tuples(st.integers(0, 50), st.integers(1, 50), st.floats(0, 1e4)), min_size=1, max_size=30))
def test_power_steps_keep_the_energy(spans):
    segments = [
        {"job": "j", "kind": "run", "start_s": a, "end_s": a + d, "n_gpus": 1, "gpus": ["n:0"], "job_power_w": w}
        for a, d, w in spans
    ]
    from pathlib import Path

    series = power_series(read_schedule({"segments": segments, "jobs": [], "totals": {}}, Path("x")))
    assert energy_j(series) == pytest.approx(sum(d * w for _, d, w in spans), rel=1e-9, abs=1e-6)
    assert np.all(series.jobs_w >= 0)


def test_nodes_stand_in_natural_order_and_neighbours_become_one_bar(schedule_body, tmp_path):
    schedule = read(schedule_body, tmp_path)
    lanes = Lanes.of(schedule)
    assert lanes.nodes == ("node-2", "node-10")
    assert [(b.segment.job, b.lane, b.height) for b in bars_of(schedule, lanes)] == [
        ("alpha", 0, 1), ("beta", 1, 2), ("beta", 1, 2),
    ]  # fmt: skip


def test_a_job_over_two_nodes_is_two_bars(schedule_body, tmp_path):
    schedule_body["segments"][2].update(gpus=["node-2:0", "node-10:0", "node-10:1"], n_gpus=3)
    schedule = read(schedule_body, tmp_path)
    assert [(b.lane, b.height) for b in bars_of(schedule, Lanes.of(schedule))][-2:] == [(0, 1), (1, 2)]


def test_names_sort_as_people_count():
    assert sorted(["n10", "n2", "a", "n2b", "n"], key=natural) == ["a", "n", "n2", "n2b", "n10"]
    assert split_gpu("rack:3:7") == ("rack:3", 7)
    assert split_gpu("gpu") == ("gpu", 0)


def test_the_section_says_what_the_file_says(schedule_body, tmp_path):
    part = drawn(schedule_body, tmp_path)
    facts = dict(part.facts)
    assert part.heading == "2 jobs under a budget of 69.44 Wh and a cap of 2.000 kW"
    assert part.sources == ("measured",)
    assert facts["Average JCT"] == "3.33 min"
    assert facts["Budget holds with"] == "97 %"
    assert facts["Gap to that bound"] == "11.1 %"
    shown = panels(part)
    assert "within the cap" in shown["Cluster power over time"].description
    assert "mark-cap" in shown["Cluster power over time"].svg
    assert shown["Who runs where, at which clock"].svg.count("mark-run") == 2
    assert shown["Who runs where, at which clock"].svg.count("mark-rescale") == 1
    assert "nodes 19.44 Wh, 31.8 %" in shown["Energy by part"].description


def test_a_peak_above_the_cap_is_said(schedule_body, tmp_path):
    schedule_body["budget"]["power_cap_w"] = 1000.0
    assert "above the cap" in panels(drawn(schedule_body, tmp_path))["Cluster power over time"].description


def test_unknown_power_is_said_not_drawn(schedule_body, tmp_path):
    for segment in schedule_body["segments"]:
        segment.update(job_power_w=None, energy_j=None)
    schedule_body["totals"].update(energy_j=None, gpu_energy_j=None, idle_energy_j=None, node_energy_j=None)
    shown = panels(drawn(schedule_body, tmp_path))
    for title in ("Cluster power over time", "Energy by part"):
        assert shown[title].svg == ""
        assert "unknown" in shown[title].description


def test_an_empty_schedule_is_words(tmp_path):
    shown = panels(drawn({"segments": [], "jobs": [], "totals": {}}, tmp_path))
    assert not any(panel.svg for panel in shown.values())


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda b: b["segments"][0].pop("start_s"), "segments.0.start_s"),
        (lambda b: b["segments"][0].update(kind="walk"), "segments.0.kind"),
        (lambda b: b["segments"][1].update(end_s=1.0), "segments.1 (beta) ends before it starts"),
        (lambda b: b["jobs"][1].update(name=3), "jobs.1.name"),
        (lambda b: b.update(totals=[]), "totals"),
    ],
)
def test_a_wrong_schedule_is_refused_by_key(schedule_body, tmp_path, change, words):
    body = copy.deepcopy(schedule_body)
    change(body)
    with pytest.raises(InputError) as caught:
        read(body, tmp_path)
    assert words in str(caught.value)


def test_sources_are_found_anywhere_in_the_inputs():
    assert sources_in({"a": [{"source": "synthetic"}, {"b": {"source": "measured"}}], "source": "other"}) == (
        "measured", "synthetic",
    )  # fmt: skip
    assert sources_in(None) == ()


def test_a_large_schedule_shows_how_full_the_nodes_are(schedule_body, tmp_path):
    segment = schedule_body["segments"][0]
    schedule_body["segments"] = [
        {**segment, "job": f"job-{i}", "start_s": 0.0, "end_s": 50.0 + i % 50, "gpus": [f"n-{i // 8}:{i % 8}"]}
        for i in range(MOST_LANES + 8)
    ]
    part = drawn(schedule_body, tmp_path)
    panel = panels(part)["How full the nodes are"]
    assert "mark-occupancy" in panel.svg
    assert f"{MOST_LANES + 8} segments" in panel.description


def test_occupancy_keeps_the_gpu_time(schedule_body, tmp_path):
    schedule = read(schedule_body, tmp_path)
    found = occupancy(schedule, ("node-2", "node-10"), {"node-2": 2, "node-10": 2})
    step_s = (found.end_s - found.begin_s) / TIMES
    assert (found.share * 2 * step_s).sum(axis=1) == pytest.approx([200.0, 300.0])


def test_many_nodes_share_a_row(schedule_body, tmp_path):
    nodes = tuple(f"n-{i}" for i in range(130))
    schedule_body["segments"] = [
        {**schedule_body["segments"][0], "gpus": [f"{node}:0"]} for node in nodes
    ]  # fmt: skip
    found = occupancy(read(schedule_body, tmp_path), nodes, dict.fromkeys(nodes, 1))
    assert len(found.rows) == 44
    assert found.rows[0] == "n-0 … n-2"
    assert found.share.min() == pytest.approx(1.0)


def test_shares_are_not_told_of_an_incomplete_sum(schedule_body, tmp_path):
    schedule_body["totals"]["node_energy_j"] = None
    description = panels(drawn(schedule_body, tmp_path))["Energy by part"].description
    assert description == "GPUs at work 41.67 Wh; idle GPUs 0 J. Unknown: nodes."


def test_a_jobs_times_share_one_unit(schedule_body, tmp_path):
    jobs = drawn(schedule_body, tmp_path).groups[-1].tables[0]
    assert ("JCT (s)", False) in [(heading, False) for heading, _ in jobs.columns]
    assert jobs.rows[1][:5] == ("beta", "50.00", "100.00", "250.00", "200.00")


def test_neighbouring_gpus_are_told_as_ranges():
    assert where(["b:0", "a:1", "a:0", "a:2", "b:2"]) == "a:0-2 b:0 b:2"
    assert where([f"n{i}:0" for i in range(9)]).endswith("n5:0 …")
    assert where([]) == ""
