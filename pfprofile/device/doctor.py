"""All that the doctor finds on this machine."""

from __future__ import annotations

import os
from dataclasses import dataclass

from pfprofile.device.capabilities import MISSING, Finding, gpus, journals, permission, torch_build, visibility
from pfprofile.device.find import WITHOUT_GPU
from pfprofile.device.nvml import NvmlDevice
from pfprofile.errors import HardwareError


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """The doctor's page.

    Attributes:
        findings: in the order in which one would mend them.
        sweep_possible: a sweep on GPUs may start.
    """

    findings: tuple[Finding, ...]
    sweep_possible: bool


def diagnose() -> Diagnosis:
    """Look at GPUs, permissions, torch and leftover locks. Changes nothing."""
    found: list[Finding] = []
    usable = True
    try:
        device = NvmlDevice()
    except HardwareError as error:
        found.append(Finding("GPUs", MISSING, error.message, f"{error.hint or 'check nvidia-smi'}; or {WITHOUT_GPU}"))
        usable = False
    else:
        try:
            chosen = os.environ.get("CUDA_VISIBLE_DEVICES")
            if chosen is not None:
                found.append(visibility(device, chosen))
            found += gpus(device)
        except HardwareError as error:
            found.append(Finding("GPUs", MISSING, error.message, error.hint or "check nvidia-smi and dmesg"))
        finally:
            device.close()
        found.append(permission())
        usable = not any(f.state == MISSING for f in found)
    found += [torch_build(), *journals()]
    return Diagnosis(tuple(found), usable)
