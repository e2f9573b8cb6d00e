"""NVIDIA GPUs through NVML. The only module that imports pynvml (from nvidia-ml-py), and only when asked."""

from __future__ import annotations

import contextlib
import os
import platform
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from pfprofile.device.base import Reading, RefusedError
from pfprofile.errors import HardwareError

#: Bits of nvmlDeviceGetCurrentClocksEventReasons (nvml.h) and what they mean.
REASONS = {0x4: "power", 0x20: "thermal", 0x40: "thermal", 0x8: "hardware", 0x80: "hardware"}

#: Return codes of nvml.h that mean: nothing was done, and trying again is no use.
NOT_SUPPORTED, NO_PERMISSION, FUNCTION_NOT_FOUND = 3, 4, 13

#: Fields of nvmlDeviceGetFieldValues, in mW.
POWER_AVERAGE, POWER_INSTANT = 185, 186
#: nvmlGpuVirtualizationMode_t of guests that do not own the board.
VGPU, VSGA = 2, 4


def load_pynvml() -> Any:
    """Import NVIDIA's pynvml.

    Raises:
        HardwareError: not installed, or another module of that name is in its place; the remedy is named.
    """
    try:
        import pynvml as module
    except ImportError as error:
        raise HardwareError(f"pynvml cannot be imported: {error}", "pip install nvidia-ml-py") from None
    if not hasattr(module, "nvmlDeviceGetHandleByIndex"):
        where = getattr(module, "__file__", "unknown")
        raise HardwareError(
            f"the module pynvml at {where} is not NVIDIA's",
            "remove or rename it, then: pip install --force-reinstall nvidia-ml-py",
        )
    return module


def text(value: Any) -> str:
    """A string of pynvml: bytes before 11.5."""
    return value.decode(errors="replace") if isinstance(value, bytes) else str(value)


def open_gpus(uuids: Sequence[str]) -> NvmlDevice:
    """The GPUs with these UUIDs, in this order, whatever CUDA_VISIBLE_DEVICES says. Raises HardwareError."""
    return NvmlDevice(uuids)


