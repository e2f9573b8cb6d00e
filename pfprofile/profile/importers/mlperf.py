"""`import mlperf`: ``:::MLLOG`` lines of MLPerf Training logs. They hold times and batches, no power of GPUs."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from statistics import fmean, median, stdev
from typing import Any, TypeGuard

from pfprofile.profile.importers.base import Imported, ImportOptions
from pfprofile.profile.importers.facts import pairs, split_targets
from pfprofile.profile.importers.finish import finish, require
from pfprofile.profile.importers.readings import nothing_left, skipped_notices
from pfprofile.profile.importers.text import read_lines

MARK = ":::MLLOG"
#: throughput as logged and as counted may differ by this share before it is said
WIDE_GAP = 0.2


@dataclass(frozen=True, slots=True)
class Event:
    """One line of the log."""

    line: int
    time_s: float
    key: str
    value: Any
    metadata: Mapping[str, Any]


class MlPerf:
    """MLPerf Training logs."""

    name = "mlperf"
    summary = ":::MLLOG lines of MLPerf Training"
    takes = frozenset({"constants", "steps"})

    def read(self, paths: Sequence[Path], options: ImportOptions) -> Imported:
        """See `Importer.read`; every run is a trial."""
        columns, facts = split_targets(pairs(options.constants, "--set", "n_gpus=8"))
        skipped: list[tuple[Path, int, str]] = []
        notices: list[str] = []
        trials = []
        for path in paths:
            runs = _runs(_events(path, skipped))
            trials += [_trial(path, run, columns, facts, options.steps, notices) for run in runs]
        if not trials:
            raise nothing_left(
                paths, skipped, "lines beginning with :::MLLOG", "give the log of an MLPerf Training run"
            )
        if all("power_w" not in t for t in trials):
            notices.append(
                "MLPerf logs hold no power of GPUs: it stays unknown (import the node's nvidia-smi log as well)"
            )
        samples = {t.pop("train_samples", None) for t in trials} - {None}
        if len(samples) == 1:
            facts.setdefault("samples_per_epoch", samples.pop())
        return finish(trials, facts, paths, str(paths[0]), (), [*skipped_notices(skipped), *notices])


def _events(path: Path, skipped: list[tuple[Path, int, str]]) -> list[Event]:
    """The events in order; what several ranks write alike counts once."""
    events: list[Event] = []
    seen: set[str] = set()
    for number, text in read_lines(path):
        _, mark, body = text.partition(MARK)
        if not mark or body.strip() in seen:
            continue
        seen.add(body.strip())
        try:
            told = json.loads(body)
        except (ValueError, RecursionError):
            skipped.append((path, number, f"no JSON after {MARK}: {body.strip()[:60]!r}"))
            continue
        time_ms = told.get("time_ms") if isinstance(told, dict) else None
        if not _is_number(time_ms) or not 0 < time_ms < 1e14 or not isinstance(told.get("key"), str):
            skipped.append((path, number, "no time_ms or key"))
            continue
        metadata = told.get("metadata")
        events.append(Event(number, time_ms / 1e3, told["key"], told.get("value"),
                            metadata if isinstance(metadata, dict) else {}))  # fmt: skip
    return events


def _is_number(value: Any) -> TypeGuard[float]:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and abs(value) < 1e300


def _runs(events: list[Event]) -> list[list[Event]]:
    """The events of each run: a new one begins with the first opening event after a run_stop."""
    runs: list[list[Event]] = [[]]
    stopped = False
    for event in events:
        if stopped and event.key in ("submission_benchmark", "init_start", "run_start", "cache_clear"):
            runs.append([])
            stopped = False
        stopped = stopped or event.key == "run_stop"
        runs[-1].append(event)
    return [run for run in runs if run]


def _trial(
    path: Path, run: list[Event], columns: Mapping[str, Any], facts: Mapping[str, Any], steps: int | None,
    notices: list[str],
) -> dict[str, Any]:  # fmt: skip
    values = {e.key: e.value for e in run}
    nodes, per_node = _count(values, "number_of_nodes"), _count(values, "accelerators_per_node")
    accum = columns.get("accum_steps") or _count(values, "gradient_accumulation_steps") or 1
    n_gpus = columns.get("n_gpus") or (nodes * per_node if nodes and per_node else None)
    benchmark, batch = values.get("submission_benchmark"), _count(values, "global_batch_size")
    told: dict[str, Any] = {
        "workload": benchmark if isinstance(benchmark, str) and benchmark else None,
        "n_gpus": n_gpus,
        "n_nodes": nodes,
        "accum_steps": accum,
        "local_batch": _count(values, "local_batch_size"),
        **columns,
    }
    if told["local_batch"] is None and batch and n_gpus and batch % (n_gpus * accum) == 0:
        told["local_batch"] = batch // (n_gpus * accum)
    require(told, ("workload", "n_gpus", "local_batch"), str(path))
    samples = told["n_gpus"] * told["local_batch"] * accum
    rates = _rates(run, samples, path, notices)
    starts = [e.time_s for e in run if e.key == "run_start"]
    stops = [e for e in run if e.key == "run_stop"]
    if stops and stops[-1].metadata.get("status") not in (None, "success"):
        notices.append(f"{path}: line {stops[-1].line}: the run ended as {stops[-1].metadata['status']!r}")
    told["step_time_s"] = columns.get("step_time_s")
    if steps and starts and stops and stops[-1].time_s > starts[0]:
        told |= {"steps": steps, "step_time_s": (stops[-1].time_s - starts[0]) / steps}
    elif told["step_time_s"] is None and rates:
        each = [samples / rate for rate in rates]
        told |= {"step_time_s": fmean(each), "step_time_std_s": stdev(each) if len(each) > 2 else None}
    if starts:
        told["started_at"] = datetime.fromtimestamp(starts[0], UTC)
    return {"line": run[0].line, "train_samples": _count(values, "train_samples"), **told}


def _count(values: Mapping[str, Any], key: str) -> int | None:
    value = values.get(key)
    return int(value) if _is_number(value) and value == int(value) and 0 < value < 1e15 else None


def _rates(run: list[Event], samples: int, path: Path, notices: list[str]) -> list[float]:
    """Samples a second: counted between the marks of blocks or epochs, else as the log tells it."""
    told = [float(v) for e in run if e.key == "tracked_stats" and isinstance(e.value, dict)
            and _is_number(v := e.value.get("throughput")) and v > 0]  # fmt: skip
    counted = _counted(run)
    if counted and told and abs(median(told) / median(counted) - 1) > WIDE_GAP:
        notices.append(f"{path}: throughput is logged as {median(told):.4g}/s and counted as {median(counted):.4g} "
                       "samples/s (another unit?): the count is taken")  # fmt: skip
    if counted or not told:
        return counted
    notices.append(f"{path}: the throughput of tracked_stats is taken as samples/s")
    return told[1:] if len(told) > 3 else told


def _counted(run: list[Event]) -> list[float]:
    """Rates of the blocks (start and stop with samples_count); the first of several is warm-up."""
    rates = []
    blocks = [e for e in run if e.key in ("block_start", "block_stop")]
    for a, b in pairwise(blocks):
        first, last = a.metadata.get("samples_count"), b.metadata.get("samples_count")
        if (a.key, b.key) == ("block_start", "block_stop") and _is_number(first) and _is_number(last):
            seconds = b.time_s - a.time_s
            if seconds > 0 and last > first and math.isfinite((last - first) / seconds):
                rates.append((last - first) / seconds)
    return rates[1:] if len(rates) > 3 else rates
