"""Foreign formats → profiles: one file a format, one registry."""

from __future__ import annotations

from pfprofile.errors import UsageError, nearest
from pfprofile.plugins import load_class, names_a_class
from pfprofile.profile.importers.base import FLAGS, FinishedJob, Imported, Importer, ImportOptions
from pfprofile.profile.importers.codecarbon import CodeCarbon
from pfprofile.profile.importers.dcgmi import DcgmiDmon
from pfprofile.profile.importers.exporter import DcgmExporter
from pfprofile.profile.importers.mlperf import MlPerf
from pfprofile.profile.importers.sacct import Sacct
from pfprofile.profile.importers.smi import NvidiaSmi
from pfprofile.profile.importers.smi_dmon import NvidiaSmiDmon
from pfprofile.profile.importers.table import TableImporter
from pfprofile.profile.importers.zeus import Zeus

_ALL: tuple[Importer, ...] = (
    TableImporter(), NvidiaSmi(), NvidiaSmiDmon(), DcgmiDmon(), DcgmExporter(), Zeus(), CodeCarbon(), MlPerf(), Sacct(),
)  # fmt: skip
IMPORTERS: dict[str, Importer] = {importer.name: importer for importer in _ALL}


def importer(name: str) -> Importer:
    """The importer of a format, or the one that ``file.py:Class`` names.

    Raises:
        UsageError: an unknown name; the nearest is named.
        InputError: see `pfprofile.plugins.load_class`.
    """
    if names_a_class(name):
        made: Importer = load_class(name, "importer", ("read",))()
        return made
    if name not in IMPORTERS:
        known = ", ".join(IMPORTERS)
        raise UsageError(f"unknown format {name!r}{nearest(name, IMPORTERS)}", f"known: {known}, or file.py:Class")
    return IMPORTERS[name]


def refuse_foreign_options(chosen: Importer, options: ImportOptions) -> None:
    """An option that means nothing to a format is refused. Raises UsageError, naming it and those that do."""
    for name in options.given():
        if name not in chosen.takes:
            known = " ".join(FLAGS[n] for n in FLAGS if n in chosen.takes)
            raise UsageError(f"{FLAGS[name]} means nothing to import {chosen.name}", f"it takes {known}")


__all__ = ["IMPORTERS", "FinishedJob", "ImportOptions", "Imported", "Importer", "importer", "refuse_foreign_options"]