class NvmlDevice:
    """GPUs, all of one name. See `base.Device`.

    Args:
        uuids: which and in which order; None = those that CUDA_VISIBLE_DEVICES leaves.

    Raises:
        HardwareError: no driver, none left, or they differ.
    """

    kind = "cuda"
    sensors_are_shared = True
    opener = "pfprofile.device.nvml:open_gpus"

    def __init__(self, uuids: Sequence[str] | None = None) -> None:
        self._nvml = load_pynvml()
        # Where a driver lacks a newer version of a call, pynvml raises an error that is no NVMLError.
        mismatch = getattr(self._nvml, "NVMLLibraryMismatchError", self._nvml.NVMLError)
        self._error: tuple[type[Exception], ...] = (self._nvml.NVMLError, mismatch)
        try:
            self._nvml.nvmlInit()
        except self._error as error:
            raise HardwareError(f"no NVIDIA driver answers: {error}", "check: nvidia-smi") from None
        try:
            self._identify(uuids)
        except BaseException:
            self.close()
            raise

    def _identify(self, wanted: Sequence[str] | None) -> None:
        nvml = self._nvml
        total = self._call("count the GPUs", nvml.nvmlDeviceGetCount)
        found = [self._call(f"open GPU {i}", nvml.nvmlDeviceGetHandleByIndex, i) for i in range(total)]
        uuids = [text(self._call("read a UUID", nvml.nvmlDeviceGetUUID, h)) for h in found]
        #: the first word of CUDA_VISIBLE_DEVICES that names no GPU here; CUDA stops there
        self.unknown_entry: str | None = None
        if wanted is None:
            chosen, self.unknown_entry = visible(uuids, os.environ.get("CUDA_VISIBLE_DEVICES"))
        else:
            chosen = [_index_of(uuid, uuids) for uuid in wanted]
        if not chosen:
            given = os.environ.get("CUDA_VISIBLE_DEVICES")
            why = f": CUDA_VISIBLE_DEVICES={given!r} names none of the {total}" if given is not None else ""
            there = ", ".join(f"{i} = {uuid}" for i, uuid in enumerate(uuids[:8]))
            raise HardwareError(
                f"no NVIDIA GPU may be used here{why}", f"there are {there}" if there else "check: nvidia-smi -L"
            )
        self.total = total
        self._indices = chosen
        self._handles = [found[i] for i in chosen]
        self.uuids = tuple(uuids[i] for i in chosen)
        self.count = len(chosen)
        names = [text(self._call("read a GPU's name", nvml.nvmlDeviceGetName, h)) for h in self._handles]
        if len(set(names)) > 1:
            raise HardwareError(
                f"the GPUs differ: {', '.join(sorted(set(names)))}", "choose one kind by CUDA_VISIBLE_DEVICES"
            )
        self.name = names[0]
        driver = self._ask("nvmlSystemGetDriverVersion")
        self.driver_version = text(driver) if driver is not None else None
        first = self._handles[0]
        self.supported_clocks_mhz = self._clocks(first)
        self.default_clock_mhz = None
        if self.supported_clocks_mhz:
            top = self._ask("nvmlDeviceGetMaxClockInfo", first, nvml.NVML_CLOCK_SM)
            self.default_clock_mhz = float(top) if top else self.supported_clocks_mhz[-1]
        # The usage call averages over a second on some generations; the instant field does not.
        self._instant = self._field(0, POWER_INSTANT) is not None
        limit = self._ask("nvmlDeviceGetEnforcedPowerLimit", first)
        self.power_limit_w = limit / 1e3 if limit else None
        constraints = self._ask("nvmlDeviceGetPowerManagementLimitConstraints", first)
        self.power_limit_range_w = tuple(v / 1e3 for v in constraints) if constraints else ()

    def _clocks(self, handle: Any) -> tuple[float, ...]:
        memory = self._ask("nvmlDeviceGetSupportedMemoryClocks", handle)
        if not memory:
            return ()
        clocks = self._ask("nvmlDeviceGetSupportedGraphicsClocks", handle, max(memory))
        return tuple(sorted({float(c) for c in clocks or ()}))

    def _function(self, function: str | Callable[..., Any]) -> Callable[..., Any] | None:
        return getattr(self._nvml, function, None) if isinstance(function, str) else function

    def _ask(self, function: str | Callable[..., Any], *arguments: Any) -> Any:
        """A value that may be missing: an old driver, an old pynvml or this GPU may not know it."""
        call = self._function(function)
        if call is None:
            return None
        try:
            return call(*arguments)
        except self._error as error:
            if getattr(error, "value", None) == getattr(self._nvml, "NVML_ERROR_GPU_IS_LOST", object()):
                raise HardwareError(f"a GPU has fallen off the bus: {error}", "reset or reboot the node") from None
            return None

    def _call(self, what: str, function: str | Callable[..., Any], *arguments: Any) -> Any:
        """A call that must work. Raises HardwareError saying what could not be done, and the permission it needs."""
        call = self._function(function)
        if call is None:
            raise RefusedError(f"cannot {what}: this pynvml lacks {function}", "pip install -U nvidia-ml-py")
        try:
            return call(*arguments)
        except self._error as error:
            code = getattr(error, "value", None)
            if code == NO_PERMISSION:
                hint = "locking clocks needs root or CAP_SYS_ADMIN; without it: --freqs default"
                raise RefusedError(f"cannot {what}: {error}", hint) from None
            if code in (NOT_SUPPORTED, FUNCTION_NOT_FOUND):
                raise RefusedError(f"cannot {what}: {error}") from None
            raise HardwareError(f"cannot {what}: {error}") from None

    def read(self, index: int) -> Reading:
        """The sensors of one GPU. Raises HardwareError where it is lost."""
        nvml, handle = self._nvml, self._handles[index]
        power = self._field(index, POWER_INSTANT) if self._instant else None
        if power is None:
            power = self._ask("nvmlDeviceGetPowerUsage", handle)
        energy = self._ask("nvmlDeviceGetTotalEnergyConsumption", handle)
        clock = self._ask("nvmlDeviceGetClockInfo", handle, nvml.NVML_CLOCK_SM)
        temperature = self._ask("nvmlDeviceGetTemperature", handle, nvml.NVML_TEMPERATURE_GPU)
        bits = self._ask("nvmlDeviceGetCurrentClocksEventReasons", handle)
        if bits is None:
            bits = self._ask("nvmlDeviceGetCurrentClocksThrottleReasons", handle)
        limits = None if bits is None else frozenset(word for bit, word in REASONS.items() if bits & bit)
        return Reading(
            power_w=power / 1e3 if power else None,
            energy_j=energy / 1e3 if energy is not None else None,
            sm_clock_mhz=float(clock) if clock is not None else None,
            temperature_c=float(temperature) if temperature is not None else None,
            limits=limits,
        )

    def _field(self, index: int, field: int) -> int | None:
        """One field value, an unsigned int (the power fields are); None = it has none, by its own return code."""
        values = self._ask("nvmlDeviceGetFieldValues", self._handles[index], [field])
        if not values or values[0].nvmlReturn != 0:
            return None
        return int(values[0].value.uiVal)

    def nvml_index(self, index: int) -> int:
        """NVML's number of one GPU, which need not be CUDA's."""
        return self._indices[index]

    def sensors(self, index: int) -> dict[str, bool]:
        """Which sensors of one GPU answer. Raises HardwareError where it is lost."""
        handle = self._handles[index]
        return {
            "energy counter": self._ask("nvmlDeviceGetTotalEnergyConsumption", handle) is not None,
            "instant power (field 186)": self._field(index, POWER_INSTANT) is not None,
            "average power (field 185)": self._field(index, POWER_AVERAGE) is not None,
            "power usage call": bool(self._ask("nvmlDeviceGetPowerUsage", handle)),
            "SM clock": self._ask("nvmlDeviceGetClockInfo", handle, self._nvml.NVML_CLOCK_SM) is not None,
            "temperature": self._ask("nvmlDeviceGetTemperature", handle, self._nvml.NVML_TEMPERATURE_GPU) is not None,
            "reasons for a low clock": self.read(index).limits is not None,
        }

    def refusal(self, index: int) -> str | None:
        """Why one GPU's power would tell nothing about what trains on it: it is cut into MIG slices."""
        mode = self._ask("nvmlDeviceGetMigMode", self._handles[index])
        if mode and mode[0]:
            return f"GPU {self.uuids[index]} is in MIG mode, and its power is all slices' together"
        return None

    def _virtual(self) -> str | None:
        """Whose clocks belong to somebody else."""
        if "microsoft" in platform.release().lower():
            return "under WSL the clocks belong to Windows"
        if self._ask("nvmlDeviceGetVirtualizationMode", self._handles[0]) in (VGPU, VSGA):
            return "this is a virtual GPU, whose clocks belong to its host"
        return None

    def lock_trouble(self) -> str | None:
        """Why clocks cannot be locked, as far as one may know without trying."""
        if virtual := self._virtual():
            return virtual
        if not self.supported_clocks_mhz:
            return "the driver offers no clocks to choose from"
        if self._function("nvmlDeviceSetGpuLockedClocks") is None:
            return "this pynvml cannot lock clocks (pip install -U nvidia-ml-py)"
        return None

    def lock_clock(self, index: int, clock_mhz: float) -> None:
        """Lock minimum and maximum at one clock."""
        clock = round(clock_mhz)
        self._call(
            f"lock GPU {index} at {clock} MHz", "nvmlDeviceSetGpuLockedClocks", self._handles[index], clock, clock
        )

    def reset_clock(self, index: int) -> None:
        """Take the lock away."""
        self._call(f"reset the clock of GPU {index}", "nvmlDeviceResetGpuLockedClocks", self._handles[index])

    def others(self, index: int) -> list[str]:
        """Compute processes on one GPU that are not this one."""
        running = self._ask("nvmlDeviceGetComputeRunningProcesses", self._handles[index]) or []
        return [f"process {p.pid}{_name_of(p.pid)} on GPU {index}" for p in running if p.pid != os.getpid()]

    def rank_environment(self, n_gpus: int) -> dict[str, str]:
        """Ranks see the GPUs by UUID: NVML's order is not CUDA's."""
        return {"CUDA_VISIBLE_DEVICES": ",".join(self.uuids[:n_gpus])}

    def close(self) -> None:
        """Shut NVML down. A driver that refuses is left as it is: nothing that was measured depends on it."""
        with contextlib.suppress(*self._error):
            self._nvml.nvmlShutdown()


