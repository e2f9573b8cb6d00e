"""Which points a command line or a file asks a model about."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from pfprofile.errors import InputError, UsageError, nearest
from pfprofile.model.fitted import FittedModel
from pfprofile.model.points import Points

COLUMNS = ("n_gpus", "n_nodes", "local_batch", "accum_steps", "sm_clock_mhz")


def clocks_asked(model: FittedModel, asked: str | Sequence[float | None]) -> list[float | None]:
    """``all`` as the clocks that can be locked, in the measured range; a list as it is.

    Raises:
        UsageError: ``auto``, which only a sweep knows.
        InputError: ``all`` on a model that knows fewer than two clocks.
    """
    if not isinstance(asked, str):
        return list(asked)
    if asked == "auto":
        raise UsageError("--freqs auto chooses what to measure; here there is nothing to measure",
                         "use default, all, a list or LO:HI:STEP")  # fmt: skip
    domain = model.document.domain
    supported = [f for f in model.supported_clocks_mhz if domain.clock_mhz[0] <= f <= domain.clock_mhz[-1]]
    if not supported:
        raise InputError(f"{model.workload}: fewer than two clocks were measured",
                         f"measure several: pfprofile sweep {model.workload} --freqs auto")  # fmt: skip
    return list(supported)


def unsupported(model: FittedModel, clocks: Sequence[float | None]) -> str | None:
    """What to say of clocks that the device does not offer; None where all are, or its list is unknown."""
    offered = model.document.clocks.supported_mhz
    foreign = [f for f in clocks if f is not None and offered and min(abs(f - s) for s in offered) > 0.5]
    if not foreign:
        return None
    near = min(offered, key=lambda s: abs(s - foreign[0]))
    return f"{foreign[0]:g} MHz is not a clock that {model.device_name} offers (the nearest is {near:g} MHz)"


def grid(
    model: FittedModel,
    gpus: Sequence[int] | None,
    batches: Sequence[int] | None,
    clocks: Sequence[float | None],
    gpus_per_node: int | None,
) -> Points:
    """The product GPUs × batches × clocks, in the order given; what is not given is what was measured."""
    domain = model.document.domain
    per_node = gpus_per_node or model.gpus_per_node
    rows = [
        (n, -(-n // per_node), b, 1, math.nan if f is None else f)
        for n in (gpus or domain.n_gpus)
        for b in (batches or domain.local_batch)
        for f in clocks
    ]
    return _points(rows)


def _points(rows: Sequence[Sequence[float]]) -> Points:
    table = np.array(rows, dtype=np.float64).reshape(-1, len(COLUMNS))
    n, k, b, s, f = table.T
    return Points.of(n, b, n_nodes=k, accum_steps=s, sm_clock_mhz=f)


def from_file(model: FittedModel, path: Path, gpus_per_node: int | None = None) -> Points:
    """One point for each row of a CSV or Parquet file; what is missing takes its default.

    Defaults: one GPU; as many nodes as ``gpus_per_node`` needs; the largest measured batch; one accumulation step;
    the default clock.

    Raises:
        InputError: not readable, no known column, a value that is no positive number; names row and column.
    """
    columns = _read(path)
    known = [name for name in COLUMNS if name in columns]
    if not known:
        near = nearest(next(iter(columns), ""), COLUMNS)
        raise InputError(f"{path}: none of its columns is known{near}", f"use {', '.join(COLUMNS)}")
    per_node = gpus_per_node or model.gpus_per_node
    count = len(columns[known[0]])
    rows = []
    for i in range(count):
        cell = {name: _number(columns[name][i], name, i, path) for name in known}
        n = cell.get("n_gpus") or 1
        k = cell.get("n_nodes") or -(-n // per_node)
        if k > n:
            raise InputError(f"{path}: row {i + 1}: {k:g} nodes for {n:g} GPUs")
        b = cell.get("local_batch") or model.document.domain.local_batch[-1]
        rows.append((n, k, b, cell.get("accum_steps") or 1, cell.get("sm_clock_mhz") or math.nan))
    return _points(rows)


def _read(path: Path) -> dict[str, list[Any]]:
    import csv

    if not path.is_file():
        raise InputError(f"{path}: no such file")
    if path.suffix.lower() in (".parquet", ".pq"):
        import pyarrow as pa
        import pyarrow.parquet as pq

        try:
            return pq.read_table(path).to_pydict()  # type: ignore[no-any-return]
        except (pa.ArrowInvalid, OSError) as error:
            raise InputError(f"{path}: not a readable Parquet file: {str(error).splitlines()[0]}") from None
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            reader = csv.DictReader(file)
            rows = list(reader)
    except (UnicodeDecodeError, csv.Error) as error:
        raise InputError(f"{path}: not a readable CSV file: {error}") from None
    return {name: [row[name] for row in rows] for name in reader.fieldnames or []}


def _number(value: Any, name: str, row: int, path: Path) -> float | None:
    if value is None or str(value).strip().lower() in ("", "nan", "null", "none") or value != value:
        return None
    try:
        number = float(value)
    except (TypeError, ValueError):
        number = math.nan
    whole = name != "sm_clock_mhz"
    if not math.isfinite(number) or number <= 0 or (whole and number != int(number)):
        raise InputError(f"{path}: row {row + 1}: {name} is {value!r}",
                         f"expected a {'whole ' if whole else ''}number above 0")  # fmt: skip
    return number
