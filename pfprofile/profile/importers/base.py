"""What an importer is, and the steps that all of them share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
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
    """

    mapping: Sequence[str] = ()
    constants: Sequence[str] = ()
    where: Sequence[str] = ()
    unpivot: str | None = None


@dataclass(frozen=True, slots=True)
class Imported:
    """What an import yields: one profile for each (device, workload, precision), and what the person should know."""

    profiles: list[Profile]
    notices: list[str] = field(default_factory=list)


class Importer(Protocol):
    """One foreign format."""

    @property
    def name(self) -> str:
        """The FORMAT word of `pfprofile import`."""

    @property
    def summary(self) -> str:
        """One line for the help."""

    def read(self, paths: Sequence[Path], options: ImportOptions) -> Imported:
        """Turn files into profiles.

        Raises:
            InputError: a file is unreadable, ambiguous or implausible (file, line and key are named).
            UsageError: an option does not fit.
        """
