"""Jobs as people write them (TOML, CSV, JSON) and as the planner uses them."""

from __future__ import annotations

import csv
import io
import json
import tomllib
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, WithJsonSchema, model_validator

from pfprofile.cluster.checks import first_error, no_bool, read_body
from pfprofile.errors import InputError, UsageError
from pfprofile.units import parse_duration

WORK_KEYS = ("samples", "steps", "epochs")


@dataclass(frozen=True, slots=True)
class JobRequest:
    """One job as asked for; exactly one of samples, steps and epochs is set.

    Attributes:
        name: unique in its file.
        model: path or name of a fitted model.
        global_batch: samples in one optimizer step; None = the model's default.
        submit_s: arrival, s after the plan's start.
        min_gpus: fewest GPUs; rounded up to a power of two.
        max_gpus: most GPUs; rounded down to a power of two. None = no limit.
        deadline_s: s after ``submit_s`` by which it must finish; None = none.
        rescale_s: cost of a checkpoint and restart, s; None = 30 + 2·(log2 n + 1).
        command, partition, account: handed on to exports.
    """

    name: str
    model: str
    global_batch: int | None = None
    samples: float | None = None
    steps: float | None = None
    epochs: float | None = None
    submit_s: float = 0.0
    min_gpus: int = 1
    max_gpus: int | None = None
    deadline_s: float | None = None
    rescale_s: float | None = None
    command: str | None = None
    partition: str | None = None
    account: str | None = None


def seconds(value: Any) -> Any:
    """A number is seconds; text is ``2h`` or a plain number. Raises ValueError otherwise."""
    if not isinstance(value, str):
        return value
    with suppress(ValueError):
        return float(value)
    try:
        return parse_duration(value)
    except UsageError as error:
        raise ValueError(str(error)) from None


#: Bounds far beyond any job (a century; 10¹⁸ samples; a billion GPUs) that keep sums and integers exact.
Seconds = Annotated[
    float,
    Field(ge=0, le=3e9, allow_inf_nan=False),
    BeforeValidator(seconds),
    BeforeValidator(no_bool),
    WithJsonSchema({"type": ["number", "string"], "minimum": 0}),
]
Work = Annotated[float, Field(gt=0, le=1e18, allow_inf_nan=False), BeforeValidator(no_bool)]
Count = Annotated[int, Field(gt=0, le=10**9), BeforeValidator(no_bool)]


class JobFile(BaseModel):
    """One ``[[job]]`` of a jobs file."""

    model_config = ConfigDict(extra="forbid")

    name: Annotated[str, Field(min_length=1, description="unique name of the job")]
    model: Annotated[str, Field(min_length=1, description="fitted model: a path, a name in models/, a shipped one")]
    global_batch: Annotated[Count | None, Field(description="samples in one step; default: the model's")] = None
    samples: Annotated[Work | None, Field(description="work in samples (one of samples, steps, epochs)")] = None
    steps: Annotated[Work | None, Field(description="work in optimizer steps")] = None
    epochs: Annotated[Work | None, Field(description="work in epochs")] = None
    submit: Annotated[Seconds, Field(description="arrival: seconds, or text such as 2h")] = 0.0
    min_gpus: Annotated[Count, Field(description="fewest GPUs; rounded up to a power of two")] = 1
    max_gpus: Annotated[Count | None, Field(description="most GPUs; rounded down to a power of two")] = None
    deadline: Annotated[Seconds | None, Field(description="latest finish, counted from submit")] = None
    rescale_s: Annotated[
        Seconds | None, Field(description="checkpoint-restart cost; default 30 s + 2·(log2 n + 1)")
    ] = None
    command: Annotated[str | None, Field(description="how to start it, for exports")] = None
    partition: Annotated[str | None, Field(description="Slurm partition, for exports")] = None
    account: Annotated[str | None, Field(description="Slurm account, for exports")] = None

    @model_validator(mode="after")
    def _check(self) -> JobFile:
        given = [k for k in WORK_KEYS if getattr(self, k) is not None]
        if len(given) != 1:
            found = " and ".join(given) or "none"
            raise ValueError(f"key samples, steps or epochs: exactly one must be given, found {found}")
        if self.max_gpus is not None and self.max_gpus < self.min_gpus:
            raise ValueError(f"key max_gpus: {self.max_gpus} is below min_gpus = {self.min_gpus}")
        if self.max_gpus is not None and floor_power_of_two(self.max_gpus) < ceil_power_of_two(self.min_gpus):
            raise ValueError(
                f"key max_gpus: no power of two lies between min_gpus = {self.min_gpus} and max_gpus = {self.max_gpus}"
            )
        return self

    def request(self) -> JobRequest:
        """The inner form."""
        body = self.model_dump()
        body["submit_s"], body["deadline_s"] = body.pop("submit"), body.pop("deadline")
        return JobRequest(**body)


