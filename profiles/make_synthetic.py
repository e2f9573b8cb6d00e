"""Make the synthetic A100 profiles and their models: ``python profiles/make_synthetic.py [WORKLOAD...]``.

Deterministic: the same coefficients and seed give the same files. What is measured and what is assumed stands in
README.md beside this script, and in the notes of every file it writes. Nothing about accuracy follows from them.
"""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from pfprofile._version import __version__
from pfprofile.model.fit import fit_profile
from pfprofile.model.forms import evaluate
from pfprofile.model.store import save_model
from pfprofile.model.terms import INDEX, TERMS, Design
from pfprofile.profile import Profile, ProfileMetadata, WorkloadFacts, write_profile

HERE = Path(__file__).resolve().parent
DEVICE = "NVIDIA A100-SXM4"
GPUS_PER_NODE = 8
POWER_LIMIT_W = 400.0
F_MAX_MHZ = 1410.0
SUPPORTED_MHZ = tuple(float(f) for f in range(210, 1411, 15))
CLOCKS_MHZ = (210.0, 510.0, 810.0, 1005.0, 1200.0, 1305.0, 1410.0)
#: (GPUs, nodes): powers of two on as few nodes as possible, and two GPUs on two nodes
PLACEMENTS = ((1, 1), (2, 1), (2, 2), (4, 1), (8, 1), (16, 2), (32, 4), (64, 8))
#: dynamic power while synchronising, of that while computing: assumed, no public measurement
SYNC_POWER_SHARE = 0.35
TIME_NOISE, POWER_NOISE = 0.01, 0.01
SEED = 20230412
IDLE_BELOW_STATIC_W = 10.0
SCALING = ("a0", "p", "kappa", "alpha_r", "beta_r", "alpha_n", "beta_n", "delta_n", "gamma")


@dataclass(frozen=True, slots=True)
class Setting:
    """What is swept of a workload, and facts about its data set."""

    batches: tuple[int, ...]
    oom_batch: int
    facts: WorkloadFacts
    bytes_per_sample: float
    bytes_fixed: float


SETTINGS = {
    "resnet50": Setting((16, 32, 64, 128, 256), 512, WorkloadFacts("image", 1_281_167, 64, 512), 95e6, 1.5e9),
    "vgg16": Setting((16, 32, 64, 128, 256), 512, WorkloadFacts("image", 1_281_167, 64, 512), 110e6, 3.5e9),
    "inception_v3": Setting((8, 16, 32, 64, 128), 256, WorkloadFacts("image", 1_281_167, 32, 256), 190e6, 1.5e9),
    "bert": Setting((8, 16, 32, 64, 128), 256, WorkloadFacts("sequence", 8_551, 32, 128), 200e6, 3.0e9),
    "gpt2": Setting((16, 32, 64, 128, 256), 512, WorkloadFacts("sequence", 25_000, 64, 256), 100e6, 3.0e9),
    "deepspeech2": Setting((4, 8, 16, 32, 64), 128, WorkloadFacts("utterance", 281_241, 16, 64), 420e6, 2.0e9),
}
NOTES = (
    "synthetic: step times over GPUs and batch from coefficients fitted to ElasticFlow's A100 table "
    "(pkusys/ElasticFlow, Apache-2.0)",
    "clock and voltage shape from coefficients fitted to Perseus GPT-3 on an A100 (ml-energy/zeus, Apache-2.0)",
    "height of the power from the share of the limit that Zeus measured on an A40 (ml-energy/zeus, Apache-2.0)",
    "assumed: 400 W limit, dynamic power while synchronising 35 % of that while computing, one clock-bound share for "
    "all workloads, the largest batch of the source table is the largest that fits",
    "noise: 1 % of time and of power, log-normal",
)


#: share of the limit that is used, sharpness, lowest relative clock of a steady load: the priors of `fit`
STEADY_LOAD = {"eta": 0.99, "q": 60.0, "phi_min": 0.1}


def parameters(device: dict[str, float], workload: dict[str, float], setting: Setting) -> np.ndarray:
    """The joint form's parameters of one workload."""
    share = device["clock_bound_share"]
    largest = setting.batches[-1]
    values = {
        name: workload[name]
        for name in ("a0", "p", "kappa", "alpha_r", "beta_r", "alpha_n", "beta_n", "delta_n", "gamma")
    }
    values |= {"a1": (1 - share) * workload["sample_s"], "c1": share * workload["sample_s"]}
    values |= {"P0": device["P0"], "v": device["v"], "phi_knee": device["phi_knee"], "rho": SYNC_POWER_SHARE}
    full_load_s = (values["a0"] ** values["p"] + (workload["sample_s"] * largest) ** values["p"]) ** (1 / values["p"])
    dynamic_j = (POWER_LIMIT_W * workload["limit_share"] - device["P0"]) * full_load_s
    values |= {"e0": dynamic_j * workload["e0_share"], "e1": dynamic_j * (1 - workload["e0_share"]) / largest}
    # No point comes near the limit, so how it would bite is left as for any GPU.
    values |= STEADY_LOAD
    theta = np.empty(len(TERMS))
    for name, j in INDEX.items():
        theta[j] = values[name]
    return theta


