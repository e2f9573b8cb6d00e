"""Model files fitted on profiles that the double made: what the command line is tested with."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from pfprofile.model import fit_profile, save_model
from pfprofile.model.points import Points
from pfprofile.profile import Profile, ProfileMetadata, WorkloadFacts
from pfprofile.profile.places import device_slug
from tests.plan.double import Double


def profile_of(double: Double, *, power: bool = True, samples_per_epoch: int | None = 50_000) -> Profile:
    """Trials at 1-16 GPUs × three batches × four clocks, with a little noise."""
    rng = np.random.default_rng(3)
    rows = []
    for n in (1, 2, 4, 8, 16):
        for local in (16, 64, 256):
            for clock in double.clocks[::3]:
                point = Points.of(n, local, n_nodes=max(1, n // 8), sm_clock_mhz=clock)
                found = double.predict(point)
                step_s = float(found.step_time_s[0] * np.exp(rng.normal(0, 0.01)))
                watts = float(found.power_w[0] * np.exp(rng.normal(0, 0.01))) if power else None
                rows.append(
                    {
                        "workload": double.workload, "device_name": double.device_name, "n_gpus": n,
                        "n_nodes": max(1, n // 8), "local_batch": local, "requested_clock_mhz": clock,
                        "achieved_clock_mhz": clock, "step_time_s": step_s, "power_w": watts, "idle_power_w": 55.0,
                        "limited_by": "none",
                    }
                )  # fmt: skip
    facts = WorkloadFacts("image", samples_per_epoch, 64, 256)
    return Profile.from_rows(
        rows,
        ProfileMetadata(
            source="synthetic",
            gpu_name=double.device_name,
            gpus_per_node=8,
            workload=facts,
            supported_clocks_mhz=double.clocks,
            default_clock_mhz=double.clocks[-1],
        ),
    )  # fmt: skip


def save(folder: Path, double: Double, **options: object) -> Path:
    """Fit and save under ``folder/<slug>/<workload>.json``."""
    path = folder / device_slug(double.device_name) / f"{double.workload}.json"
    save_model(fit_profile(profile_of(double, **options)), path)  # type: ignore[arg-type]
    return path
