"""`import codecarbon`: emissions.csv, one row a run; only the GPUs' energy counts."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from pfprofile.errors import InputError, UsageError
from pfprofile.profile.importers import cells
from pfprofile.profile.importers.base import Imported, ImportOptions
from pfprofile.profile.importers.delimited import Row, matching, read_delimited
from pfprofile.profile.importers.facts import pairs, split_targets
from pfprofile.profile.importers.finish import finish, require
from pfprofile.profile.importers.readings import nothing_left, skipped_notices

NEEDED = ("duration", "gpu_energy")
#: ``project_name`` where nobody gave one
_NO_NAME = ("codecarbon", "")
_MODEL = re.compile(r"(\d+) x (.+?)(?=\d+ x |$)")
HINT = "expected codecarbon's emissions.csv"


class CodeCarbon:
    """codecarbon's emissions.csv."""

    name = "codecarbon"
    summary = "emissions.csv of codecarbon"
    takes = frozenset({"constants", "where", "steps"})

    def read(self, paths: Sequence[Path], options: ImportOptions) -> Imported:
        """See `Importer.read`; every run is a trial, the last row of a run counts."""
        columns, facts = split_targets(pairs(options.constants, "--set", "local_batch=64"))
        conditions = pairs(options.where, "--where", "project_name=resnet50")
        skipped: list[tuple[Path, int, str]] = []
        notices: list[str] = []
        trials: list[dict[str, Any]] = []
        for path in paths:
            file = read_delimited(path, ",", lambda found: set(NEEDED) <= set(found), "codecarbon")
            skipped += file.skipped
            for row in _last_of_runs(matching(file.rows, conditions, file.header, path), path, notices):
                trial = _trial(path, row, columns, options.steps or columns.get("steps"), skipped, notices)
                if trial is not None:
                    trials.append(trial)
        if not trials:
            raise nothing_left(paths, skipped, "runs", HINT)
        return finish(trials, facts, paths, str(paths[0]), ("energy of the GPUs alone, over the whole run",),
                      [*skipped_notices(skipped), *notices])  # fmt: skip


def _last_of_runs(rows: list[Row], path: Path, notices: list[str]) -> list[Row]:
    """codecarbon appends a run's state again and again: its last row holds the sums."""
    last = {row["run_id"] or f"line {row.line}": row for row in rows}
    if len(last) < len(rows):
        notices.append(
            f"{path}: {len(rows) - len(last)} earlier rows of the same runs left out: the last holds the sums"
        )
    return list(last.values())


def _trial(
    path: Path, row: Row, columns: Mapping[str, Any], steps: int | None, skipped: list[tuple[Path, int, str]],
    notices: list[str],
) -> dict[str, Any] | None:  # fmt: skip
    duration_s = cells.number(row["duration"], {"s": 1.0})
    if duration_s is None or duration_s <= 0:
        skipped.append((path, row.line, f"duration is {row['duration'][:40]!r}"))
        return None
    n_gpus, device_name = _gpus(path, row, columns)
    told: dict[str, Any] = {"workload": None if row["project_name"] in _NO_NAME else row["project_name"],
                            "n_gpus": n_gpus, "device_name": device_name, **columns}  # fmt: skip
    require(told, ("workload", "local_batch", "n_gpus"), f"{path}: line {row.line}")
    energy_kwh = cells.number(row["gpu_energy"], {"kWh": 1.0})
    energy_j = energy_kwh * 3.6e6 if energy_kwh else None
    if energy_j is None:
        notices.append(f"{path}: line {row.line}: no energy of GPUs: power and energy stay unknown")
    ended_s = cells.timestamp(row["timestamp"])
    started = (
        None if ended_s is None else datetime.fromtimestamp(ended_s, UTC) - timedelta(seconds=min(duration_s, 1e9))
    )
    return {
        "line": row.line,
        **told,
        "steps": steps,
        "step_time_s": columns.get("step_time_s") or (duration_s / steps if steps else None),
        "energy_j": energy_j,
        "energy_source": None if energy_j is None else "imported",
        "power_w": None if energy_j is None else energy_j / duration_s / told["n_gpus"],
        "started_at": started,
    }


def _gpus(path: Path, row: Row, columns: Mapping[str, Any]) -> tuple[int | None, str | None]:
    """How many GPUs of which kind: ``2 x NVIDIA RTX A6000``; two kinds run together without a comma."""
    found = [(int(n), name.strip(" ,")) for n, name in _MODEL.findall(row["gpu_model"]) if len(n) < 7]
    count = cells.whole(row["gpu_count"].removesuffix(".0")) or None
    if len(found) > 1 and not {"device_name", "n_gpus"} <= set(columns):
        raise InputError(f"{path}: line {row.line}: GPUs of {len(found)} kinds: {row['gpu_model']!r}",
                         "say which trained: --set device_name=NAME --set n_gpus=COUNT")  # fmt: skip
    if len(found) == 1:
        if count is not None and found[0][0] != count and "n_gpus" not in columns:
            raise UsageError(f"{path}: line {row.line}: gpu_count is {count}, gpu_model {row['gpu_model']!r}",
                             "say how many trained: --set n_gpus=COUNT")  # fmt: skip
        return found[0][0] or None, found[0][1]
    return count, row["gpu_model"] or None
