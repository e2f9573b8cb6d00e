"""The one line that a training loop needs: ``pfprofile.step(samples=len(batch))`` after each optimizer step.

Costs one test of a variable where nobody profiles, and one write of 16 bytes where somebody does. Needs no torch, and
knows nothing of ranks: every process of a job writes its own marks, and who launched the job reads them.
"""

from __future__ import annotations

import os
import struct
import time
from pathlib import Path

#: The folder that marks are written to; set by `pfprofile sweep --command`, absent otherwise.
VARIABLE = "PFPROFILE_MARKS"
#: One mark: monotonic time in ns (shared by all processes of a machine) and samples; 0 = not said.
MARK = struct.Struct("<qd")


class _Sink:
    """The file of this process's marks. Opened with the first mark, so that a forked child gets its own."""

    def __init__(self, folder: str) -> None:
        self.folder = Path(folder)
        self.owner = 0
        self.file = -1

    def write(self, samples: float) -> None:
        if self.owner != os.getpid():
            self.owner = os.getpid()
            rank = os.environ.get("RANK", "0")
            name = self.folder / f"rank{rank}-{self.owner}.marks"
            self.file = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        os.write(self.file, MARK.pack(time.monotonic_ns(), samples))


_sink = _Sink(os.environ[VARIABLE]) if os.environ.get(VARIABLE) else None


def step(samples: float | None = None) -> None:
    """Mark the end of one optimizer step (all accumulation included).

    Args:
        samples: what this process trained on in the step, in the unit that --batch-sizes counts in; may be left out.
    """
    if _sink is not None:
        _sink.write(samples or 0.0)