def ceil_power_of_two(n: int) -> int:
    """The smallest power of two that is at least ``n``."""
    return 1 << max(0, n - 1).bit_length()


def floor_power_of_two(n: int) -> int:
    """The largest power of two that is at most ``n`` (n ≥ 1)."""
    return 1 << (n.bit_length() - 1)


def read_jobs(path: Path) -> list[JobRequest]:
    """Read a jobs file; its suffix says whether it is TOML, CSV or JSON.

    Raises:
        InputError: missing, unreadable, an unknown key, a wrong value, a duplicate name, times that are missing or
            run backwards; file, job and key are named.
    """
    return parse_jobs(_entries(path), str(path))


def parse_jobs(entries: Iterable[Mapping[str, Any]], where: str) -> list[JobRequest]:
    """Check entries of a jobs file; see `read_jobs`."""
    jobs: list[JobRequest] = []
    seen: dict[str, int] = {}
    rows = list(entries)
    if not rows:
        raise InputError(f"{where}: no jobs", "add at least one [[job]]")
    timed: float | None = None  # the latest submit that was given; a job that gives none arrives at 0
    for i, row in enumerate(rows, start=1):
        name = row.get("name")
        label = f"{where}: job {name!r} (entry {i})" if isinstance(name, str) else f"{where}: entry {i}"
        try:
            job = JobFile.model_validate(dict(row)).request()
        except ValidationError as error:
            raise InputError(f"{label}: {first_error(error, JobFile)}") from None
        if job.name in seen:
            raise InputError(f"{label}: key name: already used by entry {seen[job.name]}", "give each job its own name")
        if "submit" in row:
            if timed is not None and job.submit_s < timed:
                raise InputError(
                    f"{label}: key submit: {job.submit_s:g} s lies before that of a job above it ({timed:g} s)",
                    "sort the jobs by submit",
                )
            timed = job.submit_s
        seen[job.name] = i
        jobs.append(job)
    return jobs


def _entries(path: Path) -> list[Mapping[str, Any]]:
    text = read_body(path)
    suffix = path.suffix.lower()
    if suffix == ".csv":
        return _csv_rows(text, path)
    try:
        body = json.loads(text) if suffix == ".json" else tomllib.loads(text)
    except (ValueError, tomllib.TOMLDecodeError) as error:
        kind = "JSON" if suffix == ".json" else "TOML"
        raise InputError(f"{path}: not valid {kind}: {error}") from None
    if isinstance(body, dict):
        unknown = sorted(set(body) - {"job"})
        if unknown:
            raise InputError(f"{path}: unknown table {unknown[0]!r}", "a jobs file holds [[job]] entries")
        body = body.get("job", [])
    if not isinstance(body, list) or not all(isinstance(row, dict) for row in body):
        raise InputError(f"{path}: expected a list of jobs", "a jobs file holds [[job]] entries")
    return body


def _csv_rows(text: str, path: Path) -> list[Mapping[str, Any]]:
    reader = csv.DictReader(io.StringIO(text.lstrip("\ufeff")))
    rows: list[Mapping[str, Any]] = []
    for line in reader:
        if None in line or None in line.values():
            raise InputError(f"{path}: line {reader.line_num}: {len(line)} fields do not match the header")
        row = {k.strip(): v.strip() for k, v in line.items()}
        if row.get("submit") == "":
            name = row.get("name", "")
            raise InputError(
                f"{path}: line {reader.line_num}: job {name!r}: key submit: missing", "give every row a submit time"
            )
        rows.append({k: v for k, v in row.items() if v})
    return rows
