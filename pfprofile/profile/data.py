"""A profile in memory: an Arrow table of trials and its metadata."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from pfprofile.errors import InputError
from pfprofile.profile.metadata import ProfileMetadata, to_json
from pfprofile.profile.schema import COLUMN_NAMES, COLUMNS, arrow_schema

if TYPE_CHECKING:
    import pandas as pd

#: Values of columns that every row must have, where a source does not say otherwise.
ROW_DEFAULTS: dict[str, Any] = {
    "n_nodes": 1,
    "accum_steps": 1,
    "precision": "fp32",
    "limited_by": "unknown",
    "status": "ok",
}


@dataclass(frozen=True, slots=True)
class Profile:
    """All trials of a sweep.

    Attributes:
        table: Arrow table with exactly `schema.COLUMNS`.
        metadata: what the file says of itself.
    """

    table: pa.Table
    metadata: ProfileMetadata

    @classmethod
    def from_rows(cls, rows: Iterable[Mapping[str, Any]], metadata: ProfileMetadata) -> Profile:
        """Build from dicts; missing keys take `ROW_DEFAULTS` or null, ``trial_id`` its running number.

        Raises:
            InputError: an unknown column, or a value that does not fit its column (the row is named).
        """
        filled = []
        for i, row in enumerate(rows):
            unknown = set(row) - set(COLUMN_NAMES)
            if unknown:
                raise InputError(f"row {i}: unknown column {sorted(unknown)[0]!r}")
            filled.append({**ROW_DEFAULTS, "trial_id": f"t{i:05d}", **row})
        arrays = []
        for column in COLUMNS:
            values = [row.get(column.name) for row in filled]
            try:
                array = pa.array(values, type=column.type)
            except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError) as error:
                raise InputError(f"column {column.name}: {error}", f"expected {column.type}") from None
            if not column.nullable and array.null_count:
                raise InputError(f"row {values.index(None)}: column {column.name} is empty")
            arrays.append(array)
        return cls(pa.Table.from_arrays(arrays, schema=arrow_schema()), metadata)

    def rows(self) -> list[dict[str, Any]]:
        """The trials as dicts, null as None."""
        return self.table.to_pylist()  # type: ignore[no-any-return]

    def to_pandas(self) -> pd.DataFrame:
        """The trials as a DataFrame (null becomes NaN/None)."""
        return self.table.to_pandas()

    def ok(self) -> Profile:
        """Only the trials that ended well."""
        import pyarrow.compute as pc

        return Profile(self.table.filter(pc.equal(self.table["status"], "ok")), self.metadata)

    @property
    def n_rows(self) -> int:
        """Number of trials, failed ones included."""
        return int(self.table.num_rows)

    def unique(self, column: str) -> list[Any]:
        """The distinct values of a column, sorted, without null."""
        return sorted(v for v in set(self.table[column].to_pylist()) if v is not None)

    def digest(self) -> str:
        """SHA-256 over rows and metadata, independent of compression and of the writer's version."""
        sink = hashlib.sha256(to_json(self.metadata).encode())
        for row in self.table.to_pylist():
            sink.update(repr([row[name] for name in COLUMN_NAMES]).encode())
        return sink.hexdigest()
