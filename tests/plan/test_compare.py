"""Comparisons: curves read at equal energy, knobs, loads and batches; the same result whatever computes it."""

from __future__ import annotations

import importlib.util
import json
import math
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pfprofile.errors import InputError, UsageError
from pfprofile.plan.compare import Request, compare, json_schema, write_comparison
from pfprofile.plan.compare.contract import columns
from pfprofile.plan.compare.entries import parse_entries
from pfprofile.plan.compare.equal_energy import frontier, interval, read_curve
from pfprofile.plan.compare.output import ratio_rows, run_rows
from pfprofile.plan.compare.source import Source, cluster_of, jobs_of
from pfprofile.plan.compare.study import parse_seeds
from pfprofile.plan.workload import offered_load

TRACE = Path(__file__).resolve().parents[2] / "examples" / "trace.csv"
FEW = {"traces": [TRACE], "policies": "fifo,afs,pfprofile", "knobs": ["pfprofile.energy_price=0,0.0005"], "first": 12}
Points = st.lists(st.tuples(st.floats(1, 1e6), st.floats(1, 1e6)), min_size=1, max_size=20)


def test_a_curve_is_read_between_its_points_and_clamped_beyond_them() -> None:
    points = [(10.0, 100.0), (20.0, 50.0), (30.0, 80.0), (15.0, 90.0)]
    assert frontier(points) == [(10.0, 100.0), (15.0, 90.0), (20.0, 50.0)]
    assert read_curve(points, 17.5) == (70.0, None)
    assert read_curve(points, 5.0) == (100.0, "low")
    assert read_curve(points, 40.0) == (50.0, "high")
    assert read_curve(points, 20.0).clamped is None


@given(Points, st.floats(1, 1e6), st.floats(1, 1e6))
def test_more_energy_never_reads_as_slower(points: list[tuple[float, float]], a: float, b: float) -> None:
    low, high = sorted((a, b))
    assert read_curve(points, low).jct_s >= read_curve(points, high).jct_s * (1 - 1e-12)
    assert read_curve(points, low).jct_s >= min(jct for _, jct in points) * (1 - 1e-12)


def test_the_interval_is_students() -> None:
    low, high = interval([1.0, 2.0, 3.0])
    assert low == pytest.approx(2.0 - 4.30265 / math.sqrt(3), rel=1e-5)
    assert high == pytest.approx(2.0 + 4.30265 / math.sqrt(3), rel=1e-5)
    assert interval([1.0]) == (None, None)


@pytest.fixture(scope="module")
def body() -> dict[str, object]:
    return compare(Request(**FEW, seeds="0,1", clock_rules="max,zeus:0.5"))


def test_the_body_keeps_to_the_contract(body: dict[str, list[dict[str, object]]]) -> None:
    assert list(body)[:2] == ["runs", "equal_energy"]
    for part in ("runs", "equal_energy"):
        assert all(list(row) == columns(part) for row in body[part])
        kinds = json_schema()["properties"][part]["items"]["properties"]
        assert list(kinds) == columns(part)
    assert len(body["runs"]) == 2 * (2 * 2 + 2)
    assert {(r["policy"], r["clock_rule"], r["knob"]) for r in body["runs"]} == {
        ("fifo", "max", None), ("fifo", "zeus", 0.5), ("afs", "max", None), ("afs", "zeus", 0.5),
        ("pfprofile", None, 0.0), ("pfprofile", None, 0.0005),
    }  # fmt: skip
    json.dumps(body, allow_nan=False)


def test_energy_and_waiting_add_up(body: dict[str, list[dict[str, float]]]) -> None:
    for run in body["runs"]:
        parts = run["gpu_energy_j"] + run["idle_energy_j"] + run["node_energy_j"]
        assert run["energy_j"] == pytest.approx(parts, rel=1e-12)
        assert 0.0 <= run["queueing_s"] < run["avg_jct_s"] <= run["makespan_s"]
        assert run["median_jct_s"] <= run["p99_jct_s"]
        assert 0.0 < run["utilisation"] <= 1.0
        assert 0.0 < run["nodes_on"] <= 16.0


