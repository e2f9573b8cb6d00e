"""`sweep`, live or from a recording."""

from __future__ import annotations

from pfprofile.errors import UsageError
from pfprofile.sweep.request import Outcome, Reporter, SweepRequest


def sweep(request: SweepRequest, reporter: Reporter | None = None) -> Outcome:
    """Measure what is asked for, or answer it from a recording.

    Raises:
        UsageError: contradictory or missing arguments, or an output that may not be replaced.
        InputError: a recording that lacks points, or an output that holds another sweep.
        HardwareError: no such device, no torch, a lock that is demanded and refused.
        InterruptedSweepError: a signal; what was measured is kept.
    """
    reporter = reporter or Reporter()
    if request.precision not in (None, "fp32", "bf16"):
        raise UsageError(f"--precision {request.precision!r} is unknown", "one of fp32, bf16")
    if request.replay is not None:
        if request.samples:
            raise UsageError("--samples: a recording has no raw samples", "leave --samples or --replay out")
        from pfprofile.sweep.run_replay import sweep_replay

        return sweep_replay(request, reporter)
    if request.command is None and request.throughput_regex is not None:
        raise UsageError("--throughput-regex reads the log of a command", "give --command too")
    if request.workload is None and request.command is None:
        raise UsageError(
            "WORKLOAD is missing", "name a zoo model such as resnet50, module:Class or file.py:Class, or give --command"
        )
    from pfprofile.sweep.run_live import sweep_live

    return sweep_live(request, reporter)
