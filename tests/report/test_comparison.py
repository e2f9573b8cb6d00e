"""Pictures of a comparison: curves over knobs and seeds, ratios at equal energy."""

from __future__ import annotations

import pytest

from pfprofile.errors import InputError
from pfprofile.report.comparison import section
from pfprofile.report.comparison_file import read_comparison
from pfprofile.report.jct_curves import front_of, trails_of
from pfprofile.report.svg import drawing


def read(body, tmp_path):
    return read_comparison(body, tmp_path / "c.json")


def drawn(body, tmp_path):
    with drawing():
        return section(read(body, tmp_path), body, "c.json", "s1")


def test_a_knob_is_one_spot_with_mean_and_ends_over_seeds(comparison_body, tmp_path):
    ours, fifo = trails_of(read(comparison_body, tmp_path).runs)
    assert (ours.label, fifo.label) == ("pfprofile", "fifo, max")
    assert [round(spot.energy_j[0] / 3.6e6, 6) for spot in ours.spots] == [8.1, 11.1]
    assert ours.spots[0].jct_s == pytest.approx((2.1 * 3600, 2.0 * 3600, 2.2 * 3600))


def test_the_section_draws_each_trace_and_the_ratios(comparison_body, tmp_path):
    part = drawn(comparison_body, tmp_path)
    assert part.heading == "2 policies on toy"
    assert dict(part.facts)["Runs"] == "6"
    curves, equal, runs = part.groups
    assert curves.panels[0].svg.count("mark-policy") == 2
    assert "pfprofile: 2.10 h at 8.100 kWh to 66.0 min at 11.10 kWh" in curves.panels[0].description
    assert "pfprofile against fifo: 2.25× (2.00 to 2.50)." in equal.panels[0].description
    assert equal.panels[0].svg.count("mark-clamped") == 1
    assert "1 of 3 are clamped" in equal.intro
    assert len(runs.tables[0].rows) == 6


def test_settings_that_others_beat_are_faint_marks_off_the_line(comparison_body, tmp_path):
    ours = [run for run in comparison_body["runs"] if run["policy"] == "pfprofile"]
    bad = [{**run, "knob": 9.0, "energy_j": run["energy_j"] * 1.01, "avg_jct_s": 3.6e5} for run in ours[:2]]
    comparison_body["runs"] += bad
    trail = trails_of(read(comparison_body, tmp_path).runs)[0]
    front, rest = front_of(trail)
    assert (len(front), len(rest)) == (2, 1)
    panel = drawn(comparison_body, tmp_path).groups[0].panels[0]
    assert panel.svg.count("mark-dominated") == 1
    assert panel.description.endswith("1 settings that others beat lie above the picture.")


def test_a_baselines_settings_are_dots_of_one_row(comparison_body, tmp_path):
    row = {**comparison_body["equal_energy"][0], "clamped": False}
    many = [{**row, "baseline": f"powerflow:{k}", "jct_ratio": 1.0 + k} for k in (0.1, 0.2, 0.3)]
    part = drawn({**comparison_body, "equal_energy": many}, tmp_path)
    assert "pfprofile against powerflow: 1.20× (1.10 to 1.30)." in part.groups[1].panels[0].description
    assert len(part.groups[1].tables[0].rows) == 3


def test_runs_without_energy_are_left_out_and_said(comparison_body, tmp_path):
    for run in comparison_body["runs"]:
        run["energy_j"] = None
    part = drawn(comparison_body, tmp_path)
    assert part.groups[0].panels[0].svg == ""
    assert "unknown in every run" in part.groups[0].panels[0].description


def test_an_empty_comparison_is_words(tmp_path):
    part = drawn({"runs": [], "equal_energy": []}, tmp_path)
    assert part.groups[0].intro == "The comparison holds no ratios at equal energy."


def test_only_clamped_ratios_are_called_so(comparison_body, tmp_path):
    for row in comparison_body["equal_energy"]:
        row["clamped"] = True
    assert "all clamped" in drawn(comparison_body, tmp_path).groups[1].panels[0].description


def test_synthetic_inputs_are_found(comparison_body, tmp_path):
    comparison_body["inputs"] = {"models": [{"source": "synthetic"}]}
    assert drawn(comparison_body, tmp_path).sources == ("synthetic",)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda b: b["runs"][1].pop("policy"), "runs.1.policy"),
        (lambda b: b["runs"][0].update(energy_j="much"), "runs.0.energy_j"),
        (lambda b: b.update(equal_energy={}), "equal_energy"),
    ],
)
def test_a_wrong_comparison_is_refused_by_key(comparison_body, tmp_path, change, words):
    change(comparison_body)
    with pytest.raises(InputError) as caught:
        read(comparison_body, tmp_path)
    assert words in str(caught.value)