def rows(name: str, theta: np.ndarray, setting: Setting, idle_w: float) -> list[dict[str, Any]]:
    """Every trial: the product placements × batches × clocks, and one that does not fit for each placement."""
    rng = np.random.default_rng([SEED, *name.encode()])
    grid = [(n, k, b, f) for n, k in PLACEMENTS for b in setting.batches for f in CLOCKS_MHZ]
    n, k, b, f = (np.array(a, dtype=np.float64) for a in zip(*grid, strict=True))
    values = evaluate(theta, Design(n, k, b, np.ones_like(n), f / F_MAX_MHZ), np.full(len(n), POWER_LIMIT_W))
    time = values.time_s * np.exp(TIME_NOISE * rng.standard_normal(len(n)))
    power = np.minimum(values.power_w * np.exp(POWER_NOISE * rng.standard_normal(len(n))), POWER_LIMIT_W)
    steps = np.maximum(np.round(20.0 / time), 10)
    out = []
    for i, (gpus, nodes, batch, clock) in enumerate(grid):
        out.append({
            **_common(name, gpus, nodes, batch, clock), "status": "ok",
            "achieved_clock_mhz": round(float(values.phi[i]) * F_MAX_MHZ, 1),
            "limited_by": "power" if values.capped[i] else "none",
            "steps": int(steps[i]),
            "step_time_s": float(f"{time[i]:.6g}"),
            "step_time_std_s": float(f"{TIME_NOISE * time[i]:.3g}"),
            "power_w": float(f"{power[i]:.5g}"),
            "power_spread_w": 0.0 if gpus == 1 else float(f"{0.02 * power[i]:.3g}"),
            "idle_power_w": idle_w,
            "energy_j": float(f"{power[i] * gpus * time[i] * steps[i]:.7g}"),
            "energy_source": "synthetic",
            "memory_peak_bytes": int(setting.bytes_fixed + setting.bytes_per_sample * batch),
        })  # fmt: skip
    for gpus, nodes in PLACEMENTS:
        out.append({**_common(name, gpus, nodes, setting.oom_batch, F_MAX_MHZ), "status": "oom",
                    "error": f"out of memory at local batch {setting.oom_batch} (synthetic)"})  # fmt: skip
    return out


def _common(name: str, gpus: int, nodes: int, batch: int, clock: float) -> dict[str, Any]:
    return {
        "workload": name, "device_name": DEVICE, "n_gpus": gpus, "n_nodes": nodes, "local_batch": batch,
        "accum_steps": 1, "precision": "fp32", "placement": "-".join([str(gpus // nodes)] * nodes),
        "requested_clock_mhz": clock, "power_limit_w": POWER_LIMIT_W,
    }  # fmt: skip


def make(name: str) -> Profile:
    """The profile of one workload."""
    body = json.loads((HERE / "coefficients.json").read_text(encoding="utf-8"))
    setting = SETTINGS[name]
    theta = parameters(body["device"], body["workloads"][name], setting)
    metadata = ProfileMetadata(
        source="synthetic", tool_version=__version__, argv=("profiles/make_synthetic.py", name), seed=SEED,
        gpu_name=DEVICE, power_limit_w=POWER_LIMIT_W, supported_clocks_mhz=SUPPORTED_MHZ, default_clock_mhz=F_MAX_MHZ,
        gpus_per_node=GPUS_PER_NODE, workload=setting.facts, notes=NOTES,
    )  # fmt: skip
    idle_w = round(body["device"]["P0"] - IDLE_BELOW_STATIC_W, 1)
    return Profile.from_rows(rows(name, theta, setting, idle_w), metadata)


def main(names: list[str]) -> int:
    """Write profiles and models."""
    for name in names or list(SETTINGS):
        profile = make(name)
        path = HERE / "a100-sxm4" / f"{name}.parquet"
        write_profile(profile, path)
        save_model(fit_profile(profile, str(path), dated=False), path.with_suffix(".json"))
        sys.stderr.write(f"wrote {path} and its model\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
