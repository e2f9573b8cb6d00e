"""`import table`: any CSV or Parquet becomes a profile by `--map target=expression` and `--set target=value`."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pfprofile._version import __version__
from pfprofile.errors import InputError, UsageError, nearest
from pfprofile.profile.data import Profile
from pfprofile.profile.importers import frames
from pfprofile.profile.importers.base import Imported, ImportOptions
from pfprofile.profile.importers.facts import metadata_from, pairs, split_targets
from pfprofile.profile.rows import doubts_of
from pfprofile.profile.schema import BY_NAME

if TYPE_CHECKING:
    import pandas as pd

#: What is assumed, with a notice, where a table says nothing.
ASSUMED: dict[str, Any] = {"n_gpus": 1, "n_nodes": 1, "local_batch": 1, "device_name": "unknown device"}
IDENTITY = ("device_name", "workload", "precision")


class TableImporter:
    """Any table whose columns the person names."""

    name = "table"
    summary = "any CSV or Parquet, by --map and --set"
    takes = frozenset({"mapping", "constants", "where", "unpivot"})

    def read(self, paths: Sequence[Path], options: ImportOptions) -> Imported:
        """See `Importer.read`; several files are read as parts of one table."""
        mapping = pairs(options.mapping, "--map", "step_time_s=time")
        columns, facts = split_targets(pairs(options.constants, "--set", "n_gpus=1"))
        for target in mapping:
            if target not in BY_NAME:
                raise UsageError(f"--map: no profile column {target!r}{nearest(target, BY_NAME)}")
            if target in columns:
                raise UsageError(f"{target} is given by both --map and --set")
        if "step_time_s" not in mapping:
            raise UsageError("step_time_s is not mapped", "say which column holds it: --map step_time_s=COLUMN")
        rows: list[dict[str, Any]] = []
        notices: list[str] = []
        for path in paths:
            part, skipped = _rows_of(path, mapping, columns, options)
            _complete_nodes(part, facts.get("gpus_per_node"))
            rows += part
            notices += skipped
        if not rows:
            raise InputError(f"{paths[0]}: no row has a step time")
        return Imported(*_profiles(rows, facts, paths, notices))


def _rows_of(
    path: Path, mapping: Mapping[str, str], constants: Mapping[str, Any], options: ImportOptions
) -> tuple[list[dict[str, Any]], list[str]]:
    frame = frames.read_table(path)
    if options.unpivot:
        frame = frames.unpivot(frame, options.unpivot, path)
    if options.where:
        frame = frames.only(frame, list(pairs(options.where, "--where", "network=bert").items()), path)
    lines = [int(v) for v in frame[frames.LINE]]
    values = {target: _column(frame, target, text, path) for target, text in mapping.items()}
    rows, skipped = [], []
    for i, line in enumerate(lines):
        row = {**constants, **{t: v[i] for t, v in values.items() if v[i] is not None}}
        if row.get("step_time_s") is None:
            skipped.append(line)
            continue
        _complete_placement(row)
        for column, doubt in doubts_of(row):
            raise InputError(f"{path}: line {line}: {column} is {doubt}", "correct the file, or convert in --map")
        rows.append({"workload": path.stem, **row})
    if skipped:
        return rows, [f"{path}: {len(skipped)} rows without a step time skipped (the first in line {skipped[0]})"]
    return rows, []


def _column(frame: pd.DataFrame, target: str, text: str, path: Path) -> list[Any]:
    """The values of one target column; None = unknown."""
    import pyarrow as pa

    from pfprofile.profile.importers.expression import evaluate

    what = f"--map {target}={text}"
    kind = BY_NAME[target].type
    if pa.types.is_string(kind) or pa.types.is_timestamp(kind):
        if text not in frame.columns:
            known = [c for c in frame.columns if c != frames.LINE]
            raise UsageError(f"{what}: {path} has no column {text!r}{nearest(text, known)}")
        cells = [None if _missing(v) else v for v in frame[text]]
        return [_text(target, v, path, frame[frames.LINE].iloc[i]) for i, v in enumerate(cells)]
    numeric = _Numbers(frame, path)
    raw = numeric[text] if text in numeric else evaluate(text, numeric, len(frame), what)
    numbers: list[Any] = [None if not math.isfinite(v) else float(v) for v in raw]
    if pa.types.is_integer(kind):
        for i, number in enumerate(numbers):
            if number is None:
                continue
            if abs(number - round(number)) > 1e-6 or number < 0 or (target != "steps" and number < 1):
                line = frame[frames.LINE].iloc[i]
                raise InputError(f"{path}: line {line}: {target} is {number:g}", "expected a whole number from 1 on")
            numbers[i] = round(number)
    return numbers


class _Numbers(dict[str, Any]):
    """The table's columns as float arrays, converted on first use so that only the used ones must be numbers."""

    def __init__(self, frame: pd.DataFrame, path: Path) -> None:
        super().__init__({str(c): None for c in frame.columns if c != frames.LINE})
        self.frame = frame
        self.path = path

    def __getitem__(self, name: str) -> Any:
        import numpy as np

        if (value := super().__getitem__(name)) is None:
            value = np.empty(len(self.frame))
            for i, cell in enumerate(self.frame[name]):
                try:
                    value[i] = math.nan if _missing(cell) else float(cell)
                except (TypeError, ValueError):
                    line = self.frame[frames.LINE].iloc[i]
                    raise InputError(f"{self.path}: line {line}: {name} is {cell!r}, expected a number") from None
            self[name] = value
        return value


