"""fit, predict and pick as a person meets them."""

from __future__ import annotations

import csv
import io
import json

import pytest

from pfprofile.profile import write_profile

COLUMNS = [
    "n_gpus", "n_nodes", "local_batch", "accum_steps", "sm_clock_mhz", "step_time_s", "step_time_lo_s",
    "step_time_hi_s", "throughput_per_s", "power_w", "power_lo_w", "power_hi_w", "energy_per_step_j", "extrapolated",
]  # fmt: skip


@pytest.fixture
def profile_file(make_profile, tmp_path):
    path = tmp_path / "p.parquet"
    write_profile(make_profile(gpus=(1, 2, 4), batches=(8, 16, 32), clocks=(500.0, 900.0, 1400.0)), path)
    return path


def test_fit_writes_the_model_and_reports_as_the_contract_says(cli, profile_file, tmp_path):
    done = cli("fit", profile_file, "-o", "m.json", "--format", "json")
    assert done.returncode == 0, done.stderr
    [report] = json.loads(done.stdout)
    assert report["model_path"] == "m.json"
    assert report["workload"] == "toy"
    assert report["device_name"] == "NVIDIA Toy"
    assert report["rows"] == 27
    assert set(report["parameters"]["a0"]) >= {"value", "stderr", "frozen", "reason"}
    assert report["parameters"]["delta_n"]["frozen"]
    assert report["parameters"]["delta_n"]["reason"]
    assert report["quality"]["throughput"]["in_sample_mape"] < 0.05
    assert set(report["quality"]["throughput"]["cv"]) == {"batch", "n_gpus", "clock"}
    assert report["quality"]["power"]["in_sample_mape"] < 0.1
    assert (tmp_path / "m.json").is_file()
    again = cli("fit", profile_file, "-o", "m.json")
    assert again.returncode == 2
    assert "--force" in again.stderr
    assert cli("fit", profile_file, "-o", "m.json", "--force").returncode == 0


def test_fit_without_arguments_goes_from_profiles_to_models(cli, make_profile, tmp_path):
    nothing = cli("fit")
    assert nothing.returncode == 3
    assert "profiles/" in nothing.stderr
    write_profile(make_profile(), tmp_path / "profiles/toy/toy.parquet")
    done = cli("fit")
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "models/toy/toy.json").is_file()
    assert "in-sample" in done.stdout
    assert cli("fit").returncode == 0
    assert cli("predict", "toy/toy").returncode == 0


def test_predict_prints_the_product_in_the_order_given(cli):
    done = cli("predict", "a100-sxm4/resnet50", "--gpus", "8,1", "--batch-sizes", "64,32", "--freqs", "1005,default",
               "--format", "json")  # fmt: skip
    assert done.returncode == 0, done.stderr
    rows = json.loads(done.stdout)
    assert [list(row) for row in rows] == [COLUMNS] * 8
    assert [(r["n_gpus"], r["local_batch"], r["sm_clock_mhz"]) for r in rows] == [
        (n, b, f) for n in (8, 1) for b in (64, 32) for f in (1005.0, None)
    ]
    assert "synthetic" in done.stderr


def test_gpus_per_node_sets_the_nodes(cli):
    done = cli("predict", "resnet50", "--gpus", "8", "--batch-sizes", "32", "--gpus-per-node", "4", "--format", "csv")
    [row] = csv.DictReader(io.StringIO(done.stdout))
    assert list(row) == COLUMNS
    assert row["n_nodes"] == "2"
    assert row["sm_clock_mhz"] == ""


def test_a_clock_the_device_does_not_offer_is_answered_and_said(cli):
    done = cli("predict", "resnet50", "--gpus", "1", "--batch-sizes", "32", "--freqs", "1000", "--format", "json")
    [row] = json.loads(done.stdout)
    assert row["sm_clock_mhz"] == 1000
    assert "nearest is 1005 MHz" in done.stderr


