"""Finished jobs of a batch system → a jobs file: their run time becomes work by the model they are taken to run."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from pfprofile.cluster.jobs import parse_jobs
from pfprofile.cluster.speed_table import split_batch
from pfprofile.errors import InputError
from pfprofile.model.points import Points
from pfprofile.model.store import load_model
from pfprofile.profile.importers.base import FinishedJob
from pfprofile.profile.importers.sacct import said_of_jobs
from pfprofile.profile.io import write_text

COLUMNS = ("name", "model", "global_batch", "samples", "submit", "max_gpus", "partition", "account")


def job_entries(
    jobs: Sequence[FinishedJob], model_name: str, global_batch: int | None = None
) -> tuple[list[dict[str, Any]], list[str]]:
    """Entries of a jobs file.

    Args:
        jobs: in the order of their arrival.
        model_name: what every job trained; its throughput at the job's GPUs and the default clock turns the run
            time into samples.
        global_batch: samples in a step of every job; None = the model's.

    Returns:
        The entries, and what the person should know.

    Raises:
        InputError: no such model, or one that does not know its global batch.
    """
    model = load_model(model_name)
    batch = global_batch or model.facts.default_global_batch
    counts = sorted({job.n_gpus for job in jobs})
    if not batch:
        raise InputError(f"{model_name}: the model knows no default_global_batch",
                         "add --set global_batch=COUNT")  # fmt: skip
    local, accum = np.array([split_batch(batch, n, model.max_local_batch) for n in counts]).T
    per_node = model.gpus_per_node or 1
    nodes = [-(-n // per_node) for n in counts]
    found = model.predict(Points.of(counts, local, n_nodes=nodes, accum_steps=accum))
    rates = dict(zip(counts, found.throughput_per_s.tolist(), strict=True))
    outside = [n for n, far in zip(counts, found.extrapolated.tolist(), strict=True) if far]
    notices = [f"work is run time × the throughput that {model_name} predicts at the default clock, batch {batch}"]
    if outside:
        notices.append(
            f"{model_name} was not measured at {', '.join(map(str, outside))} GPUs: their work is extrapolated"
        )
    entries: list[dict[str, Any]] = []
    for job in jobs:
        entry: dict[str, Any] = {
            "name": job.name, "model": model_name, "global_batch": batch,
            "samples": float(f"{rates[job.n_gpus] * job.duration_s:.6g}"), "submit": job.submit_s,
            "max_gpus": job.n_gpus, "partition": job.partition, "account": job.account,
        }  # fmt: skip
        entries.append({k: v for k, v in entry.items() if v is not None})
    parse_jobs(entries, "the jobs file")
    return entries, notices


def write_jobs(entries: Sequence[Mapping[str, Any]], path: Path) -> None:
    """Write entries as CSV where the name says so, else as TOML.

    Raises:
        OutputError: the file cannot be written.
    """
    if path.suffix.lower() == ".csv":
        sink = io.StringIO()
        writer = csv.DictWriter(sink, fieldnames=COLUMNS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(entries)
        write_text(path, sink.getvalue())
        return
    # A JSON string is a TOML string as well, escapes included.
    blocks = ["[[job]]\n" + "".join(f"{k} = {json.dumps(v)}\n" for k, v in entry.items()) for entry in entries]
    write_text(path, "\n".join(blocks))


def store_jobs(jobs: Sequence[FinishedJob], constants: Sequence[str], output: Path | None) -> tuple[Path, list[str]]:
    """Write finished jobs to ``output`` or ``jobs.toml``.

    Returns:
        Where, and what the person should know.

    Raises:
        UsageError: no `--set model=NAME`.
        InputError, OutputError: as `job_entries` and `write_jobs`.
    """
    path = output or Path("jobs.toml")
    entries, notices = job_entries(jobs, *said_of_jobs(constants))
    write_jobs(entries, path)
    return path, notices
