"""Artifacts with numbers that can be checked by hand."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest


@pytest.fixture
def schedule_body() -> dict[str, Any]:
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
