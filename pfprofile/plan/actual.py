"""What Slurm says of an exported schedule: ``sacct -P`` or ``squeue`` output as a state to replan from.

    sacct -P -o JobName,State,ElapsedRaw          squeue -a -o "%j|%T|%M"

Names are those of the export's scripts; its manifest says which job, steps and GPUs each is. A script that has ended
well has made its steps; one that runs, or was stopped and could write its checkpoint, has made the share of its steps
that its time is of the planned one; one that failed has made none.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pfprofile.cluster.checks import read_body
from pfprofile.errors import InputError
from pfprofile.units import format_duration

#: a state's first word → what it is worth: the share of the planned work, None = by its time
WORTH: dict[str, float | None] = {
    "COMPLETED": 1.0, "RUNNING": None, "COMPLETING": None, "SUSPENDED": None, "CANCELLED": None, "TIMEOUT": None,
    "PREEMPTED": None, "PENDING": 0.0, "CONFIGURING": 0.0, "REQUEUED": 0.0, "FAILED": 0.0, "NODE_FAIL": 0.0,
    "OUT_OF_MEMORY": 0.0, "BOOT_FAIL": 0.0, "DEADLINE": 0.0,
}  # fmt: skip
NAME, STATE = ("jobname", "name"), ("state", "st")
ELAPSED = ("elapsedraw", "elapsed", "time")


def looks_like_slurm(text: str) -> bool:
    """Whether a text begins with a header of sacct or squeue, separated by bars."""
    head = {word.strip().lower() for word in text.lstrip().split("\n", 1)[0].split("|")}
    return any(n in head for n in NAME) and any(n in head for n in STATE)


def slurm_state(text: str, path: Path, manifest: Path, now_s: float) -> tuple[dict[str, Any], list[str]]:
    """The body of a state file, and planned against actual in words.

    Args:
        text: of ``path``.
        path: the output of sacct or squeue.
        manifest: manifest.json of the export.
        now_s: the time, from the plan's zero.

    Raises:
        InputError: no such manifest, a column that is missing, a state or time that cannot be read; the line is named.
    """
    stretches = _stretches(manifest)
    told = _told(text, path, {s["job_name"] for s in stretches})
    done: dict[str, float] = {}
    sits: dict[str, dict[str, Any]] = {}
    finished, spent_j, words = [], 0.0, []
    for s in stretches:
        state, elapsed_s = told.get(s["job_name"], ("PENDING", 0.0))
        planned_s = s["end_s"] - s["start_s"]
        worth = WORTH[state]
        share = min(1.0, elapsed_s / planned_s) if worth is None else worth
        done[s["job"]] = done.get(s["job"], 0.0) + share * (s["last_step"] - s["first_step"])
        spent_j += s["energy_j"] * (min(1.0, elapsed_s / planned_s) if worth in (None, 0.0) else 1.0)
        if state == "COMPLETED" and s["last"]:
            finished.append(s["job"])
        if state in ("RUNNING", "COMPLETING"):
            gpus = [f"{node}:{i}" for node, indices in s["gpus"].items() for i in indices]
            clock = [c["sm_clock_mhz"] for c in s["clocks_mhz"] if c["after_s"] <= elapsed_s][-1]
            sits[s["job"]] = {"gpus": gpus, "sm_clock_mhz": clock}
        expected = min(1.0, max(0.0, (now_s - s["start_s"]) / planned_s))
        if s["job_name"] in told or expected > 0:
            words.append(
                f"{s['job_name']}: planned {format_duration(s['start_s'])} to {format_duration(s['end_s'])}, "
                f"{expected:.0%} by now; {state.lower()}, {share:.0%} done"
            )
    running = [
        {"job": job, "done_steps": steps, **sits.get(job, {"gpus": []})}
        for job, steps in done.items()
        if job not in finished and steps > 0
    ]
    return {"now": now_s, "spent": spent_j, "finished": finished, "running": running}, words


def _stretches(manifest: Path) -> Sequence[Mapping[str, Any]]:
    try:
        stretches: Sequence[Mapping[str, Any]] = json.loads(read_body(manifest))["stretches"]
        if not all({"job_name", "job", "last", "energy_j", "clocks_mhz"} <= set(s) for s in stretches):
            raise KeyError("stretches")
    except (ValueError, KeyError, TypeError):
        raise InputError(f"{manifest}: not a manifest of plan --export slurm:DIR") from None
    return stretches


def _told(text: str, path: Path, names: set[str]) -> dict[str, tuple[str, float]]:
    """State and time of each script; of several runs of one, the last. Other jobs and job steps are left out."""
    reader = csv.reader(io.StringIO(text.strip()), delimiter="|")
    head = [word.strip().lower() for word in next(reader)]

    def column(options: Sequence[str]) -> int:
        for name in options:
            if name in head:
                return head.index(name)
        raise InputError(f"{path}: no column {options[0]}", "sacct -P -o JobName,State,ElapsedRaw")

    where = column(NAME), column(STATE), column(ELAPSED)
    told = {}
    for cells in reader:
        if len(cells) < len(head) or cells[where[0]].strip() not in names:
            continue
        name, state, elapsed = (cells[i].strip() for i in where)
        word = state.split()[0].rstrip("+") if state else ""
        if word not in WORTH:
            raise InputError(f"{path}: line {reader.line_num}: {name}: unknown state {state!r}",
                             f"one of {', '.join(WORTH)}")  # fmt: skip
        told[name] = (word, _seconds(elapsed, f"{path}: line {reader.line_num}: {name}"))
    return told


def _seconds(text: str, where: str) -> float:
    """``3725``, ``1:02:05`` or ``1-01:02:05``. Raises InputError."""
    days, _, clock = text.rpartition("-")
    try:
        parts = [float(part) for part in clock.split(":")]
        seconds = sum(part * unit for part, unit in zip(reversed(parts), (1.0, 60.0, 3600.0), strict=False))
        return seconds + (float(days) * 86400.0 if days else 0.0)
    except ValueError:
        raise InputError(f"{where}: {text!r} is no time", "write seconds or D-HH:MM:SS") from None