def test_a_range_of_clocks_includes_its_end(cli):
    done = cli(
        "predict", "resnet50", "--gpus", "1", "--batch-sizes", "32", "--freqs", "900:1410:255", "--format", "json"
    )
    assert [r["sm_clock_mhz"] for r in json.loads(done.stdout)] == [900, 1155, 1410]


def test_points_of_a_file_are_answered_row_by_row(cli, tmp_path):
    (tmp_path / "points.csv").write_text("n_gpus,local_batch,sm_clock_mhz\n8,64,1005\n1,,\n16,32,\n", encoding="utf-8")
    done = cli("predict", "resnet50", "--points", "points.csv", "--format", "json")
    assert done.returncode == 0, done.stderr
    rows = json.loads(done.stdout)
    assert [(r["n_gpus"], r["n_nodes"], r["local_batch"], r["accum_steps"], r["sm_clock_mhz"]) for r in rows] == [
        (8, 1, 64, 1, 1005), (1, 1, 256, 1, None), (16, 2, 32, 1, None),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("gpus\n1\n", "n_gpus"),
        ("n_gpus\nmany\n", "row 1: n_gpus"),
        ("n_gpus\n1.5\n", "whole number"),
        ("n_gpus,n_nodes\n1,2\n", "2 nodes for 1 GPUs"),
    ],
)
def test_a_wrong_points_file_is_refused_by_row_and_column(cli, tmp_path, text, words):
    (tmp_path / "points.csv").write_text(text, encoding="utf-8")
    done = cli("predict", "resnet50", "--points", "points.csv")
    assert done.returncode == 3
    assert words in done.stderr


@pytest.mark.parametrize(
    ("args", "code", "words"),
    [
        (("predict", "resnet51"), 3, "did you mean"),
        (("predict", "resnet50", "--freqs", "auto"), 2, "measure"),
        (("predict", "resnet50", "--freqs", "5W"), 2, "5W"),
        (("predict", "resnet50", "--points", "p.csv", "--gpus", "1"), 2, "--points"),
        (("pick", "resnet50", "--power-cap", "1W"), 5, "the least is"),
        (("pick", "resnet50", "--deadline", "1s"), 5, "fastest"),
        (("pick", "resnet50", "--max-slowdown", "lots"), 2, "fraction"),
        (("fit", "nowhere.parquet"), 3, "nowhere.parquet"),
    ],
)
def test_errors_are_one_line_with_the_right_exit_code(cli, args, code, words):
    done = cli(*args)
    assert done.returncode == code
    assert words in done.stderr
    assert "Traceback" not in done.stderr
    assert done.stdout == ""


def test_pick_says_what_it_saves_against_the_default_clock(cli):
    done = cli("pick", "resnet50", "--max-slowdown", "5%", "--format", "json")
    assert done.returncode == 0, done.stderr
    [row] = json.loads(done.stdout)
    assert 0 < row["energy_saved"] < 0.5
    assert row["energy_saved_lo"] <= row["energy_saved"] <= row["energy_saved_hi"]
    assert row["time_added"] <= 0.04 + 1e-9
    assert row["default_step_time_s"] < row["step_time_s"]
    assert "verify" in done.stderr


def test_validate_prints_held_out_errors_and_can_gate(cli, profile_file):
    done = cli("validate", profile_file, "--format", "json")
    assert done.returncode == 0, done.stderr
    rows = json.loads(done.stdout)
    assert {(r["part"], r["axis"]) for r in rows} == {
        (part, axis) for part in ("throughput", "power") for axis in ("batch", "n_gpus", "clock")
    }
    assert all(r["mape"] is not None and r["gradient_boosting"] is not None for r in rows)
    gate = cli("validate", profile_file, "--max-error", "0.0001%", "--folds", "3")
    assert gate.returncode == 6
    assert "left out" in gate.stderr
    assert "Traceback" not in gate.stderr


def test_the_models_schema_is_shipped(cli):
    schema = json.loads(cli("schema", "model", "--format", "json").stdout)
    assert schema["title"] == "ModelDocument"
    assert schema["additionalProperties"] is False
    table = cli("schema", "model", "--format", "csv").stdout
    assert "noise.time" in table
    assert "residual.time.inputs" in table
