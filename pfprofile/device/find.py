"""Open the device that a person asked for."""

from __future__ import annotations

from pfprofile.device.base import Device
from pfprofile.device.cpu import CpuDevice
from pfprofile.errors import HardwareError, UsageError, nearest

KINDS = ("auto", "cuda", "cpu")
WITHOUT_GPU = "use --device cpu to train on the CPU, or --replay PROFILE to answer from a recording"


def open_device(kind: str) -> Device:
    """The machine's devices of one kind; ``auto`` = NVIDIA GPUs.

    Raises:
        UsageError: an unknown kind.
        HardwareError: no such device here; it names ``--device cpu`` and ``--replay``.
    """
    if kind not in KINDS:
        raise UsageError(f"--device {kind!r} is unknown{nearest(kind, KINDS)}", f"one of {', '.join(KINDS)}")
    if kind == "cpu":
        return CpuDevice()
    from pfprofile.device.nvml import NvmlDevice

    try:
        return NvmlDevice()
    except HardwareError as error:
        hint = f"{error.hint}; or {WITHOUT_GPU}" if error.hint else WITHOUT_GPU
        raise HardwareError(error.message, hint) from None