def test_rigid_jobs_that_never_wait_take_as_long_as_the_trace_says(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("job_id,submission_time,duration,num_gpu\na,0,600,4\nb,60,1200,8\n")
    (run,) = compare(Request([path], "fifo"))["runs"]
    assert run["avg_jct_s"] == pytest.approx(900.0)
    assert run["queueing_s"] == 0.0
    assert run["offered_load"] == pytest.approx((600 * 4 + 1200 * 8) / (128 * 60))


def test_ratios_are_the_baselines_jct_over_the_policys(body: dict[str, list[dict[str, object]]]) -> None:
    rows = {row["baseline"]: row for row in body["equal_energy"] if row["policy"] == "pfprofile"}
    assert set(rows) == {"fifo", "fifo+zeus:0.5", "afs", "afs+zeus:0.5"}
    for name, rule in (("fifo", "max"), ("afs", "zeus")):
        ratios = []
        for seed in (0, 1):
            (run,) = [r for r in body["runs"] if (r["policy"], r["clock_rule"], r["seed"]) == (name, rule, seed)]
            own = [(r["energy_j"], r["avg_jct_s"]) for r in body["runs"]
                   if r["policy"] == "pfprofile" and r["seed"] == seed]  # fmt: skip
            ratios.append(run["avg_jct_s"] / read_curve(own, run["energy_j"]).jct_s)
        row = rows[name if rule == "max" else f"{name}+zeus:0.5"]
        assert row["jct_ratio"] == pytest.approx(sum(ratios) / 2)
        assert row["jct_ratio_lo"] <= row["jct_ratio"] <= row["jct_ratio_hi"]
        assert row["clamped"] is (row["clamped_at"] is not None)


def test_tables_show_fastest_and_least_energy(body: dict[str, list[dict[str, object]]]) -> None:
    names = [row["policy"] for row in run_rows(body["runs"])]
    assert names == ["fifo", "fifo+zeus", "afs", "afs+zeus", "pfprofile", "pfprofile"]
    assert {row["baseline"] for row in ratio_rows(body["equal_energy"])} == {"fifo", "fifo+zeus", "afs", "afs+zeus"}


@pytest.mark.parametrize("suffix", [".json", ".csv", ".parquet"])
def test_files_hold_the_runs(tmp_path: Path, body: dict[str, list[dict[str, object]]], suffix: str) -> None:
    path = tmp_path / f"out{suffix}"
    write_comparison(body, path)
    if suffix == ".json":
        assert json.loads(path.read_text()) == body
    elif suffix == ".csv":
        assert len(path.read_text().splitlines()) == 1 + len(body["runs"])
    else:
        table = pq.read_table(path)
        assert table.to_pylist() == body["runs"]
        assert json.loads(table.schema.metadata[b"pfprofile"])["equal_energy"] == body["equal_energy"]
        assert all(field.metadata[b"description"] for field in table.schema)


def test_two_processes_give_the_same_bytes(body: dict[str, object]) -> None:
    again = compare(Request(**FEW, seeds="0,1", clock_rules="max,zeus:0.5", processes=2))
    assert json.dumps(again) == json.dumps(body)


@pytest.mark.skipif(importlib.util.find_spec("distributed") is None, reason="dask is not installed")
@pytest.mark.filterwarnings("ignore")  # what its servers say while they start and stop is theirs
def test_a_dask_cluster_gives_the_same_bytes(body: dict[str, object]) -> None:
    again = compare(Request(**FEW, seeds="0,1", clock_rules="max,zeus:0.5", engine="dask", processes=1))
    assert json.dumps(again) == json.dumps(body)


@pytest.mark.skipif(importlib.util.find_spec("ray") is not None, reason="ray is installed")
def test_an_engine_that_is_not_there_names_its_extra() -> None:
    with pytest.raises(UsageError, match=r"ray is not installed.*pfprofile\[ray\]"):
        compare(Request(**FEW, engine="ray"))


def test_load_is_scaled_by_stretching_arrivals() -> None:
    plain, scaled = (list(jobs_of(Source(TRACE, load=load), 0, False)) for load in (None, 0.5))
    assert offered_load(scaled, cluster_of(None)) == pytest.approx(0.5)
    assert [j.work for j in plain] == [j.work for j in scaled]


def test_the_batch_follows_the_gpus_asked_for_unless_fixed() -> None:
    plain, fixed = (jobs_of(Source(TRACE, fixed_batch=flag), 0, False) for flag in (False, True))
    for a, b in zip(plain, fixed, strict=True):
        reference = a.tables[0].model.facts.reference_local_batch
        assert b.tables[0].global_batch == reference
        assert a.tables[0].global_batch == a.rigid_n * reference


def test_models_are_drawn_under_the_seed() -> None:
    draws = [[job.tables[0].model.workload for job in jobs_of(Source(TRACE), seed, False)] for seed in (0, 0, 1)]
    assert draws[0] == draws[1] != draws[2]


def test_knobs_and_rules_make_entries() -> None:
    labels = [e.label for e in parse_entries("edf,afs+zeus:0.5,tiresias", "max,energy-optimal", ["edf.max_gpus=8,16"])]
    assert labels == [
        "edf:8", "edf:16", "edf+energy-optimal:8", "edf+energy-optimal:16", "afs+zeus:0.5", "tiresias",
        "tiresias+energy-optimal",
    ]  # fmt: skip
    one = parse_entries("powerflow", "max", ["powerflow.energy_factor=1.2"])
    assert [(e.rule, e.value, e.curve) for e in one] == [(None, 1.2, "powerflow")]


@pytest.mark.parametrize(
    ("change", "error", "words"),
    [
        ({"policies": "tiresia"}, UsageError, "did you mean 'tiresias'"),
        ({"policies": ","}, UsageError, "--policies: empty"),
        ({"clock_rules": "zeuss"}, UsageError, "did you mean 'zeus'"),
        ({"knobs": ["afs.max=3"]}, UsageError, "has no parameter 'max'"),
        ({"knobs": ["edf.max_gpus=3"]}, UsageError, "'edf' is not compared"),
        ({"knobs": ["afs"]}, UsageError, "POLICY.PARAMETER"),
        ({"engine": "dusk"}, UsageError, "did you mean 'dask'"),
        ({"processes": 0}, UsageError, "at least 1"),
        ({"first": 0}, UsageError, "at least 1"),
        ({"load": 0.0}, UsageError, "not a positive number"),
        ({"traces": [Path("nowhere.csv")]}, InputError, "nowhere.csv: no such file"),
        ({"traces": [TRACE, TRACE]}, UsageError, "same file name"),
        ({"models": Path("nowhere")}, InputError, "no model with power"),
    ],
)
def test_wrong_requests_are_refused_in_one_line(change: dict[str, object], error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words) as found:
        compare(Request(**{**FEW, "knobs": [], **change}))  # type: ignore[arg-type]
    assert "\n" not in str(found.value)


@pytest.mark.parametrize(("text", "seeds"), [("0", [0]), ("2,0,2", [2, 0]), ("0:3", [0, 1, 2])])
def test_seeds(text: str, seeds: list[int]) -> None:
    assert parse_seeds(text) == seeds


@pytest.mark.parametrize("text", ["", "a", "3:3", "-1", "1:x"])
def test_wrong_seeds(text: str) -> None:
    with pytest.raises(UsageError, match="--seeds"):
        parse_seeds(text)
