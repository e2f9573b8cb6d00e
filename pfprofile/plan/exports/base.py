"""What an export gets: the schedule cut into stretches, each a job on the same GPUs, and how to start it."""

from __future__ import annotations

import math
import re
import shlex
import string
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from pfprofile.errors import InputError, UsageError, nearest

#: what a job's ``command`` may name in braces; the same values are exported as PFPROFILE_<NAME>
PLACEHOLDERS = (
    "n_gpus", "n_nodes", "gpus_per_node", "local_batch", "accum_steps", "global_batch", "steps", "first_step",
    "last_step", "clock",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class JobFacts:
    """How a job is started.

    Attributes:
        name: in the jobs file.
        workload: what its model was fitted for.
        zoo: the workload can be trained by ``python -m pfprofile.train``.
        precision: that the model was measured in.
        global_batch: samples in one optimizer step.
        command, partition, account: from the jobs file.
    """

    name: str
    workload: str
    zoo: bool
    precision: str
    global_batch: int
    command: str | None = None
    partition: str | None = None
    account: str | None = None


@dataclass(frozen=True, slots=True)
class Stretch:
    """A job on the same GPUs from a (re)start to its end or next restart. Clocks may change inside, for free.

    Attributes:
        number: position in the order of starts, from 1.
        part: its number among the job's stretches, from 1.
        last: the job finishes with it.
        start_s, end_s: planned; a restart's pause is inside.
        clocks: (seconds after ``start_s``, requested MHz or None = not locked), the first at 0.
        gpus: node → GPU indices.
        first_step, last_step: optimizer steps done before and after it, counted from the plan's start.
        after: numbers of the stretches that must be over first: the job's own, and those that held its GPUs.
        begin_s: not to start before, where GPUs and own stretches would allow it earlier; None = nothing else.
        energy_j: of its GPUs.
    """

    number: int
    job: JobFacts
    part: int
    last: bool
    start_s: float
    end_s: float
    clocks: tuple[tuple[float, float | None], ...]
    gpus: Mapping[str, tuple[int, ...]]
    local_batch: int
    accum_steps: int
    first_step: int
    last_step: int
    after: tuple[int, ...]
    begin_s: float | None
    energy_j: float = 0.0

    @property
    def n_gpus(self) -> int:
        """GPUs over all its nodes."""
        return sum(map(len, self.gpus.values()))

    @property
    def gpus_per_node(self) -> int:
        """GPUs on each of its nodes."""
        return max(map(len, self.gpus.values()))

    @property
    def slug(self) -> str:
        """A name for files and schedulers: ``003-nightly-s2``."""
        return f"{self.number:03d}-{slug(self.job.name)}-s{self.part}"

    def values(self) -> dict[str, str]:
        """The placeholders' values."""
        clock = self.clocks[0][1]
        return {
            "n_gpus": str(self.n_gpus), "n_nodes": str(len(self.gpus)), "gpus_per_node": str(self.gpus_per_node),
            "local_batch": str(self.local_batch), "accum_steps": str(self.accum_steps),
            "global_batch": str(self.job.global_batch), "steps": str(self.last_step - self.first_step),
            "first_step": str(self.first_step), "last_step": str(self.last_step),
            "clock": "" if clock is None else f"{clock:g}",
        }  # fmt: skip

    @property
    def knows_its_end(self) -> bool:
        """Whether the command is told how many steps to make; else it must be ended from outside."""
        return self.last or self.job.command is None or bool(used_placeholders(self.job) & {"steps", "last_step"})

    def command(self, launcher: Sequence[str] = ("python",)) -> str:
        """The shell command that trains it.

        Args:
            launcher: what starts the module of a zoo workload: python, or torchrun with its flags.

        Raises:
            InputError: the job has no command and its workload is none of the zoo, or the command cannot be read.
        """
        job, values = self.job, self.values()
        if job.command is not None:
            used_placeholders(job)
            return job.command.format_map(values)
        if not job.zoo:
            raise InputError(
                f"job {job.name!r}: nothing says how to start it: it has no command, and its workload "
                f"{job.workload!r} is not in the zoo", "add key command to the jobs file",
            )  # fmt: skip
        checkpoint = f"checkpoints/{slug(job.name)}.pt"
        words = [
            *launcher, "-m", "pfprofile.train", job.workload, "--first-step", values["first_step"], "--last-step",
            values["last_step"], "--local-batch", values["local_batch"], "--accum-steps", values["accum_steps"],
            "--precision", job.precision, "--checkpoint", checkpoint,
        ]  # fmt: skip
        return shlex.join(words)


@dataclass(frozen=True, slots=True)
class ExportPlan:
    """A schedule as exports see it.

    Attributes:
        body: the schedule contract.
        stretches: in the order of their starts.
        start_s: the plan's zero: times in scripts count from the submission of the first.
    """

    body: Mapping[str, Any]
    stretches: tuple[Stretch, ...]
    start_s: float


class Exporter(Protocol):
    """One target. ``options`` are its own ``key=value`` settings with their defaults."""

    name: str
    options: Mapping[str, str]

    def files(self, plan: ExportPlan, options: Mapping[str, str]) -> dict[str, str]:
        """Text of each file by its path in the folder. Those that end in .sh or .sbatch are made executable."""


def clock_changes(stretch: Stretch) -> str:
    """``0:1410 95:1200 300:reset``: seconds after the start, and MHz."""
    return " ".join(f"{at:.0f}:{'reset' if mhz is None else format(mhz, 'g')}" for at, mhz in stretch.clocks)


def slug(name: str) -> str:
    """A name without anything that a shell, a file system or a scheduler could take for more than a name."""
    return re.sub(r"[^A-Za-z0-9._-]+", "_", name).strip("._-")[:40] or "job"


def used_placeholders(job: JobFacts) -> set[str]:
    """The placeholders of a job's command. Raises InputError: an unknown one (the nearest is named), an open brace."""
    try:
        used = {name for _, name, _, _ in string.Formatter().parse(job.command or "") if name is not None}
    except ValueError as error:
        raise InputError(f"job {job.name!r}: key command: {error}", "write {{ and }} for braces of its own") from None
    unknown = sorted(used - set(PLACEHOLDERS))
    if unknown:
        raise InputError(
            f"job {job.name!r}: key command: unknown placeholder {{{unknown[0]}}}{nearest(unknown[0], PLACEHOLDERS)}",
            "write {{ and }} for braces of its own",
        )
    return used


@dataclass(slots=True)
class _Open:
    """A stretch that is being gathered."""

    rows: list[Mapping[str, Any]] = field(default_factory=list)
    local_batch: int = 1
    accum_steps: int = 1


def cut(
    body: Mapping[str, Any], batches: list[tuple[int, int]], jobs: Mapping[str, JobFacts], start_s: float
) -> ExportPlan:
    """Cut a schedule into stretches.

    Args:
        body: the schedule contract.
        batches: (local batch, accumulation steps) of each segment.
        jobs: how each is started.
        start_s: the plan's zero.
    """
    gathered: dict[str, list[_Open]] = {}
    for row, (local, accum) in zip(body["segments"], batches, strict=True):
        own = gathered.setdefault(row["job"], [])
        before = own[-1].rows[-1] if own else None
        # A restart begins a stretch; so do other GPUs, and a pause without any.
        same = (
            before is not None and before["gpus"] == row["gpus"] and before["end_s"] == row["start_s"]
            and (row["kind"] == "run" or before["kind"] == "rescale")
        )  # fmt: skip
        if not same:
            own.append(_Open())
        own[-1].rows.append(row)
        own[-1].local_batch, own[-1].accum_steps = local, accum
    order = sorted(
        ((o.rows[0]["start_s"], name, i) for name, own in gathered.items() for i, o in enumerate(own)),
        key=lambda item: (item[0], item[1], item[2]),
    )
    numbers = {(name, i): k for k, (_, name, i) in enumerate(order, start=1)}
    holders: dict[str, int] = {}
    ends: dict[int, float] = {}
    done: dict[str, float] = {}
    stretches = []
    for number, (_, name, i) in enumerate(order, start=1):
        opened, job = gathered[name][i], jobs[name]
        rows = opened.rows
        after = {holders[gpu] for gpu in rows[0]["gpus"] if gpu in holders}
        if i:
            after.add(numbers[name, i - 1])
        begin, end = rows[0]["start_s"], rows[-1]["end_s"]
        free_s = max((ends[k] for k in after), default=start_s)
        samples = math.fsum((r["end_s"] - r["start_s"]) * r["throughput_per_s"] for r in rows)
        first, done[name] = done.get(name, 0.0), done.get(name, 0.0) + samples
        last = i == len(gathered[name]) - 1
        to_step = done[name] / job.global_batch
        stretches.append(
            Stretch(
                number, job, i + 1, last, begin, end, _clocks(rows), _by_node(rows[0]["gpus"]), opened.local_batch,
                opened.accum_steps, round(first / job.global_batch),
                math.ceil(to_step - 1e-6) if last else round(to_step), tuple(sorted(after)),
                begin if begin > free_s + 1.0 else None, math.fsum(r["energy_j"] for r in rows),
            )
        )  # fmt: skip
        ends[number] = end
        for gpu in rows[0]["gpus"]:
            holders[gpu] = number
    return ExportPlan(body, tuple(stretches), start_s)


def _clocks(rows: list[Mapping[str, Any]]) -> tuple[tuple[float, float | None], ...]:
    changes: list[tuple[float, float | None]] = []
    for row in rows:
        if not changes or changes[-1][1] != row["sm_clock_mhz"]:
            changes.append((row["start_s"] - rows[0]["start_s"], row["sm_clock_mhz"]))
    return tuple(changes)


def _by_node(gpus: list[str]) -> dict[str, tuple[int, ...]]:
    nodes: dict[str, list[int]] = {}
    for gpu in gpus:
        node, _, index = gpu.rpartition(":")
        nodes.setdefault(node, []).append(int(index))
    return {node: tuple(indices) for node, indices in nodes.items()}


def parse_target(text: str, known: Mapping[str, Exporter]) -> tuple[Exporter, str, dict[str, str]]:
    """Read ``slurm:DIR`` or ``kubernetes:DIR,image=NAME``.

    Raises:
        UsageError: no folder, an unknown target or option; the nearest is named.
    """
    name, colon, rest = text.partition(":")
    if name not in known:
        raise UsageError(
            f"--export {text}: unknown target {name!r}{nearest(name, known)}", f"one of {', '.join(known)}"
        )
    folder, *settings = rest.split(",")
    if not colon or not folder:
        raise UsageError(f"--export {text}: no folder", f"write {name}:DIR")
    exporter = known[name]
    options = dict(exporter.options)
    for setting in settings:
        key, equals, value = setting.partition("=")
        if key not in options or not equals:
            raise UsageError(
                f"--export {text}: unknown option {setting!r}{nearest(key, options)}",
                f"{name} takes {', '.join(f'{k}=…' for k in options) or 'none'}",
            )
        options[key] = value
    return exporter, folder, options