def _missing(cell: Any) -> bool:
    return cell is None or (isinstance(cell, float) and math.isnan(cell))


def _text(target: str, cell: Any, path: Path, line: int) -> Any:
    if cell is None:
        return None
    if target == "started_at":
        try:
            when = datetime.fromisoformat(str(cell))
        except ValueError:
            raise InputError(f"{path}: line {line}: started_at is {cell!r}, expected an ISO 8601 time") from None
        return when if when.tzinfo else when.replace(tzinfo=UTC)
    choices = BY_NAME[target].choices
    if choices and str(cell) not in choices:
        raise InputError(f"{path}: line {line}: {target} is {cell!r}", f"expected one of {', '.join(choices)}")
    return str(cell)


def _complete_placement(row: dict[str, Any]) -> None:
    """``4-4``, or digits such as ``44`` (GPUs on each node), give n_gpus and n_nodes where nothing else does."""
    placement = row.get("placement")
    if placement is None:
        return
    text = str(placement).removesuffix(".0")
    counts = [int(n) for n in (re.findall(r"\d+", text) if re.search(r"\D", text) else text)]
    counts = [n for n in counts if n]
    row["placement"] = "-".join(map(str, counts))
    row.setdefault("n_gpus", sum(counts))
    row.setdefault("n_nodes", len(counts))


def _complete_nodes(rows: Sequence[dict[str, Any]], gpus_per_node: int | None) -> None:
    """One GPU sits on one node; more sit on as few as the stated node size allows."""
    for row in rows:
        n_gpus = row.get("n_gpus", 1)
        if "n_nodes" not in row and (n_gpus == 1 or gpus_per_node):
            row["n_nodes"] = math.ceil(n_gpus / (gpus_per_node or 1))


def _profiles(
    rows: list[dict[str, Any]], facts: Mapping[str, Any], paths: Sequence[Path], notices: list[str]
) -> tuple[list[Profile], list[str]]:
    notes = [f"imported from {path.name}" for path in paths]
    for column, value in ASSUMED.items():
        lacking = [row for row in rows if row.get(column) is None]
        for row in lacking:
            row[column] = value
        if lacking:
            notices.append(f"{column} is not given: taken as {value!r} (say it with --set {column}=...)")
            notes.append(f"{column} assumed: {value!r}")
    groups: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
    for row in rows:
        row["energy_source"] = "imported" if row.get("energy_j") is not None else row.get("energy_source")
        groups.setdefault(tuple(row.get(c) for c in IDENTITY), []).append(row)
    profiles = []
    for group in groups.values():
        metadata = metadata_from(facts, group, tuple(notes), __version__)
        profiles.append(Profile.from_rows(group, metadata))
    return profiles, notices
