"""Foreign formats → profiles: one file a format, one registry."""

from __future__ import annotations

from pfprofile.errors import UsageError, nearest
from pfprofile.profile.importers.base import Imported, Importer, ImportOptions
from pfprofile.profile.importers.table import TableImporter

IMPORTERS: dict[str, Importer] = {importer.name: importer for importer in (TableImporter(),)}


def importer(name: str) -> Importer:
    """The importer of a format. Raises UsageError, naming the nearest known format."""
    if name not in IMPORTERS:
        raise UsageError(f"unknown format {name!r}{nearest(name, IMPORTERS)}", f"known: {', '.join(IMPORTERS)}")
    return IMPORTERS[name]


__all__ = ["IMPORTERS", "ImportOptions", "Imported", "Importer", "importer"]
