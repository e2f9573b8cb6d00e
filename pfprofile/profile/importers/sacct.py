"""`import sacct`: Slurm's accounting (``sacct -P``) → finished jobs; steps, arrays' summaries, CPU jobs left out."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from pfprofile.errors import InputError, UsageError
from pfprofile.profile.importers import cells
from pfprofile.profile.importers.base import FinishedJob, Imported, ImportOptions
from pfprofile.profile.importers.delimited import Row, matching, read_delimited
from pfprofile.profile.importers.facts import pairs
from pfprofile.profile.importers.readings import nothing_left, skipped_notices

HINT = (
    "make it with: sacct -a -X -P -S now-30days "
    "-o JobID,JobName,Partition,Account,State,Submit,Start,End,ElapsedRaw,AllocTRES,ReqTRES"
)
_TYPED = re.compile(r"(?:gres/)?gpu:[^=:,()]+[=:](\d+)")
_PLAIN = re.compile(r"(?:gres/)?gpu[=:](\d+)")
#: where a job's GPUs may stand, the best first; GRES counts those of one node
_TRES = ("AllocTRES", "ReqTRES", "TRESReq")
_GRES = ("AllocGRES", "ReqGRES", "ReqTRESPerNode")


class Sacct:
    """Slurm's accounting."""

    name = "sacct"
    summary = "Slurm's accounting (sacct -P) → a jobs file"
    takes = frozenset({"constants", "where"})

    def read(self, paths: Sequence[Path], options: ImportOptions) -> Imported:
        """See `Importer.read`; only completed jobs, unless `--where State=...` asks for others."""
        conditions = pairs(options.where, "--where", "State=COMPLETED")
        state = conditions.pop("State", "COMPLETED")
        skipped: list[tuple[Path, int, str]] = []
        left_out: Counter[str] = Counter()
        found: dict[str, tuple[float, FinishedJob]] = {}
        for path in paths:
            file = read_delimited(path, "|", lambda cells_: {"JobID", "State"} <= set(cells_), "sacct -P")
            _check(path, file.header)
            skipped += file.skipped
            for row in matching(file.rows, conditions, file.header, path):
                why = _left_out(row, state)
                if why is None:
                    _take(path, row, found, skipped)
                else:
                    left_out[why] += 1
        said = [f"{n} rows left out: {why}" for why, n in left_out.most_common()]
        if not found:
            raise nothing_left(paths, skipped, f"{state} job with GPUs{_in_brackets(said)}", HINT)
        first = min(submit_s for submit_s, _ in found.values())
        ordered = sorted(found.values(), key=lambda item: item[0])
        jobs = [FinishedJob(j.name, submit_s - first, j.duration_s, j.n_gpus, j.partition, j.account)
                for submit_s, j in ordered]  # fmt: skip
        return Imported([], [*skipped_notices(skipped), *said], jobs)


def _in_brackets(said: list[str]) -> str:
    return f" ({'; '.join(said)})" if said else ""


def _check(path: Path, header: Sequence[str]) -> None:
    lacking = [name for name in ("JobID", "State", "Submit") if name not in header]
    if not {"ElapsedRaw", "Elapsed"} & set(header) and not {"Start", "End"} <= set(header):
        lacking.append("ElapsedRaw")
    if not {*_TRES, *_GRES} & set(header):
        lacking.append("AllocTRES")
    if lacking:
        raise InputError(f"{path}: no column {' and no '.join(lacking)}", HINT)


def _left_out(row: Row, state: str) -> str | None:
    """Why a row is no job of ours; None where it is one."""
    job = row["JobID"]
    if "." in job:
        return "steps of jobs"
    if "[" in job or "+" in job:
        return "job arrays' summaries and parts of heterogeneous jobs"
    words = row["State"].split()
    if not words or words[0].rstrip("+") != state:
        return f"state {words[0] if words else 'unknown'} (take them with --where State=...)"
    if not _gpus(row):
        return "jobs without GPUs"
    return None


def _gpus(row: Row) -> int:
    """GPUs of a job: the plain count, else the sum over the typed ones; GRES are counted by node."""
    for name in (*_TRES, *_GRES):
        text = row[name]
        plain = _PLAIN.search(text)
        count = int(plain[1][:9]) if plain else sum(int(n[:9]) for n in _TYPED.findall(text))
        if count:
            return count * (cells.whole(row["NNodes"]) or 1) if name in _GRES else count
    return 0


def _take(
    path: Path, row: Row, found: dict[str, tuple[float, FinishedJob]], skipped: list[tuple[Path, int, str]]
) -> None:
    submit_s = cells.timestamp(row["Submit"])
    duration_s = _duration(row)
    if submit_s is None:
        skipped.append((path, row.line, f"Submit is {row['Submit'][:40]!r}"))
    elif duration_s is None or duration_s <= 0:
        skipped.append((path, row.line, "no elapsed time"))
    else:
        name = f"{row['JobName']}-{row['JobID']}" if row["JobName"] else row["JobID"]
        job = FinishedJob(name, submit_s, duration_s, _gpus(row), row["Partition"] or None, row["Account"] or None)
        found[row["JobID"]] = (submit_s, job)


def _duration(row: Row) -> float | None:
    if (raw := cells.whole(row["ElapsedRaw"])) is not None:
        return float(raw)
    if (elapsed := elapsed_s(row["Elapsed"])) is not None:
        return elapsed
    start, end = cells.timestamp(row["Start"]), cells.timestamp(row["End"])
    return end - start if start is not None and end is not None else None


def elapsed_s(text: str) -> float | None:
    """Slurm's ``[D-]HH:MM:SS`` or ``MM:SS`` in seconds, or None."""
    match = re.fullmatch(r"(?:(?:(\d{1,6})-)?(\d{1,2}):)?(\d{1,2}):(\d{1,2})(?:\.\d+)?", text.strip())
    if not match:
        return None
    days, hours, minutes, seconds = (int(part or 0) for part in match.groups())
    return float(((days * 24 + hours) * 60 + minutes) * 60 + seconds)


def said_of_jobs(constants: Sequence[str]) -> tuple[str, int | None]:
    """The model that jobs of an accounting file are taken to run, and their global batch (None = the model's).

    Raises:
        UsageError: no `--set model=NAME`, something else beside them, or a batch that is no count.
    """
    told = pairs(constants, "--set", "model=resnet50")
    foreign = [name for name in told if name not in ("model", "global_batch")]
    if foreign:
        raise UsageError(f"--set {foreign[0]} means nothing to import sacct", "it takes model and global_batch")
    if "model" not in told:
        raise UsageError("Slurm's accounting does not say what the jobs trained", "add --set model=NAME")
    batch = cells.whole(told["global_batch"]) if "global_batch" in told else None
    if "global_batch" in told and not batch:
        raise UsageError(f"--set global_batch={told['global_batch']}: expected a whole number from 1 on")
    return told["model"], batch
