"""Somebody's own training command: its placeholders, its processes, its log."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pfprofile.errors import UsageError
from pfprofile.hook import VARIABLE
from pfprofile.placeholders import BRACES, OF_A_POINT, trouble, used_in
from pfprofile.train.launch import WorkerError
from pfprofile.train.log_rates import LogRates, rate_pattern
from pfprofile.train.marks import Cut, cut_marks, cut_rates, read_marks
from pfprofile.train.oom import says_out_of_memory
from pfprofile.units import counted

#: How often a running command is looked at, s.
LOOK_S = 0.05
#: How much of a log's end is searched for the cause of a failure, bytes.
TAIL_BYTES = 65536


@dataclass(frozen=True, slots=True)
class CommandTemplate:
    """A command line with placeholders.

    Attributes:
        text: as it was given.
        words: split as a shell would, without running one.
        pattern: of --throughput-regex; None = the hook's marks count.
    """

    text: str
    words: tuple[str, ...]
    pattern: re.Pattern[str] | None

    @classmethod
    def parse(cls, text: str, throughput_regex: str | None = None) -> CommandTemplate:
        """Read --command and --throughput-regex.

        Raises:
            UsageError: no words, an open quote or brace, an unknown placeholder (named), a broken expression.
        """
        try:
            words = tuple(shlex.split(text))
            used = {name for word in words for name in used_in(word)}
        except ValueError as error:
            raise UsageError(f"--command cannot be read: {error}", BRACES) from None
        if not words:
            raise UsageError("--command is empty", 'write for example --command "python train.py {local_batch}"')
        if (wrong := trouble(used, OF_A_POINT)) is not None:
            raise UsageError(f"--command: {wrong}", f"known are {', '.join(f'{{{p}}}' for p in OF_A_POINT)}; {BRACES}")
        return cls(text, words, rate_pattern(throughput_regex) if throughput_regex is not None else None)

    def uses(self, *names: str) -> bool:
        """Whether one of these placeholders occurs."""
        return any(used_in(word) & set(names) for word in self.words)

    def fill(self, values: Mapping[str, Any]) -> list[str]:
        """The command for one point."""
        return [word.format(**values) for word in self.words]

    @property
    def name(self) -> str:
        """How a profile calls the job: the first script in the command, else its first word."""
        scripts = [word for word in self.words if word.endswith((".py", ".sh"))]
        return Path((scripts or self.words)[0]).name


class RunningCommand:
    """One start of the command with everything below it; `stop` leaves nothing of it behind.

    Args:
        command: the words of its line.
        environment: variables beside our own.
    """

    def __init__(self, command: Sequence[str], environment: Mapping[str, str]) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="pfprofile-marks-"))
        self._log = (self.folder / "log").open("w+b")
        self._read = 0
        self._rest = ""
        self._rates: list[tuple[float, float]] = []
        root = str(Path(__file__).resolve().parents[2])
        path = os.pathsep.join(p for p in (os.environ.get("PYTHONPATH", ""), root) if p)
        parent = os.getpid() if threading.current_thread() is threading.main_thread() else 0
        self._process = subprocess.Popen(
            [sys.executable, "-m", "pfprofile.train.keeper", str(parent), *command],
            stdin=subprocess.PIPE, stdout=self._log, stderr=self._log, start_new_session=True,
            env={**os.environ, "PYTHONUNBUFFERED": "1", "PYTHONPATH": path, **environment, VARIABLE: str(self.folder)},
        )  # fmt: skip

    @property
    def pid(self) -> int:
        """Of the keeper, which leads a process group."""
        return self._process.pid

    @property
    def ended(self) -> bool:
        """Whether the command is over."""
        return self._process.poll() is not None

    def stop(self) -> None:
        """End all its processes and remove its marks."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()
        self._log.close()
        shutil.rmtree(self.folder, ignore_errors=True)

    def measure(
        self, pattern: re.Pattern[str] | None, *, global_batch: int, window_s: float, steps: int | None,
        ready_s: float, timeout_s: float,
    ) -> Cut:  # fmt: skip
        """One measured window.

        Args:
            pattern: of the rates in its log; None = by the hook's marks.
            global_batch: samples of a step.
            window_s, steps: its least length.
            ready_s: how long the first mark or line may take, s.
            timeout_s: how long the window may take after that, s.

        Raises:
            WorkerError: it ended, ran out of memory, or took too long; with the last line of its log.
        """
        since_s = time.monotonic()
        log = LogRates(pattern) if pattern is not None else None
        deadline_s, seen = since_s + max(ready_s, timeout_s), False
        while True:
            ended = self.ended  # before the look: what it wrote last still counts
            cut, shown = self._look(log, since_s, window_s, steps, global_batch)
            if cut is not None:
                return cut
            if ended:
                raise self._cause(log, shown)
            if shown and not seen:
                seen, deadline_s = True, time.monotonic() + timeout_s
            if time.monotonic() > deadline_s:
                raise WorkerError("timeout", self._late(log, shown, timeout_s if seen else max(ready_s, timeout_s)))
            time.sleep(LOOK_S)

    def _look(
        self, log: LogRates | None, since_s: float, window_s: float, steps: int | None, global_batch: int
    ) -> tuple[Cut | None, int]:
        """The window, if it is there, and how many marks or lines there are."""
        if log is None:
            marks = read_marks(self.folder)
            shown = max((sum(t >= since_s for t, _ in given) for given in marks.values()), default=0)
            return cut_marks(marks, since_s, window_s, steps), shown
        self._read_rates(log)
        timing = cut_rates(self._rates, since_s, window_s, steps, global_batch)
        return (Cut(timing, None) if timing else None), sum(t >= since_s for t, _ in self._rates)

    def _read_rates(self, log: LogRates) -> None:
        raw = os.pread(self._log.fileno(), 1 << 20, self._read)
        self._read += len(raw)
        *lines, self._rest = re.split(r"[\r\n]+", self._rest + raw.decode(errors="replace"))
        for line in lines:
            if (rate := log.read(line)) is not None:
                self._rates.append((time.monotonic(), rate))

    def _tail(self) -> list[str]:
        size = os.fstat(self._log.fileno()).st_size
        text = os.pread(self._log.fileno(), TAIL_BYTES, max(0, size - TAIL_BYTES)).decode(errors="replace")
        return [line.strip() for line in re.split(r"[\r\n]+", text) if re.search(r"\w", line)]

    def _cause(self, log: LogRates | None, shown: int) -> WorkerError:
        code, lines = self._process.returncode, self._tail()
        for line in reversed(lines):
            if says_out_of_memory(line):
                return WorkerError("oom", line[:500])
        last = f"; its last words: {lines[-1][:500]}" if lines else "; it said nothing"
        if code == 0:
            if not shown:
                return WorkerError("failed", f"{_nothing(log)} before the command ended{last}")
            what = counted(shown, "step" if log is None else "line")
            return WorkerError("failed", f"the command ended after {what}, before a window was full{last}")
        how = f"exit code {code}" if code <= 128 else f"signal {code - 128}"
        return WorkerError("failed", f"the command ended with {how}{last}")

    def _late(self, log: LogRates | None, shown: int, waited_s: float) -> str:
        lines = self._tail()
        last = f"; its last words: {lines[-1][:500]}" if lines else ""
        if shown:
            what = counted(shown, "step" if log is None else "line")
            return f"no whole window within the deadline ({waited_s:g} s) after {what}{last}"
        return f"{_nothing(log)} within the deadline ({waited_s:g} s){last}"


def _nothing(log: LogRates | None) -> str:
    return "pfprofile.step() was not called" if log is None else log.trouble()
