"""Fit the coefficients of the synthetic A100 profiles on public measurements: ``python -m benchmarks._coefficients``.

Writes profiles/coefficients.json. The measurements themselves stay where they are.
"""

from __future__ import annotations

import json
import statistics
import sys
from pathlib import Path
from typing import Any

from benchmarks import _datasets as datasets
from pfprofile.model.fitting import frame_of, pose, solve
from pfprofile.model.observations import from_columns
from pfprofile.model.terms import INDEX

TARGET = Path(__file__).resolve().parent.parent / "profiles" / "coefficients.json"
#: our workload -> (scaling table, workload of the batch x power-limit tables or None)
WORKLOADS = {
    "resnet50": ("resnet50", "imagenet-resnet50"),
    "vgg16": ("vgg16", None),
    "inception_v3": ("inception3", None),
    "bert": ("bert", "squad-bert_base_uncased"),
    "gpt2": ("gpt2", None),
    "deepspeech2": ("deepspeech2", "librispeech-deepspeech2"),
}
SYNC = ("kappa", "alpha_r", "beta_r", "alpha_n", "beta_n", "delta_n", "gamma")


def fitted(columns: datasets.Columns, device: str) -> dict[str, float]:
    """All parameters of the joint form, fitted to one data set."""
    obs = from_columns(columns)
    theta = solve(pose(obs, frame_of(obs), device)).theta
    return {name: float(theta[j]) for name, j in INDEX.items()}


def clock_shape(root: Path) -> dict[str, float]:
    """Medians over the Perseus A100 curves: voltage, static power, and the clock-bound share of a sample's time."""
    fits = [fitted(c, "A100") for c in datasets.perseus(root, "a100_sxm").values()]
    middle = {name: statistics.median(f[name] for f in fits) for name in ("v", "phi_knee", "P0")}
    middle["clock_bound_share"] = statistics.median(f["c1"] / (f["c1"] + f["a0"]) for f in fits)
    return middle


def power_shape(root: Path, name: str) -> dict[str, float]:
    """From the A40 batch × limit table: the highest power as a share of the limit, and how e0 relates to e1."""
    columns = next(c for n, c in datasets.zeus(root) if n.startswith(f"zeus-a40-{name}"))
    fit = fitted(columns, "A40")
    largest = max(columns["local_batch"])
    most = max(p / limit for p, limit in zip(columns["power_w"], columns["power_limit_w"], strict=True) if limit == 300)
    return {"limit_share": min(most, 1.0), "e0_share": fit["e0"] / (fit["e0"] + fit["e1"] * largest)}


def coefficients(root: Path) -> dict[str, Any]:
    """Everything that profiles/make_synthetic.py needs."""
    out: dict[str, Any] = {"device": {k: round(v, 6) for k, v in clock_shape(root).items()}, "workloads": {}}
    for workload, (scaling, power) in WORKLOADS.items():
        fit = fitted(datasets.elasticflow(root, scaling), "A100")
        shape = power_shape(root, power or "imagenet-resnet50")
        entry = {name: fit[name] for name in ("a0", "p", *SYNC)}
        entry["sample_s"] = fit["a1"] + fit["c1"]
        entry.update(shape)
        out["workloads"][workload] = {k: float(f"{v:.6g}") for k, v in entry.items()}
    return out


def main() -> int:
    """Write the coefficients."""
    root = datasets.data_root()
    if root is None:
        sys.stderr.write("no data: set PFPROFILE_DATA (see benchmarks/DATA.md)\n")
        return 3
    TARGET.write_text(json.dumps(coefficients(root), indent=1) + "\n", encoding="utf-8")
    sys.stderr.write(f"wrote {TARGET}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