def _name_of(pid: int) -> str:
    """What a process is called, in parentheses; empty where it cannot be seen (another container's)."""
    try:
        return f" ({Path(f'/proc/{pid}/comm').read_text(encoding='utf-8', errors='replace').strip()})"
    except OSError:
        return ""


def _index_of(uuid: str, uuids: list[str]) -> int:
    if uuid not in uuids:
        raise HardwareError(f"the GPU {uuid} is not here", "check nvidia-smi -L")
    return uuids.index(uuid)


def visible(uuids: list[str], variable: str | None) -> tuple[list[int], str | None]:
    """The NVML indices that CUDA_VISIBLE_DEVICES leaves, in its order (integers in PCI order, as NVML counts).

    Returns:
        The indices, and the first entry that names no GPU here, where CUDA itself stops; None = all are known.

    Raises:
        HardwareError: a MIG device, whose energy cannot be told from its neighbours'.
    """
    if variable is None:
        return list(range(len(uuids))), None
    chosen: list[int] = []
    for word in (w.strip() for w in variable.split(",")):
        if word.startswith("MIG"):
            raise HardwareError(
                f"CUDA_VISIBLE_DEVICES names the MIG device {word}, whose power cannot be measured alone",
                "name a whole GPU",
            )
        matches = [int(word)] if word.isdigit() else [i for i, u in enumerate(uuids) if word and u.startswith(word)]
        if len(matches) != 1 or matches[0] >= len(uuids):
            return chosen, word
        chosen.append(matches[0])
    return chosen, None
