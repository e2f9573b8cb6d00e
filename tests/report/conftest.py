"""Artifacts with numbers that can be checked by hand."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pfprofile.profile import Profile, ProfileMetadata, WorkloadFacts, write_profile
from pfprofile.profile.places import shipped
from pfprofile.report import build_report


@pytest.fixture
def schedule_body() -> dict[str, Any]:
    """See `make_schedule_body`."""
    return make_schedule_body()


@pytest.fixture
def comparison_body() -> dict[str, Any]:
    """See `make_comparison_body`."""
    return make_comparison_body()


def make_schedule_body() -> dict[str, Any]:
    """Two jobs on two nodes under a cap: 300 W for 100 s, then 900 W for 100 s, then 600 W for 50 s."""
    segments = [
        {"job": "alpha", "kind": "run", "start_s": 0.0, "end_s": 200.0, "n_gpus": 1, "gpus": ["node-2:0"],
         "sm_clock_mhz": 1410.0, "throughput_per_s": 100.0, "job_power_w": 300.0, "energy_j": 60000.0},
        {"job": "beta", "kind": "rescale", "start_s": 100.0, "end_s": 110.0, "n_gpus": 2,
         "gpus": ["node-10:0", "node-10:1"], "sm_clock_mhz": 705.0, "throughput_per_s": 0.0, "job_power_w": 600.0,
         "energy_j": 6000.0},
        {"job": "beta", "kind": "run", "start_s": 110.0, "end_s": 250.0, "n_gpus": 2,
         "gpus": ["node-10:0", "node-10:1"], "sm_clock_mhz": 705.0, "throughput_per_s": 150.0, "job_power_w": 600.0,
         "energy_j": 84000.0},
    ]  # fmt: skip
    jobs = [
        {"name": "alpha", "submit_s": 0.0, "start_s": 0.0, "finish_s": 200.0, "jct_s": 200.0, "energy_j": 60000.0,
         "jct_lo_s": 190.0, "jct_hi_s": 210.0},
        {"name": "beta", "submit_s": 50.0, "start_s": 100.0, "finish_s": 250.0, "jct_s": 200.0, "energy_j": 90000.0,
         "jct_lo_s": 190.0, "jct_hi_s": 215.0},
    ]  # fmt: skip
    return {
        "segments": segments,
        "jobs": jobs,
        "totals": {"energy_j": 220000.0, "gpu_energy_j": 150000.0, "idle_energy_j": 0.0, "node_energy_j": 70000.0,
                   "avg_jct_s": 200.0, "makespan_s": 250.0},
        "budget": {"energy_j": 250000.0, "power_cap_w": 2000.0, "used_fraction": 0.88, "probability": 0.97},
        "bound": {"kind": "static", "avg_jct_s": 180.0, "gap": 0.111},
        "inputs": {"models": [{"name": "toy", "source": "measured", "digest": "d" * 64, "version": 1}]},
    }  # fmt: skip


@pytest.fixture
def write_json(tmp_path: Path) -> Callable[[str, Any], Path]:
    """Write a JSON file into the test's folder."""

    def write(name: str, body: Any) -> Path:
        path = tmp_path / name
        path.write_text(json.dumps(body), encoding="utf-8")
        return path

    return write


def make_comparison_body() -> dict[str, Any]:
    """Two policies, two knobs of ours, two seeds; one ratio is clamped."""

    def run(
        policy: str, rule: str | None, knob: float | None, seed: int, energy_kwh: float, jct_h: float
    ) -> dict[str, Any]:
        return {
            "trace": "toy", "policy": policy, "clock_rule": rule, "knob": knob, "seed": seed, "jobs": 10,
            "offered_load": 0.8, "avg_jct_s": 3600 * jct_h, "median_jct_s": 3600 * jct_h, "p99_jct_s": 7200 * jct_h,
            "makespan_s": 36000.0, "energy_j": 3.6e6 * energy_kwh, "gpu_energy_j": 3e6 * energy_kwh,
            "node_energy_j": 6e5 * energy_kwh, "utilisation": 0.7, "rescales": 3, "migrations": 0,
        }  # fmt: skip

    runs = [
        run("fifo", "max", None, 0, 12.0, 3.0), run("fifo", "max", None, 1, 12.4, 3.2),
        run("pfprofile", None, 0.0, 0, 11.0, 1.0), run("pfprofile", None, 0.0, 1, 11.2, 1.2),
        run("pfprofile", None, 2.0, 0, 8.0, 2.0), run("pfprofile", None, 2.0, 1, 8.2, 2.2),
    ]  # fmt: skip
    equal = [
        {"baseline": "fifo", "policy": "pfprofile", "energy_j": 4.3e7, "jct_ratio": 2.5, "clamped": False},
        {"baseline": "fifo", "policy": "pfprofile", "energy_j": 3.9e7, "jct_ratio": 2.0, "clamped": False},
        {"baseline": "fifo", "policy": "pfprofile", "energy_j": 9.9e7, "jct_ratio": 9.0, "clamped": True},
    ]
    return {"runs": runs, "equal_energy": equal}


def measured_profile() -> Profile:
    """A profile with everything that has a mark: spread, a throttled trial, a failed one, several nodes."""
    rows: list[dict[str, Any]] = []
    for n in (1, 2, 16):
        for batch in (8, 16, 32):
            for clock in (705.0, 1065.0, 1410.0):
                time_s = (0.01 + 0.002 * batch * 1410 / clock) * (1 + 0.02 * n)
                rows.append({
                    "workload": "toy", "device_name": "NVIDIA Toy", "n_gpus": n, "n_nodes": max(1, n // 8),
                    "local_batch": batch, "requested_clock_mhz": clock, "achieved_clock_mhz": clock, "steps": 20,
                    "step_time_s": time_s, "step_time_std_s": 0.08 * time_s, "power_w": 60 + clock / 6,
                    "power_spread_w": 20.0, "limited_by": "none",
                })  # fmt: skip
    rows[8].update(limited_by="power", achieved_clock_mhz=1300.0)
    failed = {"status": "oom", "step_time_s": None, "step_time_std_s": None, "power_w": None, "error": "out of memory"}
    rows.append({**rows[8], **failed, "local_batch": 64})
    metadata = ProfileMetadata(source="measured", gpus_per_node=8, workload=WorkloadFacts("image", 1000, 16, 32))
    return Profile.from_rows(rows, metadata)


@pytest.fixture(scope="session")
def report_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One report with every kind of artifact, drawn once for all tests that look at the whole page."""
    folder = tmp_path_factory.mktemp("report")
    write_profile(measured_profile(), folder / "toy.parquet")
    (folder / "schedule.json").write_text(json.dumps(make_schedule_body()), encoding="utf-8")
    (folder / "comparison.json").write_text(json.dumps(make_comparison_body()), encoding="utf-8")
    name = "a100-sxm4/resnet50"
    files = [folder / "toy.parquet", shipped(".parquet")[name], shipped(".json")[name], folder / "schedule.json",
             folder / "comparison.json"]  # fmt: skip
    path = folder / "report.html"
    path.write_text(build_report([str(file) for file in files]), encoding="utf-8")
    return path
