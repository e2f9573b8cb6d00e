"""What one kind of machine can do, as findings: what works, what does not, and the exact fix."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from pfprofile.device.locks import read_journals, state_folder
from pfprofile.device.nvml import NvmlDevice

OK, WARNING, MISSING = "ok", "warning", "missing"
#: Bit of CAP_SYS_ADMIN in a capability mask (linux/capability.h).
SYS_ADMIN = 1 << 21


@dataclass(frozen=True, slots=True)
class Finding:
    """One line of the doctor's page.

    Attributes:
        topic: what it is about.
        state: ok, warning (a sweep is possible, with less) or missing.
        words: what was found.
        fix: what to do; empty where nothing need be done.
    """

    topic: str
    state: str
    words: str
    fix: str = ""


def may_lock() -> bool:
    """Whether this process is root or has CAP_SYS_ADMIN, which locking clocks takes."""
    return bool(_effective_capabilities() & SYS_ADMIN)


def _effective_capabilities() -> int:
    status = Path("/proc/self/status")
    lines = status.read_text(encoding="ascii", errors="replace").splitlines() if status.is_file() else []
    return next((int(line.split()[1], 16) for line in lines if line.startswith("CapEff:")), 0)


def in_container() -> bool:
    """Whether this looks like a container."""
    return Path("/.dockerenv").exists() or Path("/run/.containerenv").exists()


def permission() -> Finding:
    """May this process lock clocks, as far as one may know without trying?"""
    if may_lock():
        return Finding("permission", OK, "root or CAP_SYS_ADMIN: clocks may be locked")
    if in_container():
        fix = "start the container with --cap-add SYS_ADMIN (Kubernetes: securityContext.capabilities.add: [SYS_ADMIN])"
    else:
        fix = 'run the sweep by: sudo -E env "PATH=$PATH" pfprofile sweep …'
    return Finding("permission", WARNING, "no CAP_SYS_ADMIN: clocks cannot be locked, sweeps run unlocked", fix)


def torch_build() -> Finding:
    """Is torch there, and is it a CUDA build? Told from its files: importing it would take seconds."""
    spec = importlib.util.find_spec("torch")
    if spec is None or spec.origin is None:
        return Finding("torch", MISSING, "torch is not installed; only --command and --replay work",
                       "pip install 'pfprofile[train]'")  # fmt: skip
    version = Path(spec.origin).parent / "version.py"
    lines = version.read_text(encoding="utf-8").splitlines() if version.is_file() else []
    told = {}
    for line in lines:
        key, _, value = line.partition("=")
        told[key.split(":")[0].strip()] = value.strip().strip("'\"")
    name, cuda = told.get("__version__", "of unknown version"), told.get("cuda", "None")
    if cuda in ("None", ""):
        return Finding("torch", WARNING, f"torch {name} is a build without CUDA: it trains on CPUs only",
                       "install a torch build with CUDA")  # fmt: skip
    return Finding("torch", OK, f"torch {name} with CUDA {cuda}")


def journals() -> Iterator[Finding]:
    """Clock locks of living and dead owners."""
    found, troubles = read_journals()
    for journal in found:
        owner, gpus = journal.owner(), ", ".join(journal.uuids)
        if owner is None:
            yield Finding("clock locks", WARNING, f"process {journal.pid} died and left {gpus} locked",
                          "pfprofile doctor --restore-clocks")  # fmt: skip
        else:
            yield Finding("clock locks", WARNING, f"{owner} holds the clocks of {gpus}", "wait for it, or end it")
    for words in troubles:
        yield Finding("clock locks", WARNING, words, "remove it once no sweep runs")
    if not found and not troubles:
        yield Finding("clock locks", OK, f"no locks are left behind (journals: {state_folder()})")


def visibility(device: NvmlDevice, variable: str) -> Finding:
    """What CUDA_VISIBLE_DEVICES leaves of the machine's GPUs."""
    words = f"{variable}: {device.count} of {device.total} GPUs"
    if device.unknown_entry is not None:
        words += f"; {device.unknown_entry!r} names none of them, and CUDA stops there"
        return Finding("CUDA_VISIBLE_DEVICES", WARNING, words, "name GPUs by an index or UUID of nvidia-smi -L")
    return Finding("CUDA_VISIBLE_DEVICES", OK, words)


def gpus(device: NvmlDevice) -> Iterator[Finding]:
    """What the GPUs in use are and can do. Raises HardwareError where one is lost."""
    yield Finding("driver", OK, f"NVIDIA driver {device.driver_version or 'of unknown version'}")
    for index, uuid in enumerate(device.uuids):
        where = f"CUDA ordinal {index} = NVML index {device.nvml_index(index)} = {uuid}, {device.name}"
        refusal = device.refusal(index)
        if refusal:
            yield Finding(f"GPU {index}", MISSING, f"{where}: {refusal}", "nvidia-smi -mig 0, or choose another GPU")
        else:
            yield Finding(f"GPU {index}", OK, where)
        others = device.others(index)
        if others:
            yield Finding(f"GPU {index} processes", WARNING, f"others compute here: {', '.join(others)}",
                          "wait for them, or sweep beside them: --shared")  # fmt: skip
        yield _sensors(device, index)
    yield clocks(device)
    if device.power_limit_w is not None:
        settable = "–".join(f"{v:g}" for v in device.power_limit_range_w)
        words = f"{device.power_limit_w:g} W enforced" + (f", {settable} W settable" if settable else "")
        yield Finding("power limit", OK, words)


def _sensors(device: NvmlDevice, index: int) -> Finding:
    told = device.sensors(index)
    there, lacking = [k for k, v in told.items() if v], [k for k, v in told.items() if not v]
    words = f"there: {', '.join(there) or 'none'}" + (f"; lacking: {', '.join(lacking)}" if lacking else "")
    if any("power" in k for k in there) or told["energy counter"]:
        return Finding(f"GPU {index} sensors", OK, words)
    return Finding(f"GPU {index} sensors", WARNING, f"{words}: power and energy stay empty", "update the driver")


def clocks(device: NvmlDevice) -> Finding:
    """Can clocks be chosen?"""
    trouble = device.lock_trouble()
    if trouble:
        return Finding("clocks", WARNING, f"{trouble}: sweeps run at the default clock", "choose a whole GPU on Linux, "
                       "of the Volta generation or newer")  # fmt: skip
    known = device.supported_clocks_mhz
    return Finding("clocks", OK, f"{len(known)} SM clocks from {known[0]:g} to {known[-1]:g} MHz")
