"""Very short sweeps on a fake GPU in one process, a line of JSON each: what came of it. Started by `matrix`.

Reads a line (a key of WAYS), sweeps, tells; the training is one process's kernels, without its start.
"""

import json
import sys
import tempfile
import time
import warnings
from pathlib import Path

from pfprofile.errors import PfprofileError
from pfprofile.sweep import SweepRequest, subject, sweep
from pfprofile.sweep.request import Reporter
from tests.fake_nvml.worker import kernel

#: how → clocks and the window's length, s; an energy counter needs more than a second.
WAYS = {"locked": ("1005", 0.35), "two": ("600,1005", 0.35), "default": ("default", 0.35), "long": ("default", 1.3)}
COLUMNS = ("power_w", "achieved_clock_mhz", "temperature_c", "power_limit_w", "requested_clock_mhz")


class Here:
    """A TrialSource whose steps are kernels of this process."""

    name, precision, idle, groups = "toy", "fp32", False, ()

    def __init__(self, *_):
        pass

    def start(self, point, options):
        return True

    def measure(self, point, options):
        started_s, steps = time.monotonic(), 0
        while time.monotonic() - started_s < options.window_s:
            kernel(0, 0.01)
            steps += 1
        ended_s = time.monotonic()
        return {
            "started_s": started_s, "ended_s": ended_s, "steps": steps, "step_time_s": (ended_s - started_s) / steps,
            "step_time_std_s": None, "sync_time_s": None, "memory_peak_bytes": None,
        }  # fmt: skip

    def drop(self):
        pass

    forget = drop


def once(how, folder):
    said = []
    request = SweepRequest(None, command="toy {local_batch}", device="cuda", gpus=(1,), batch_sizes=(1,),
                           freqs=WAYS[how][0], window_s=WAYS[how][1],
                           output=Path(folder) / "p.parquet", force=True)  # fmt: skip
    try:
        outcome = sweep(request, Reporter(notice=said.append))
    except PfprofileError as error:
        return {"exit": error.exit_code, "words": str(error)}
    row, *more = outcome.profile.rows()
    return {
        "status": row["status"], "words": row["error"], "said": said, "empty": [c for c in COLUMNS if row[c] is None],
        "more": [(r["status"], r["error"]) for r in more],
    }  # fmt: skip


def main():
    warnings.simplefilter("error", ResourceWarning)
    subject.Command = Here
    with tempfile.TemporaryDirectory() as folder:
        print("ready", flush=True)
        for line in sys.stdin:
            print(json.dumps(once(line.strip(), folder)), flush=True)


if __name__ == "__main__":
    main()
