"""The library: the same answers as the commands, over DataFrames, and nothing heavy until it is used."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.utils.estimator_checks import check_no_attributes_set_in_init, check_parameters_default_constructible
from typer.testing import CliRunner

import pfprofile as pf
from pfprofile.cli import app
from pfprofile.errors import InfeasibleError, InputError, UsageError

ROOT = Path(__file__).parents[1]
JOBS, CLUSTER = ROOT / "examples/jobs.toml", ROOT / "examples/cluster.toml"
SPREAD = [{"name": "n", "gpu": "a100-sxm4", "count": 1, "gpus_per_node": 8}]


def printed(*args):
    done = CliRunner().invoke(app, [*map(str, args), "--format", "json"])
    assert done.exit_code == 0, done.output
    return json.loads(done.stdout)


def test_importing_the_package_loads_nothing_heavy() -> None:
    code = "import sys, pfprofile; print([m for m in ('numpy', 'pandas', 'torch', 'pydantic') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
    assert {"plan", "fit", "load_profile", "step"} <= set(dir(pf))
    with pytest.raises(AttributeError, match="no attribute 'plam'"):
        pf.plam  # noqa: B018


def test_a_plan_is_the_commands_plan(tmp_path) -> None:
    plan = pf.plan(str(JOBS), CLUSTER, budget="9kWh")
    body = printed("plan", "--jobs", JOBS, "--cluster", CLUSTER, "--budget", "9kWh", "-o", tmp_path / "s.json")
    assert json.loads(json.dumps(plan.body)) == body
    assert list(plan.jobs["name"]) == [job["name"] for job in body["jobs"]]
    assert len(plan.segments) == len(body["segments"]) and plan.totals == body["totals"]
    plan.save(tmp_path / "again.json")
    assert json.loads((tmp_path / "again.json").read_text()) == body
    assert any("synthetic" in text for text in plan.notices)
    assert "kWh" in repr(plan) and "<table" in plan._repr_html_()


def test_jobs_and_nodes_come_from_frames_and_dicts() -> None:
    rows = [
        {"name": "a", "model": "resnet50", "steps": 1000, "max_gpus": 4},
        {"name": "b", "model": "resnet50", "epochs": 1, "submit": "2min"},
    ]
    frame = pd.DataFrame(rows)  # with empty cells
    one, two = pf.plan(rows, SPREAD, budget=8e6), pf.plan(frame, pd.DataFrame(SPREAD), budget="8MJ")
    assert one.jobs.equals(two.jobs)
    assert one.body["inputs"]["jobs"]["source"] == "given in memory" and one.body["inputs"]["jobs"]["digest"]
    with pytest.raises(InputError, match=r"jobs: job 'a'.*key steps: must be above 0"):
        pf.plan([{**rows[0], "steps": -1}], SPREAD)
    with pytest.raises(InfeasibleError):
        pf.plan(rows, SPREAD, budget=1.0)
    with pytest.raises(UsageError, match="a power, not an energy"):
        pf.plan(rows, SPREAD, budget="5kW")
    assert callable(pf.plan) and pf.plan.frames.plan is not None  # the package stays what a person calls


def test_models_are_fitted_saved_and_asked(tmp_path) -> None:
    profile = pf.load_profile("a100-sxm4/resnet50")
    assert len(profile.df) == profile.profile.n_rows and "synthetic" in repr(profile)
    assert "<table" in profile._repr_html_()
    model = pf.fit(profile)
    model.save(tmp_path / "m.json")
    again = pf.load_model(tmp_path / "m.json")
    points = pd.DataFrame({"n_gpus": [1, 16], "local_batch": [32, 64], "sm_clock_mhz": [1200.0, 900.0]})
    table = again.predict(points)
    assert table.equals(model.predict(points))
    points.to_csv(tmp_path / "points.csv", index=False)
    rows = printed("predict", tmp_path / "m.json", "--points", tmp_path / "points.csv")
    assert json.loads(table.to_json(orient="records", double_precision=15))[0].keys() == rows[0].keys()
    assert table["step_time_s"].tolist() == pytest.approx([r["step_time_s"] for r in rows])
    assert table["n_nodes"].tolist() == [r["n_nodes"] for r in rows]
    assert again.predict({"n_gpus": [1, 2], "local_batch": 64})["n_gpus"].tolist() == [1, 2]
    with pytest.raises(UsageError, match="unknown column 'gpus'"):
        model.predict({"gpus": [1]})
    assert set(model.parameters.columns) == {"name", "value", "stderr", "frozen", "reason"}
    assert "time and power" in repr(model)
    with pytest.raises(InputError, match="did you mean"):
        pf.load_profile("a100-sxm4/resnet5")


@pytest.mark.parametrize("estimator", [pf.ThroughputModel, pf.PowerModel])
def test_estimators_behave_like_scikit_learns(estimator) -> None:
    """What of check_estimator applies to an estimator that needs named columns with units; docs/library.md lists it."""
    check_parameters_default_constructible(estimator.__name__, estimator())
    check_no_attributes_set_in_init(estimator.__name__, estimator())
    df = pf.load_profile("a100-sxm4/resnet50").df.query("n_gpus == 1 and status == 'ok'")
    unfitted = estimator(device_name="NVIDIA A100-SXM4")
    with pytest.raises(NotFittedError):
        unfitted.predict(df)
    before = df.copy()
    fitted = unfitted.fit(df)
    assert fitted is unfitted and df.equals(before)
    assert clone(fitted).get_params() == fitted.get_params()
    assert (fitted.predict(df) == clone(fitted).fit(df).predict(df)).all()
    assert fitted.n_features_in_ == df.shape[1]
    target = df["step_time_s"] if estimator is pf.ThroughputModel else df["power_w"]
    assert fitted.score(df, target) > 0.98


def test_a_comparison_is_the_commands(tmp_path) -> None:
    trace = ROOT / "examples" / "trace.csv"
    found = pf.compare(trace, "fifo,srtf", first=6)
    assert json.loads(json.dumps(found.body)) == printed(
        "compare", "--trace", trace, "--policies", "fifo,srtf", "--first", 6
    )
    assert set(found.runs["policy"]) == {"fifo", "srtf"} and "2 policies" in repr(found)
    with pytest.raises(UsageError, match="unknown argument 'frist'; did you mean 'first'"):
        pf.compare(trace, "fifo", frist=6)


def test_the_notebook_runs() -> None:
    done = subprocess.run(
        [sys.executable, "examples/notebook.py"], cwd=ROOT, capture_output=True, text=True, check=False,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "average JCT" in done.stdout
