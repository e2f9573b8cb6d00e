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
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pfprofile.cluster.checks import read_body
from pfprofile.errors import InputError

#: state of a job in squeue and sacct → its short form, and its worth: a share of the planned work, None = by its time
STATES: dict[str, tuple[str, float | None]] = {
    "COMPLETED": ("CD", 1.0), "STAGE_OUT": ("SO", 1.0), "RUNNING": ("R", None), "COMPLETING": ("CG", None),
    "SUSPENDED": ("S", None), "STOPPED": ("ST", None), "SIGNALING": ("SI", None), "RESIZING": ("RS", None),
    "CANCELLED": ("CA", None), "TIMEOUT": ("TO", None), "PREEMPTED": ("PR", None), "PENDING": ("PD", 0.0),
    "CONFIGURING": ("CF", 0.0), "REQUEUED": ("RQ", 0.0), "REQUEUE_HOLD": ("RH", 0.0), "REQUEUE_FED": ("RF", 0.0),
    "RESV_DEL_HOLD": ("RD", 0.0), "SPECIAL_EXIT": ("SE", 0.0), "REVOKED": ("RV", 0.0), "FAILED": ("F", 0.0),
    "NODE_FAIL": ("NF", 0.0), "OUT_OF_MEMORY": ("OOM", 0.0), "BOOT_FAIL": ("BF", 0.0), "DEADLINE": ("DL", 0.0),
}  # fmt: skip
LONG = {short: state for state, (short, _) in STATES.items()}
#: these still hold their GPUs
SEATED = frozenset({"RUNNING", "COMPLETING", "SIGNALING", "RESIZING", "STOPPED"})
NAME, STATE = ("jobname", "name"), ("state", "st")
ELAPSED = ("elapsedraw", "elapsed", "time")
COMMANDS = 'sacct -P -o JobName,State,ElapsedRaw, or squeue -a -o "%j|%T|%M"'


@dataclass(frozen=True, slots=True)
class Progress:
    """Planned against actual of one script.

    Attributes:
        script: its name in the export.
        start_s, end_s: planned.
        expected: share of its time that should be over now.
        state: Slurm's.
        done: share of its steps that it has made.
        behind_s: how far it is behind its plan, s; negative: ahead of it.
    """

    script: str
    start_s: float
    end_s: float
    expected: float
    state: str
    done: float
    behind_s: float


def looks_like_slurm(text: str) -> bool:
    """Whether a text begins with a header of sacct or squeue, separated by bars."""
    head = {word.strip().lower() for word in text.lstrip().split("\n", 1)[0].split("|")}
    return any(n in head for n in NAME) and any(n in head for n in STATE)


def refuse_unseparated(text: str, path: Path) -> None:
    """squeue's and sacct's own layout cuts names short. Raises InputError with what to run instead."""
    head = {word.lower() for word in text.lstrip().split("\n", 1)[0].split()}
    if "jobid" in head and head & {*NAME, *STATE} and "|" not in text:
        raise InputError(f"{path}: columns are not separated by bars, so names may be cut short", f"use {COMMANDS}")


def slurm_state(text: str, path: Path, manifest: Path, now_s: float) -> tuple[dict[str, Any], list[Progress]]:
    """The body of a state file, and planned against actual.

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
    finished, spent_j, rows = [], 0.0, []
    for s in stretches:
        state, elapsed_s = told.get(s["job_name"], ("PENDING", 0.0))
        planned_s = s["end_s"] - s["start_s"]
        worth = STATES[state][1]
        share = min(1.0, elapsed_s / planned_s) if worth is None else worth
        done[s["job"]] = done.get(s["job"], 0.0) + share * (s["last_step"] - s["first_step"])
        spent_j += s["energy_j"] * (min(1.0, elapsed_s / planned_s) if worth in (None, 0.0) else 1.0)
        if worth == 1.0 and s["last"]:
            finished.append(s["job"])
        if state in SEATED:
            gpus = [f"{node}:{i}" for node, indices in s["gpus"].items() for i in indices]
            clock = [c["sm_clock_mhz"] for c in s["clocks_mhz"] if c["after_s"] <= elapsed_s][-1]
            sits[s["job"]] = {"gpus": gpus, "sm_clock_mhz": clock}
        expected = min(1.0, max(0.0, (now_s - s["start_s"]) / planned_s))
        if s["job_name"] in told or expected > 0:
            behind_s = (expected - share) * planned_s
            rows.append(Progress(s["job_name"], s["start_s"], s["end_s"], expected, state.lower(), share, behind_s))
    running = [
        {"job": job, "done_steps": steps, **sits.get(job, {"gpus": []})}
        for job, steps in done.items()
        if job not in finished and steps > 0
    ]
    return {"now": now_s, "spent": spent_j, "finished": finished, "running": running}, rows


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
        raise InputError(f"{path}: no column {options[0]}", f"use {COMMANDS}")

    where = column(NAME), column(STATE), column(ELAPSED)
    told = {}
    for cells in reader:
        if len(cells) < len(head) or cells[where[0]].strip() not in names:
            continue
        name, state, elapsed = (cells[i].strip() for i in where)
        word = state.split()[0].rstrip("+").upper() if state else ""
        word = LONG.get(word, word)
        line = f"{path}: line {reader.line_num}: {name}"
        if word not in STATES:
            raise InputError(f"{line}: unknown state {state!r}", f"one of {', '.join(STATES)}")
        # What has not begun has no time, and says so in many ways.
        told[name] = (word, 0.0 if STATES[word][1] == 0.0 and not _is_time(elapsed) else _seconds(elapsed, line))
    return told


def _is_time(text: str) -> bool:
    return text[:1].isdigit()


def _seconds(text: str, where: str) -> float:
    """``3725``, ``1:02:05`` or ``1-01:02:05``. Raises InputError."""
    days, _, clock = text.rpartition("-")
    try:
        parts = [float(part) for part in clock.split(":")]
        seconds = sum(part * unit for part, unit in zip(reversed(parts), (1.0, 60.0, 3600.0), strict=False))
        return seconds + (float(days) * 86400.0 if days else 0.0)
    except ValueError:
        raise InputError(f"{where}: {text!r} is no time", "write seconds or D-HH:MM:SS") from None
