"""Simulated measurements: a known truth, so that a fit can be judged."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from pfprofile.model.forms import evaluate
from pfprofile.model.terms import INDEX, TERMS, Design

TRUTH = {
    "a0": 0.02, "a1": 0.0008, "c1": 0.0012, "p": 1.5, "kappa": 0.04, "alpha_r": 0.006, "beta_r": 0.003,
    "alpha_n": 0.03, "beta_n": 0.001, "delta_n": 0.002, "gamma": 2.0, "P0": 55.0, "e0": 1.0, "e1": 0.55, "rho": 0.4,
    "v": 1.0, "phi_knee": 0.75, "eta": 0.99, "q": 60.0, "phi_min": 0.1,
}  # fmt: skip
F_MAX = 1410.0
Columns = dict[str, list[Any]]


def truth(**changes: float) -> np.ndarray:
    theta = np.empty(len(TERMS))
    for name, j in INDEX.items():
        theta[j] = {**TRUTH, **changes}[name]
    return theta


@pytest.fixture
def simulate() -> Callable[..., Columns]:
    """Columns with a profile's names, drawn from the joint form with log-normal noise."""

    def make(
        gpus: Sequence[int | tuple[int, int]] = (1, 2, 4, 8, (16, 2), (32, 4)),
        batches: Sequence[int] = (16, 32, 64, 128),
        clocks: Sequence[float | None] = (None,),
        *,
        noise: float = 0.01,
        seed: int = 0,
        power: bool = True,
        repeats: int = 1,
        cap_w: float | None = None,
        limits: Sequence[float] = (),
        **changes: float,
    ) -> Columns:
        rng = np.random.default_rng(seed)
        placed = [(g, 1) if isinstance(g, int) else g for g in gpus]
        grid = [
            (n, k, b, f, lim) for n, k in placed for b in batches for f in clocks for lim in (limits or [cap_w])
            for _ in range(repeats)
        ]  # fmt: skip
        n, k, b = (np.array([row[i] for row in grid], dtype=float) for i in range(3))
        phi = np.array([1.0 if row[3] is None else row[3] / F_MAX for row in grid])
        caps = np.array([np.nan if row[4] is None else row[4] for row in grid])
        values = evaluate(truth(**changes), Design(n, k, b, np.ones_like(n), phi), caps)
        m = len(grid)
        columns: Columns = {
            "n_gpus": [row[0] for row in grid], "n_nodes": [row[1] for row in grid],
            "local_batch": [row[2] for row in grid], "accum_steps": [1] * m,
            "requested_clock_mhz": [row[3] for row in grid], "power_limit_w": [row[4] for row in grid],
            "step_time_s": list(values.time_s * np.exp(noise * rng.standard_normal(m))),
        }  # fmt: skip
        if power:
            columns["power_w"] = list(values.power_w * np.exp(noise * rng.standard_normal(m)))
        return columns

    return make


@pytest.fixture
def simulated_profile(simulate: Callable[..., Columns]) -> Callable[..., Any]:
    """The same as a profile."""
    from pfprofile.profile import Profile, ProfileMetadata, WorkloadFacts

    def make(metadata: dict[str, Any] | None = None, **options: Any) -> Profile:
        columns = simulate(**options)
        rows = [dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)]
        common = {"workload": "toy", "device_name": "NVIDIA A100-SXM4"}
        facts = WorkloadFacts("image", 10_000, 64, 512)
        about = {"source": "measured", "gpus_per_node": 8, "workload": facts, **(metadata or {})}
        return Profile.from_rows(({**common, **row} for row in rows), ProfileMetadata(**about))

    return make
