"""Traces of real clusters: jobs with arrival, duration and the GPUs they asked for."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from pfprofile.cluster.checks import read_body
from pfprofile.errors import InputError, UsageError, nearest

#: what can be read of a job → is it needed
FIELDS: dict[str, bool] = {
    "submit": True, "duration": True, "gpus": True, "name": False, "model": False, "global_batch": False,
    "steps": False, "deadline": False,
}  # fmt: skip
#: known traces: which column holds what
LAYOUTS: dict[str, dict[str, str]] = {
    "fig10": {
        "submit": "submit_time", "duration": "duration", "gpus": "num_gpu", "name": "job_id", "model": "model_name",
        "global_batch": "batch_size", "steps": "iteration", "deadline": "ddl",
    },
    "itp": {"submit": "submission_time", "duration": "duration", "gpus": "num_gpu", "name": "job_id"},
}  # fmt: skip


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


def parse_mapping(items: list[str]) -> dict[str, str]:
    """``submit=column`` and so on. Raises UsageError: no ``=``, an unknown field, or a needed one is missing."""
    mapping: dict[str, str] = {}
    for item in items:
        field, equals, column = (part.strip() for part in item.partition("="))
        if not equals or not column:
            raise UsageError(f"--map {item!r}: write FIELD=COLUMN", "for example --map submit=submit_time")
        if field not in FIELDS:
            raise UsageError(
                f"--map {item!r}: no field {field!r}{nearest(field, FIELDS)}", f"one of {', '.join(FIELDS)}"
            )
        mapping[field] = column
    missing = [field for field, needed in FIELDS.items() if needed and field not in mapping]
    if mapping and missing:
        raise UsageError(f"--map: {missing[0]} is not mapped", f"add --map {missing[0]}=COLUMN")
    return mapping


def read_trace(path: Path, mapping: Mapping[str, str] | None = None, first: int | None = None) -> list[TraceJob]:
    """Read a trace; without a mapping its header must be that of an ITP or fig10 trace.

    Args:
        path: CSV.
        mapping: field (see `FIELDS`) → column. Arrivals are seconds or ISO times; deadlines count from arrival.
        first: read no more than so many jobs.

    Raises:
        InputError: an unknown header, a missing or wrong value, arrivals that run backwards; file and line are named.
    """
    reader = csv.DictReader(io.StringIO(read_body(path).lstrip("\ufeff")), skipinitialspace=True)
    header = tuple(name.strip() for name in reader.fieldnames or ())
    reader.fieldnames = list(header)
    columns = _columns(path, header, mapping)
    absolute = not mapping  # a known trace's deadline is on the clock of its arrivals
    jobs: list[TraceJob] = []
    begin: float | None = None
    for number, row in enumerate(reader):
        if first is not None and number >= first:
            break
        job, submit = _job(row, columns, f"{path}: line {reader.line_num}", number, absolute)
        begin = submit if begin is None else begin
        if submit - begin < (jobs[-1].submit_s if jobs else 0.0):
            where = f"{path}: line {reader.line_num}"
            raise InputError(f"{where}: the arrival lies before that of the line above", "sort the trace by arrival")
        jobs.append(replace(job, submit_s=submit - begin))
    if not jobs:
        raise InputError(f"{path}: no jobs")
    return jobs


def _columns(path: Path, header: tuple[str, ...], mapping: Mapping[str, str] | None) -> Mapping[str, str]:
    if mapping:
        for field, column in mapping.items():
            if column not in header:
                raise InputError(f"{path}: no column {column!r} for {field}{nearest(column, header)}")
        return mapping
    layout = next((columns for columns in LAYOUTS.values() if set(columns.values()) <= set(header)), None)
    if layout is None:
        wanted = next((c for c in LAYOUTS["itp"].values() if c not in header), "job_id")
        raise InputError(
            f"{path}: not a known trace: no column {wanted!r}{nearest(wanted, header)}",
            "say which column is which with --map submit=COLUMN --map duration=COLUMN --map gpus=COLUMN",
        )
    return layout


def _job(
    row: dict[str, str], columns: Mapping[str, str], where: str, number: int, absolute: bool
) -> tuple[TraceJob, float]:
    """The job without its arrival, and the arrival on the trace's own clock, s."""

    def number_of(field: str, least: float = 0.0) -> float:
        return _number(row, columns[field], where, least)

    def optional(field: str) -> float | None:
        return number_of(field) if field in columns and (row.get(columns[field]) or "").strip() else None

    submit = _instant(row, columns["submit"], where)
    batch, deadline = optional("global_batch"), optional("deadline")
    if deadline is not None and absolute:
        deadline -= submit
    job = TraceJob(
        (row.get(columns["name"]) or "").strip() if "name" in columns else f"job-{number}",
        0.0,
        number_of("duration"),
        int(number_of("gpus", 1.0)),
        (row.get(columns["model"]) or "").strip() or None if "model" in columns else None,
        int(batch) if batch else None,
        optional("steps"),
        deadline,
    )
    return job, submit


def _instant(row: dict[str, str], column: str, where: str) -> float:
    """A number of seconds, or an ISO time (UTC where it names no zone)."""
    text = (row.get(column) or "").strip()
    if text[:4].isdigit() and text[4:5] == "-":
        try:
            time = datetime.fromisoformat(text)
        except ValueError:
            raise InputError(f"{where}: column {column!r} is {text!r}", "expected seconds or an ISO time") from None
        return (time if time.tzinfo else time.replace(tzinfo=UTC)).timestamp()
    return _number(row, column, where)


def _number(row: dict[str, str], column: str, where: str, least: float = 0.0) -> float:
    text = row.get(column)
    try:
        value = float(text or "")
    except ValueError:
        raise InputError(f"{where}: column {column!r} is {text!r}", "expected a number") from None
    if not least <= value < 1e15:
        raise InputError(f"{where}: column {column!r} is {text}", f"expected a number from {least:g} on")
    return value
