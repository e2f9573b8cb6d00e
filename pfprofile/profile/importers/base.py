"""What an importer is, and the steps that all of them share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Protocol

from pfprofile.profile.data import Profile


@dataclass(frozen=True, slots=True)
class ImportOptions:
    """What a person may say beside the files; every importer takes what it understands.

    Attributes:
        mapping: ``target=expression`` strings (`--map`).
        constants: ``target=value`` strings (`--set`).
        where: ``column=value`` strings; only rows that match all are read (`--where`).
        unpivot: ``headings=values``: numeric column headings become a column of that name (`--unpivot`).
        columns: names of the columns of a file without a header, with commas (`--columns`).
        interval_s: time between readings that carry no timestamp, s (`--interval`).
        start, end: training window: a time, a duration after the log's start, or a marker's text (`--from`, `--to`).
        trim: leave out the idle head and tail (`--trim`).
        steps: optimizer steps in the window (`--steps`).
        log, log_regex: the training's own log, and what to read in it (`--log`, `--log-regex`).
        gpu_ids: GPUs that trained, by index or UUID, with commas (`--gpu-ids`).
    """

    mapping: Sequence[str] = ()
    constants: Sequence[str] = ()
    where: Sequence[str] = ()
    unpivot: str | None = None
    columns: str | None = None
    interval_s: float | None = None
    start: str | None = None
    end: str | None = None
    trim: bool = False
    steps: int | None = None
    log: Path | None = None
    log_regex: str | None = None
    gpu_ids: str | None = None

    def given(self) -> list[str]:
        """Names of the fields that a person set."""
        return [f.name for f in fields(self) if getattr(self, f.name) not in (None, (), False)]


#: field of `ImportOptions` → the flag behind it
FLAGS = {
    "mapping": "--map", "constants": "--set", "where": "--where", "unpivot": "--unpivot", "columns": "--columns",
    "interval_s": "--interval", "start": "--from", "end": "--to", "trim": "--trim", "steps": "--steps", "log": "--log",
    "log_regex": "--log-regex", "gpu_ids": "--gpu-ids",
}  # fmt: skip
#: what every importer of a sensor log understands
OF_LOGS = frozenset({"constants", "interval_s", "start", "end", "trim", "steps", "log", "log_regex", "gpu_ids"})


@dataclass(frozen=True, slots=True)
class Imported:
    """What an import yields: one profile for each (device, workload, precision), and what the person should know.

    An accounting file yields jobs instead of profiles.
    """

    profiles: list[Profile]
    notices: list[str] = field(default_factory=list)
    jobs: list[FinishedJob] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class FinishedJob:
    """One job of a batch system's accounting; None = not told.

    Attributes:
        submit_s: arrival after the first job of the file, s.
        duration_s: how long it ran on ``n_gpus``, s.
    """

    name: str
    submit_s: float
    duration_s: float
    n_gpus: int
    partition: str | None = None
    account: str | None = None


class Importer(Protocol):
    """One foreign format."""

    @property
    def name(self) -> str:
        """The FORMAT word of `pfprofile import`."""

    @property
    def summary(self) -> str:
        """One line for the help."""

    @property
    def takes(self) -> frozenset[str]:
        """The fields of `ImportOptions` that mean something here; others are refused."""

    def read(self, paths: Sequence[Path], options: ImportOptions) -> Imported:
        """Turn files into profiles.

        Raises:
            InputError: a file is unreadable, ambiguous or implausible (file, line and key are named).
            UsageError: an option does not fit.
        """
