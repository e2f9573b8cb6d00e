"""Open the device that a person asked for."""

from __future__ import annotations

from pfprofile.device.base import Device
from pfprofile.device.cpu import CpuDevice
from pfprofile.errors import HardwareError, UsageError, nearest
from pfprofile.plugins import load_class, names_a_class

KINDS = ("auto", "cuda", "cpu")
#: what a Device of one's own must have
METHODS = ("read", "lock_trouble", "lock_clock", "reset_clock", "others", "refusal", "rank_environment", "close")
WITHOUT_GPU = "use --device cpu to train on the CPU, or --replay PROFILE to answer from a recording"


def open_device(kind: str) -> Device:
    """The machine's devices of one kind; ``auto`` = NVIDIA GPUs; ``file.py:Class`` = a Device of one's own.

    Raises:
        UsageError: an unknown kind.
        InputError: see `pfprofile.plugins.load_class`.
        HardwareError: no such device here; it names ``--device cpu`` and ``--replay``.
    """
    if names_a_class(kind):
        device: Device = load_class(kind, "device", METHODS)()
        return device
    if kind not in KINDS:
        known = ", ".join(KINDS)
        raise UsageError(f"--device {kind!r} is unknown{nearest(kind, KINDS)}", f"one of {known}, or file.py:Class")
    if kind == "cpu":
        return CpuDevice()
    from pfprofile.device.nvml import NvmlDevice

    try:
        return NvmlDevice()
    except HardwareError as error:
        hint = f"{error.hint}; or {WITHOUT_GPU}" if error.hint else WITHOUT_GPU
        raise HardwareError(error.message, hint) from None
