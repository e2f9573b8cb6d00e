"""What an export gets: the schedule cut into stretches, each a job on the same GPUs, and how to start it."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from pfprofile.errors import InputError, UsageError, nearest
from pfprofile.placeholders import BRACES, OF_A_STRETCH, clock_word, trouble, used_in
from pfprofile.plugins import load_class


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
        """GPUs on each of its nodes. Raises InputError where they differ: nobody can ask for that."""
        counts = sorted({len(indices) for indices in self.gpus.values()})
        if len(counts) > 1:
            shares = ", ".join(f"{len(indices)} on {node}" for node, indices in self.gpus.items())
            raise InputError(f"job {self.job.name!r}: part {self.part} has unequal shares of its nodes: {shares}",
                             "plan it anew without --running, or write csv:DIR")  # fmt: skip
        return counts[0]

    @property
    def slug(self) -> str:
        """A name for files and schedulers: ``003-nightly-s2``."""
        return f"{self.number:03d}-{slug(self.job.name)}-s{self.part}"

    def values(self) -> dict[str, str]:
        """The placeholders' values."""
        clock = clock_word(self.clocks[0][1])
        return {
            "n_gpus": str(self.n_gpus), "n_nodes": str(len(self.gpus)), "gpus_per_node": str(self.gpus_per_node),
            "local_batch": str(self.local_batch), "accum_steps": str(self.accum_steps),
            "global_batch": str(self.job.global_batch), "clock": clock, "sm_clock_mhz": clock,
            "steps": str(self.last_step - self.first_step), "first_step": str(self.first_step),
            "last_step": str(self.last_step),
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
        used = used_in(job.command or "")
    except ValueError as error:
        raise InputError(f"job {job.name!r}: key command: {error}", BRACES) from None
    if (wrong := trouble(used, OF_A_STRETCH)) is not None:
        raise InputError(f"job {job.name!r}: key command: {wrong}", BRACES)
    return used


def parse_target(text: str, known: Mapping[str, Exporter]) -> tuple[Exporter, str, dict[str, str]]:
    """Read ``slurm:DIR``, ``kubernetes:DIR,image=NAME`` or ``file.py:Class:DIR``.

    Raises:
        UsageError: no folder, an unknown target or option; the nearest is named.
        InputError: see `pfprofile.plugins.load_class`.
    """
    name, colon, rest = text.partition(":")
    if name.endswith(".py"):
        member, colon, rest = rest.partition(":")
        exporter: Exporter = load_class(f"{name}:{member}" if member else name, "export", ("files",))()
        name = f"{name}:{member}"
    elif name in known:
        exporter = known[name]
    else:
        raise UsageError(
            f"--export {text}: unknown target {name!r}{nearest(name, known)}",
            f"one of {', '.join(known)}, or file.py:Class, and :DIR",
        )
    folder, *settings = rest.split(",")
    if not colon or not folder:
        raise UsageError(f"--export {text}: no folder", f"write {name}:DIR")
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
