"""A comparison as rows for people, and as a file: JSON, CSV of the runs, or Parquet of the runs."""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from pfprofile.errors import UsageError
from pfprofile.plan.compare.contract import FIELDS, columns
from pfprofile.profile.io import write_atomically, write_text

TYPES = {"string": "string", "number": "float64", "integer": "int64", "boolean": "bool"}
SUFFIXES = (".json", ".csv", ".parquet")


def check_suffix(path: Path | None) -> None:
    """Raises UsageError where a file's suffix does not say how to write it."""
    if path is not None and path.suffix.lower() not in SUFFIXES:
        raise UsageError(f"-o {path}: suffix {path.suffix!r}", f"one of {', '.join(SUFFIXES)}")


def write_comparison(body: Mapping[str, Any], path: Path) -> None:
    """Write the file atomically. Parquet holds the runs; the rest of the body is its metadata ``pfprofile``.

    Raises:
        UsageError: an unknown suffix.
        OutputError: it cannot be written.
    """
    check_suffix(path)
    suffix = path.suffix.lower()
    if suffix == ".json":
        write_text(path, json.dumps(body, indent=2, allow_nan=False) + "\n")
    elif suffix == ".csv":
        text = io.StringIO()
        writer = csv.DictWriter(text, fieldnames=columns("runs"), lineterminator="\n")
        writer.writeheader()
        writer.writerows(body["runs"])
        write_text(path, text.getvalue())
    else:
        _write_parquet(body, path)


def _write_parquet(body: Mapping[str, Any], path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    rest = {key: value for key, value in body.items() if key != "runs"}
    schema = pa.schema(
        [
            pa.field(f.name, pa.type_for_alias(TYPES[f.type]), f.null, {"description": f.description})
            for f in FIELDS
            if f.part == "runs"
        ],
        {"pfprofile": json.dumps({"kind": "comparison", **rest}, allow_nan=False)},
    )
    table = pa.Table.from_pylist(list(body["runs"]), schema=schema)
    write_atomically(path, lambda temp: pq.write_table(table, temp, compression="zstd"))


def run_rows(runs: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """One row a policy and clock rule: a swept one by its fastest and its least-energy point, means over seeds."""
    points: dict[tuple[Any, ...], dict[float | None, list[Mapping[str, Any]]]] = {}
    for run in runs:
        key = (run["trace"], run["policy"], run["clock_rule"])
        points.setdefault(key, {}).setdefault(run["knob"], []).append(run)
    rows = []
    for (trace, policy, rule), by_knob in points.items():
        means = [{"knob": knob, **_means(found)} for knob, found in by_knob.items()]
        fastest = min(means, key=lambda m: m["avg_jct_s"])
        frugal = min(means, key=lambda m: m["energy_j"])
        for mean in [fastest] if frugal is fastest else [fastest, frugal]:
            rows.append({"trace": trace, "policy": _name(policy, rule), **mean})
    return rows


def _name(policy: str, rule: str | None) -> str:
    return policy if rule in (None, "max") else f"{policy}+{rule}"


def _means(runs: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    names = [f.name for f in FIELDS if f.part == "runs" and f.type in ("number", "integer") and f.name != "knob"]
    return {
        name: float(np.mean([run[name] for run in runs])) if all(run[name] is not None for run in runs) else None
        for name in names
    }


def ratio_rows(rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """One row a trace, policy and baseline curve: least, median, greatest of the ratios that are not clamped low."""
    groups: dict[tuple[str, str, str], list[Mapping[str, Any]]] = {}
    for row in rows:
        groups.setdefault(
            (row["trace"], row["policy"], row["baseline"].rpartition(":")[0] or row["baseline"]), []
        ).append(row)
    out = []
    for (trace, policy, baseline), found in groups.items():
        free = sorted(row["jct_ratio"] for row in found if row["clamped_at"] != "low")
        single = found[0] if len(found) == 1 else None
        interval = ""
        if single is not None and single["jct_ratio_lo"] is not None:
            interval = f"{single['jct_ratio_lo']:.2f} to {single['jct_ratio_hi']:.2f}"
        out.append(
            {
                "trace": trace,
                "policy": policy,
                "baseline": baseline,
                "least": free[0] if free else math.nan,
                "median": float(np.median(free)) if free else math.nan,
                "greatest": free[-1] if free else math.nan,
                "interval": interval,
                "note": _clamp_words(found),
            }
        )
    return out


def _clamp_words(found: Sequence[Mapping[str, Any]]) -> str:
    low = sum(row["clamped_at"] == "low" for row in found)
    high = sum(row["clamped_at"] == "high" for row in found)
    words = []
    if low:
        words.append(f"{low} of {len(found)} clamped: less energy than the policy can do with")
    if high:
        words.append(f"{high} of {len(found)} clamped: the policy's fastest needs less energy")
    return "; ".join(words)
