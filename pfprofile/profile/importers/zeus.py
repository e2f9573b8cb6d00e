"""`import zeus`: logs of ZeusMonitor (one row a window), and the published trace of epochs by batch and power limit."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from pfprofile.errors import InputError
from pfprofile.profile.importers import cells
from pfprofile.profile.importers.base import Imported, ImportOptions
from pfprofile.profile.importers.delimited import Delimited, Row, matching, read_delimited
from pfprofile.profile.importers.facts import pairs, split_targets
from pfprofile.profile.importers.finish import finish, require
from pfprofile.profile.importers.readings import nothing_left, skipped_notices

MONITOR = ("window_name", "elapsed_time")
TRACE = ("network", "batch_size", "power_limit", "time_per_epoch", "average_power")
_GPU = re.compile(r"gpu\d+_energy")
#: windows of Zeus' power limit optimizer carry the limit in watts in their name
_LIMITED = re.compile(r"__GlobalPowerLimitOptimizer_(\d+)")
HINT = (
    "expected ZeusMonitor's log_file (start_time,window_name,elapsed_time,gpu0_energy) or the trace summary_power_*.csv"
)


class Zeus:
    """Zeus' files."""

    name = "zeus"
    summary = "ZeusMonitor logs and the trace of Zeus (NSDI '23)"
    takes = frozenset({"constants", "where", "steps"})

    def read(self, paths: Sequence[Path], options: ImportOptions) -> Imported:
        """See `Importer.read`; every window (or row of the trace) is a trial."""
        columns, facts = split_targets(pairs(options.constants, "--set", "n_gpus=1"))
        conditions = pairs(options.where, "--where", "network=resnet50")
        files = [(path, read_delimited(path, ",", _is_header, "Zeus")) for path in paths]
        skipped = [s for _, file in files for s in file.skipped]
        rows: list[dict[str, Any]] = []
        notices: list[str] = []
        for path, file in files:
            found = matching(file.rows, conditions, file.header, path)
            if set(TRACE) <= set(file.header):
                rows += _epochs(path, found, columns, facts, skipped)
            else:
                rows += _windows(path, file, found, columns, options.steps, skipped, notices)
        if not rows:
            raise nothing_left(paths, skipped, "rows", HINT)
        rows = _once(rows, notices)
        return finish(rows, facts, paths, str(paths[0]), (), [*skipped_notices(skipped), *notices])


def _is_header(found: Sequence[str]) -> bool:
    return set(MONITOR) <= set(found) or set(TRACE) <= set(found)


def _windows(
    path: Path, file: Delimited, rows: list[Row], columns: Mapping[str, Any], steps: int | None,
    skipped: list[tuple[Path, int, str]], notices: list[str],
) -> list[dict[str, Any]]:  # fmt: skip
    gpus = [name for name in file.header if _GPU.fullmatch(name)]
    if not gpus:
        raise InputError(f"{path}: no column gpu0_energy", HINT)
    require(columns, ("workload", "local_batch"), str(path))
    count = steps or columns.get("steps")
    trials = []
    for row in rows:
        elapsed_s = cells.number(row["elapsed_time"], {"s": 1.0})
        energies = [cells.number(row[name], cells.ENERGY) for name in gpus]
        if elapsed_s is None or elapsed_s <= 0:
            skipped.append((path, row.line, f"elapsed_time is {row['elapsed_time'][:40]!r}"))
            continue
        known = [e for e in energies if e is not None and e > 0]
        whole = len(known) == len(gpus)
        if not whole:
            notices.append(f"{path}: line {row.line}: no energy of {len(gpus) - len(known)} GPUs: it stays unknown")
        limit = _LIMITED.search(row["window_name"])
        start_s = cells.number(row["start_time"], {"s": 1.0})
        trials.append({
            "line": row.line,
            "n_gpus": len(gpus),
            "steps": count,
            "step_time_s": elapsed_s / count if count else None,
            "energy_j": sum(known) if whole else None,
            "energy_source": "imported" if whole else None,
            "power_w": sum(known) / elapsed_s / len(gpus) if whole else None,
            "power_spread_w": (max(known) - min(known)) / elapsed_s if whole and len(gpus) > 1 else None,
            "power_limit_w": float(limit[1]) if limit and float(limit[1]) > 0 else None,
            # Zeus writes the monotonic clock in older versions; only a date is a start.
            "started_at": datetime.fromtimestamp(start_s, UTC) if start_s and 6e8 < start_s < 7e9 else None,
            **{k: v for k, v in columns.items() if k not in ("steps", "n_gpus")},
        })  # fmt: skip
    return trials


def _epochs(
    path: Path, rows: list[Row], columns: Mapping[str, Any], facts: Mapping[str, Any],
    skipped: list[tuple[Path, int, str]],
) -> list[dict[str, Any]]:  # fmt: skip
    require(facts, ("samples_per_epoch",), str(path))
    datasets = sorted({row["dataset"] for row in rows})
    if len(datasets) > 1:
        raise InputError(f"{path}: {len(datasets)} data sets ({', '.join(datasets)}), and one --set samples_per_epoch",
                         f"choose one with --where dataset={datasets[0]}")  # fmt: skip
    several = len({row["optimizer"] for row in rows}) > 1
    trials = []
    for row in rows:
        batch = cells.whole(row["batch_size"])
        epoch_s = cells.number(row["time_per_epoch"], {"s": 1.0})
        power_w = cells.number(row["average_power"], cells.POWER)
        if not batch or epoch_s is None or epoch_s <= 0:
            skipped.append((path, row.line, "no batch size or no time of an epoch"))
            continue
        steps = facts["samples_per_epoch"] / batch
        trials.append({
            "line": row.line,
            "workload": f"{row['network']}-{row['optimizer']}" if several else row["network"],
            "n_gpus": 1,
            "local_batch": batch,
            "power_limit_w": cells.number(row["power_limit"], cells.POWER) or None,
            "step_time_s": epoch_s / steps,
            "steps": max(1, round(steps)),
            "power_w": power_w or None,
            "energy_j": power_w * epoch_s if power_w else None,
            "energy_source": "imported" if power_w else None,
            **columns,
        })  # fmt: skip
    return trials


def _once(rows: list[dict[str, Any]], notices: list[str]) -> list[dict[str, Any]]:
    """A window that every rank wrote down is one window, not as many as there are ranks."""
    seen: set[tuple[Any, ...]] = set()
    kept = []
    for row in rows:
        key = (row["n_gpus"], row.get("energy_j"), row["step_time_s"], row.get("power_limit_w"), row["local_batch"])
        if row.get("energy_j") is not None and key in seen:
            continue
        seen.add(key)
        kept.append(row)
    if len(kept) < len(rows):
        notices.append(f"{len(rows) - len(kept)} rows repeat a window (another rank's log?) and were left out")
    return kept
