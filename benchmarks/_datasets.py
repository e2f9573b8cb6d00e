"""The public measurements as columns with a profile's names. Found by PFPROFILE_DATA, else in ../shared/data."""

from __future__ import annotations

import csv
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

Columns = dict[str, list[Any]]

ELASTICFLOW = ("bert", "deepspeech2", "gpt2", "inception3", "resnet50", "vgg16")
POLLUX = ("bert", "cifar10", "deepspeech2", "imagenet")
ELASTICFLOW_GPUS_PER_NODE = 8


def data_root() -> Path | None:
    """The folder of the data, or None where there is none."""
    places = [os.environ.get("PFPROFILE_DATA"), str(Path(__file__).resolve().parents[2] / "shared" / "data")]
    return next((Path(p) for p in places if p and Path(p).is_dir()), None)


def _rows(path: Path) -> list[dict[str, str]]:
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def _columns(rows: list[dict[str, Any]]) -> Columns:
    return {name: [row[name] for row in rows] for name in rows[0]}


def elasticflow(root: Path, model: str) -> Columns:
    """Global batch × GPUs → iterations/s on A100s, eight a node; zeros were not measured."""
    out = []
    for row in _rows(root / "scaling" / "elasticflow_a100" / f"{model}.csv"):
        batch = int(row.pop("global_batch_size"))
        for gpus, rate in row.items():
            n = int(gpus)
            if rate and float(rate) > 0 and batch % n == 0:
                out.append({"n_gpus": n, "n_nodes": max(1, n // ELASTICFLOW_GPUS_PER_NODE), "local_batch": batch // n,
                            "step_time_s": 1 / float(rate)})  # fmt: skip
    return _columns(out)


def pollux(root: Path, model: str) -> Columns:
    """Placements of T4s (digits are the GPUs on each node) × local batch → step time."""
    out = []
    for row in _rows(root / "scaling" / "pollux_t4" / model / "placements.csv"):
        placement = row["placement"]
        out.append({"n_gpus": sum(map(int, placement)), "n_nodes": len(placement),
                    "local_batch": int(row["local_bsz"]), "step_time_s": float(row["step_time"])})  # fmt: skip
    return _columns(out)


def pollux_scalability(root: Path, model: str) -> Columns:
    """The same jobs on 6 to 16 nodes, up to 64 GPUs."""
    return _columns([
        {"n_gpus": int(r["num_replicas"]), "n_nodes": int(r["num_nodes"]), "local_batch": int(r["local_bsz"]),
         "step_time_s": float(r["step_time"])}
        for r in _rows(root / "scaling" / "pollux_t4" / model / "scalability.csv")
    ])  # fmt: skip


def _curve(points: list[tuple[float, float, float]]) -> Columns:
    return _columns([
        {"n_gpus": 1, "local_batch": 1, "requested_clock_mhz": f, "step_time_s": t, "power_w": p} for f, t, p in points
    ])  # fmt: skip


def perseus(root: Path, gpu: str) -> dict[str, Columns]:
    """Locked clock → time and power of one microbatch, by pipeline stage and pass; ``gpu`` is a100_sxm or a40."""
    curves: dict[str, list[tuple[float, float, float]]] = {}
    for r in _rows(root / "clock" / f"perseus_gpt3_{gpu}.csv"):
        time = float(r["time"])
        name = f"perseus-{gpu}-stage{r['stage']}-{r['instruction']}"
        curves.setdefault(name, []).append((float(r["frequency"]), time, float(r["energy"]) / time))
    return {name: _curve(points) for name, points in curves.items()}


def ttu(root: Path) -> dict[str, Columns]:
    """61 clocks of an A100 → time and power: dgemm, stream, LSTM, NAMD and 19 SPEC ACCEL applications."""
    curves: dict[str, list[tuple[float, float, float]]] = {}
    for path in sorted((root / "clock").glob("GA100-dvfs-*-dcgm.csv")):
        for r in _rows(path):
            point = (float(r["sm_app_clock"]), float(r["run_time"]), float(r["power_usage"]))
            curves.setdefault(f"ttu-{r['application']}", []).append(point)
    return {name: _curve(points) for name, points in curves.items()}


def kernel_tuner(root: Path) -> dict[str, Columns]:
    """Ten clocks of an A100 PCIe → time and power of an FMA kernel."""
    body = json.loads((root / "clock" / "kernel_tuner_fma_a100_pcie.json").read_text(encoding="utf-8"))
    points = [(float(e["core_freq"]), float(e["time"]) / 1e3, float(e["nvml_power"])) for e in body["cache"].values()]
    return {"kernel-tuner-fma": _curve(points)}


def clock_curves(root: Path) -> dict[str, Columns]:
    """All clock curves on which the requested clock was reached."""
    return {**perseus(root, "a100_sxm"), **ttu(root), **kernel_tuner(root)}


def zeus(root: Path) -> Iterator[tuple[str, Columns]]:
    """Batch × power limit → time and power of an epoch, by GPU, data set and optimizer. The clock is not recorded."""
    for gpu in ("v100", "a40"):
        sets: dict[str, list[dict[str, Any]]] = {}
        for r in _rows(root / "batch" / f"summary_power_{gpu}.csv"):
            name = f"zeus-{gpu}-{r['dataset']}-{r['network']}-{r['optimizer']}"
            batch = int(r["batch_size"])
            # Any step time is proportional to epoch time × batch; the size of the data set drops out.
            sets.setdefault(name, []).append(
                {"n_gpus": 1, "local_batch": batch, "power_limit_w": float(r["power_limit"]),
                 "step_time_s": float(r["time_per_epoch"]) * batch / 1e5, "power_w": float(r["average_power"])}
            )  # fmt: skip
        for name, rows in sets.items():
            yield name, _columns(rows)
