"""Raw samples of the measured windows, beside the profile: ``<name>.samples.parquet``."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from pfprofile.errors import OutputError
from pfprofile.telemetry import Samples

#: A sample's columns behind ``trial_id`` and ``gpu`` (index among the GPUs in use); NaN becomes null.
FIELDS = tuple(f.name for f in fields(Samples))
SCHEMA = pa.schema(
    [pa.field("trial_id", pa.string(), False), pa.field("gpu", pa.int64(), False)]
    + [pa.field(name, pa.float64(), name != "time_s") for name in FIELDS]
)


class SamplesFile:
    """Grows by a trial; replaced as a whole each time. What an earlier run of the sweep left is kept.

    Args:
        profile: the profile's final place.
        known: the trials that the profile holds; samples of others belong to a sweep that is gone.
    """

    def __init__(self, profile: Path, known: set[str]) -> None:
        self.path = profile.with_name(f"{profile.stem}.samples.parquet")
        self._table = SCHEMA.empty_table()
        if known and self.path.exists():
            old = pq.read_table(self.path, schema=SCHEMA)
            self._table = old.filter(pa.array([i in known for i in old["trial_id"].to_pylist()], pa.bool_()))

    def add(self, trial_id: str, samples: list[Samples]) -> None:
        """Keep one trial's windows, one `Samples` a GPU. Raises OutputError."""
        for gpu, one in enumerate(samples):
            m = len(one.time_s)
            columns = [pa.array([trial_id] * m, pa.string()), pa.array(np.full(m, gpu), pa.int64())]
            columns += [pa.array(getattr(one, name), pa.float64(), from_pandas=True) for name in FIELDS]
            self._table = pa.concat_tables([self._table, pa.table(columns, schema=SCHEMA)])
        beside = self.path.with_name(f".{self.path.name}.part")
        try:
            pq.write_table(self._table, beside, compression="zstd")
            beside.replace(self.path)
        except OSError as error:
            raise OutputError(f"cannot write {self.path}: {error}", "leave --samples out") from None
        finally:
            beside.unlink(missing_ok=True)
