"""Time of a fit at 12, 100, 2,000 and 20,000 rows, beside AdaptDL's objective: ``python -m benchmarks speed``.

Figures only: they never set an exit code.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable

import numpy as np

from benchmarks import _adaptdl
from pfprofile.model.fitting import STARTS, frame_of, pose, solve
from pfprofile.model.forms import evaluate
from pfprofile.model.observations import Observations
from pfprofile.model.terms import TERMS, Design

SIZES = (12, 100, 2_000, 20_000)
TRUTH = {"a0": 0.02, "a1": 0.002, "c1": 1e-6, "p": 1.5, "kappa": 0.03, "alpha_r": 0.006, "beta_r": 0.003,
         "alpha_n": 0.03, "beta_n": 0.001, "delta_n": 0.001, "gamma": 2.0, "P0": 55.0, "e0": 1.0, "e1": 0.5, "rho": 0.4,
         "v": 1.0, "phi_knee": 0.7, "eta": 0.99, "q": 60.0, "phi_min": 0.1}  # fmt: skip


def simulated(rows: int, seed: int = 0) -> Observations:
    """Distinct points without power, drawn from the form with 2 % noise."""
    rng = np.random.default_rng(seed)
    n = 2.0 ** rng.integers(0, 7, rows)
    k = np.maximum(1.0, n // 8)
    b = rng.integers(1, 4096, rows).astype(np.float64)
    one, unknown = np.ones(rows), np.full(rows, np.nan)
    theta = np.array([TRUTH[t.name] for t in TERMS])
    t = evaluate(theta, Design(n, k, b, one, one)).time_s * np.exp(0.02 * rng.standard_normal(rows))
    return Observations(n, k, b, one, unknown, unknown, unknown, t, unknown, one)


def seconds(call: Callable[[], object], repeats: int = 3) -> float:
    """The shortest of a few runs, s."""
    best = float("inf")
    for _ in range(repeats):
        start = time.perf_counter()
        call()
        best = min(best, time.perf_counter() - start)
    return best


def main() -> int:
    """Print the table."""
    sys.stdout.write(
        f"| rows | ours, {len(STARTS)} starts (s) | AdaptDL, 1 start (s) | ratio |\n|---:|---:|---:|---:|\n"
    )
    solve(pose(simulated(50), frame_of(simulated(50))))  # imports are not part of it
    for rows in SIZES:
        obs = simulated(rows)
        problem = pose(obs, frame_of(obs))
        ours, theirs = seconds(lambda p=problem: solve(p)), seconds(lambda o=obs: _adaptdl.fit(o))
        sys.stdout.write(f"| {rows} | {ours:.3f} | {theirs:.3f} | {ours / theirs:.2f} |\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
