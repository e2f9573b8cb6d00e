"""Public traces of real clusters: jobs with arrival, duration and the GPUs they asked for."""

from __future__ import annotations

import csv
import io
from dataclasses import dataclass
from pathlib import Path

from pfprofile.cluster.checks import read_body
from pfprofile.errors import InputError, nearest

#: known header → which columns hold name, submit, duration, GPUs, model, batch, iterations, deadline
LAYOUTS: dict[str, tuple[str, ...]] = {
    "itp": ("job_id", "submission_time", "duration", "num_gpu"),
    "fig10": ("job_id", "submit_time", "duration", "num_gpu", "model_name", "batch_size", "iteration", "ddl"),
}


@dataclass(frozen=True, slots=True)
class TraceJob:
    """One job of a trace; what a trace does not say is None.

    Attributes:
        submit_s: arrival after the trace's first job, s.
        duration_s: how long it ran on ``n_gpus``, s.
        model, global_batch, steps, deadline_s: where the trace names them (deadline from submit).
    """

    name: str
    submit_s: float
    duration_s: float
    n_gpus: int
    model: str | None = None
    global_batch: int | None = None
    steps: float | None = None
    deadline_s: float | None = None


def read_trace(path: Path) -> list[TraceJob]:
    """Read an ITP or fig10 trace; the header says which.

    Raises:
        InputError: an unknown header, a missing or wrong value, arrivals that run backwards; file and line are named.
    """
    reader = csv.DictReader(io.StringIO(read_body(path).lstrip("\ufeff")))
    header = tuple(name.strip() for name in reader.fieldnames or ())
    layout = next((n for n in ("fig10", "itp") if set(LAYOUTS[n]) <= set(header)), None)
    if layout is None:
        wanted = next((c for c in LAYOUTS["itp"] if c not in header), "job_id")
        raise InputError(f"{path}: not a known trace: no column {wanted!r}{nearest(wanted, header)}")
    jobs: list[TraceJob] = []
    first: float | None = None
    for row in reader:
        where = f"{path}: line {reader.line_num}"
        submit = _number(row, "submission_time" if layout == "itp" else "submit_time", where, least=0.0)
        duration = _number(row, "duration", where, least=0.0)
        gpus = int(_number(row, "num_gpu", where, least=1.0))
        first = submit if first is None else first
        if submit - first < (jobs[-1].submit_s if jobs else 0.0):
            raise InputError(f"{where}: the arrival lies before that of the line above", "sort the trace by arrival")
        name = row["job_id"]
        if layout == "itp":
            jobs.append(TraceJob(name, submit - first, duration, gpus))
        else:
            jobs.append(
                TraceJob(
                    name, submit - first, duration, gpus, row["model_name"], int(_number(row, "batch_size", where)),
                    _number(row, "iteration", where), _number(row, "ddl", where) - submit,
                )
            )  # fmt: skip
    if not jobs:
        raise InputError(f"{path}: no jobs")
    return jobs


def _number(row: dict[str, str], column: str, where: str, least: float = 0.0) -> float:
    text = row.get(column)
    try:
        value = float(text or "")
    except ValueError:
        raise InputError(f"{where}: column {column!r} is {text!r}", "expected a number") from None
    if not least <= value < 1e15:
        raise InputError(f"{where}: column {column!r} is {text}", f"expected a number from {least:g} on")
    return value
