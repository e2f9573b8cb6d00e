"""fig10 as its authors ran it: their throughput tables in place of a model, their jobs, their results beside ours."""

from __future__ import annotations

import csv
import math
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from benchmarks._jobs import a100s
from pfprofile.cluster.traces import read_trace
from pfprofile.errors import InputError
from pfprofile.model.points import Floats, Points, Predictions
from pfprofile.plan.outcome import Options
from pfprofile.plan.simulator import simulate
from pfprofile.plan.workload import trace_jobs
from pfprofile.policy.base import Job
from pfprofile.policy.registry import load_policy
from pfprofile.profile import WorkloadFacts

NODES = 16
#: our policy → the authors' result, and how far our average JCT may be from theirs (None: explained, not demanded)
AUTHORS: dict[str, tuple[str, float | None]] = {
    "tiresias": ("dlas-gpu", 0.01),
    "edf": ("edf", 0.04),
    "elasticflow": ("ef-accessctrl", 0.08),
    "gandiva": ("gandiva", None),
    "themis": ("themis", None),
}


@dataclass(frozen=True)
class Measured:
    """A throughput table as a model: exactly what was measured, and nothing in between. Power is not in it."""

    workload: str
    rates: dict[tuple[int, int], float]
    device_name: str = "NVIDIA A100-SXM4"
    has_power: bool = True
    gpus_per_node: int = 8
    source: str = "measured"
    supported_clocks_mhz: tuple[float, ...] = ()
    default_clock_mhz: float | None = None
    max_local_batch: int | None = None
    idle_power_w: float | None = None
    facts: WorkloadFacts = field(default_factory=lambda: WorkloadFacts("sample", None, 64, 64))

    @property
    def digest(self) -> str:
        """Its name."""
        return self.workload

    def predict(self, points: Points, level: float = 0.9) -> Predictions:
        """Measured times; raises InputError for what was not measured."""
        samples = points.n_gpus * points.local_batch * points.accum_steps
        keys = [(int(b), int(n)) for b, n in zip(samples, points.n_gpus, strict=True)]
        if any(key not in self.rates for key in keys):
            raise InputError(f"{self.workload}: not measured at {keys}")
        time = np.array([1.0 / self.rates[key] for key in keys])
        watts = np.ones(len(time))
        energy = points.n_gpus * time
        return Predictions(points, time, time, time, samples / time, watts, watts, watts, energy, watts < 0)

    def draws(self, points: Points, n_draws: int, seed: int) -> tuple[Floats, Floats]:
        """No uncertainty is known."""
        found = self.predict(points)
        return np.tile(found.step_time_s, (n_draws, 1)), np.tile(found.power_w, (n_draws, 1))


def measured_models(root: Path) -> dict[str, Measured]:
    """Every table by our workload names; 0 = not measured."""
    models = {}
    for path in sorted((root / "scaling" / "elasticflow_a100").glob("*.csv")):
        rates: dict[tuple[int, int], float] = {}
        with path.open(encoding="utf-8") as file:
            for row in csv.DictReader(file):
                batch = int(float(row["global_batch_size"]))
                for column, text in row.items():
                    if column != "global_batch_size" and text and 0.0 < float(text) < math.inf:
                        rates[batch, int(column)] = float(text)
        name = "inception_v3" if path.stem == "inception3" else path.stem
        models[name] = Measured(name, rates)
    return models


def authors_jobs(root: Path, deadlines: bool) -> list[Job]:
    """The 100 jobs: iterations of the measured networks; a change of GPUs costs nothing, as in their simulator."""
    trace = read_trace(root / "traces" / "fig10" / "jobs.csv")
    jobs = trace_jobs(trace, measured_models(root), a100s(NODES), seed=0, deadlines=deadlines)
    steps = {job.name: job.steps * (job.global_batch or 0) for job in trace if job.steps}
    return [replace(job, work=steps[job.name], rescale_s=0.0) for job in jobs]


def authors_jct_s(root: Path, name: str) -> dict[str, float]:
    """Their JCTs by job."""
    with (root / "traces" / "fig10" / f"result-{name}.csv").open(encoding="utf-8") as file:
        return {r["job_id"]: float(r["end_time"]) - float(r["submit_time"]) for r in csv.DictReader(file)}


@dataclass(frozen=True, slots=True)
class Line:
    """Ours beside theirs; ``spread`` is the median of the jobs' own differences."""

    policy: str
    ours_s: float
    theirs_s: float
    median_difference: float
    allowed: float | None

    @property
    def difference(self) -> float:
        """Of the average JCTs."""
        return self.ours_s / self.theirs_s - 1.0

    @property
    def met(self) -> bool:
        """Whether it is as near as was asked for."""
        return self.allowed is None or abs(self.difference) <= self.allowed


def check(root: Path) -> list[Line]:
    """All five policies."""
    lines = []
    for policy, (name, allowed) in AUTHORS.items():
        make = load_policy(policy)
        jobs = authors_jobs(root, bool(getattr(make, "needs_deadlines", False)))
        outcome = simulate(jobs, a100s(NODES), make(), Options(record=False))
        theirs = authors_jct_s(root, name)
        ours = {j.job.name: j.finished_s - j.job.submit_s for j in outcome.jobs}
        each = [abs(ours[key] / theirs[key] - 1.0) for key in theirs]
        lines.append(
            Line(policy, outcome.avg_jct_s, float(np.mean(list(theirs.values()))), float(np.median(each)), allowed)
        )
    return lines
