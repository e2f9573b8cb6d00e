"""Every entry point that we need, called by the real pynvml: symbols, structs, values on each kind of GPU."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

from tests.fake_nvml.asking import ask
from tests.fake_nvml.build import LIBRARY
from tests.fake_nvml.devices import A100, DEVICES, V100

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.fake_nvml.control import Fake

# Every entry point that pynvml asks for on our behalf, as it is called in the library.
SYMBOLS = [
    "nvmlInitWithFlags", "nvmlShutdown", "nvmlErrorString", "nvmlSystemGetDriverVersion", "nvmlSystemGetNVMLVersion",
    "nvmlSystemGetCudaDriverVersion_v2",
    *(f"nvmlDevice{name}" for name in (
        "GetCount_v2", "GetHandleByIndex_v2", "GetHandleByUUID", "GetHandleByPciBusId_v2", "GetIndex", "GetName",
        "GetUUID", "GetPciInfo_v3", "GetSupportedMemoryClocks", "GetSupportedGraphicsClocks", "SetGpuLockedClocks",
        "ResetGpuLockedClocks", "GetClockInfo", "GetMaxClockInfo", "GetPowerUsage", "GetFieldValues",
        "GetTotalEnergyConsumption", "GetTemperature", "GetTemperatureV", "GetCurrentClocksEventReasons",
        "GetCurrentClocksThrottleReasons", "GetPowerManagementLimit", "GetPowerManagementDefaultLimit",
        "GetPowerManagementLimitConstraints", "GetEnforcedPowerLimit", "SetPowerManagementLimit", "GetPerformanceState",
        "GetMigMode", "GetComputeRunningProcesses_v3", "GetMemoryInfo", "GetMemoryInfo_v2", "GetDriverModel_v2",
        "GetArchitecture", "GetCudaComputeCapability", "GetVirtualizationMode", "GetUtilizationRates",
    )),
]  # fmt: skip


def test_the_library_has_every_symbol_and_nothing_leaks(fake_nvml_library: Path) -> None:
    names = subprocess.run(["nm", "-D", "--defined-only", fake_nvml_library / LIBRARY], capture_output=True, text=True)
    exported = {line.split()[-1] for line in names.stdout.splitlines()}
    assert set(SYMBOLS) <= exported
    assert all(name.startswith(("nvml", "fake_")) for name in exported)


def test_pynvml_reaches_every_symbol(fake: Fake) -> None:
    """By the name under which the library has it, so that a wrong suffix would show."""
    ask(
        fake,
        """
for call in (n.nvmlSystemGetDriverVersion, n.nvmlSystemGetNVMLVersion, n.nvmlSystemGetCudaDriverVersion_v2): call()
for name in ("Index", "Name", "UUID", "PciInfo", "SupportedMemoryClocks", "PowerUsage", "TotalEnergyConsumption",
             "CurrentClocksEventReasons", "CurrentClocksThrottleReasons", "PowerManagementLimit", "EnforcedPowerLimit",
             "PowerManagementDefaultLimit", "PowerManagementLimitConstraints", "PerformanceState", "MigMode",
             "ComputeRunningProcesses", "MemoryInfo", "Architecture", "CudaComputeCapability", "VirtualizationMode",
             "UtilizationRates"):
    getattr(n, "nvmlDeviceGet" + name)(h)
n.nvmlDeviceGetHandleByUUID(n.nvmlDeviceGetUUID(h))
n.nvmlDeviceGetHandleByPciBusId(n.nvmlDeviceGetPciInfo(h).busId)
n.nvmlDeviceGetSupportedGraphicsClocks(h, 1215)
n.nvmlDeviceSetGpuLockedClocks(h, 900, 900)
n.nvmlDeviceResetGpuLockedClocks(h)
n.nvmlDeviceGetClockInfo(h, n.NVML_CLOCK_SM)
n.nvmlDeviceGetMaxClockInfo(h, n.NVML_CLOCK_SM)
n.nvmlDeviceGetFieldValues(h, [186])
n.nvmlDeviceGetTemperature(h, n.NVML_TEMPERATURE_GPU)
n.nvmlDeviceGetTemperatureV(h, n.NVML_TEMPERATURE_GPU)
n.nvmlDeviceSetPowerManagementLimit(h, 300000)
n.nvmlDeviceGetMemoryInfo(h, n.nvmlMemory_v2)
attempt(n.nvmlDeviceGetDriverModel, h)
n.nvmlShutdown()
tell("done")
""",
    )
    assert set(SYMBOLS) - set(fake.called()) == {"nvmlErrorString"}  # which needs no driver and is not counted


def test_structs_are_laid_out_as_pynvml_reads_them(make_fake: Callable[..., Fake]) -> None:
    fake = make_fake("A100", "A100")
    fake.start_load(1)
    pci, memory, memory2, fields, use = ask(
        fake,
        """
g = gpus[1]
pci, memory = n.nvmlDeviceGetPciInfo(g), n.nvmlDeviceGetMemoryInfo(g)
memory2 = n.nvmlDeviceGetMemoryInfo(g, n.nvmlMemory_v2)
fields, use = n.nvmlDeviceGetFieldValues(g, [(190, 5), 83]), n.nvmlDeviceGetUtilizationRates(g)
tell([[pci.busIdLegacy, pci.busId, pci.domain, pci.bus, pci.device, pci.pciDeviceId],
      [memory.total, memory.free, memory.used], [memory2.total, memory2.reserved, memory2.free, memory2.used],
      [[f.fieldId, f.scopeId, f.valueType, f.nvmlReturn, f.timestamp > 0, f.value.ullVal > 0] for f in fields],
      [use.gpu, use.memory]])
""",
    )
    assert pci == ["0000:0F:00.0", "00000000:0F:00.0", 0, 0x0F, 0, A100.pci_device_id]
    assert memory[0] == sum(memory[1:]) == memory2[0] == sum(memory2[1:])
    assert memory2[1] > 0
    assert fields == [[190, 5, 1, 0, True, True], [83, 0, 3, 0, True, True]]
    assert use == [100, 40]


def test_identity_of_every_kind_of_gpu(make_fake: Callable[..., Fake]) -> None:
    fake = make_fake(*DEVICES)
    seen = ask(
        fake,
        """
tell([{
    "name": n.nvmlDeviceGetName(h), "uuid": n.nvmlDeviceGetUUID(h), "index": n.nvmlDeviceGetIndex(h),
    "bus": n.nvmlDeviceGetPciInfo(h).busId, "serial": n.nvmlDeviceGetSerial(h),
    "architecture": n.nvmlDeviceGetArchitecture(h), "cc": n.nvmlDeviceGetCudaComputeCapability(h),
    "memory": n.nvmlDeviceGetMemoryInfo(h).total, "memory2": n.nvmlDeviceGetMemoryInfo(h, n.nvmlMemory_v2).total,
    "mem_clocks": n.nvmlDeviceGetSupportedMemoryClocks(h),
    "clocks": n.nvmlDeviceGetSupportedGraphicsClocks(h, n.nvmlDeviceGetSupportedMemoryClocks(h)[0]),
    "max": n.nvmlDeviceGetMaxClockInfo(h, n.NVML_CLOCK_SM), "now": n.nvmlDeviceGetClockInfo(h, n.NVML_CLOCK_SM),
    "limits": [n.nvmlDeviceGetPowerManagementLimit(h), n.nvmlDeviceGetPowerManagementDefaultLimit(h),
               n.nvmlDeviceGetEnforcedPowerLimit(h), *n.nvmlDeviceGetPowerManagementLimitConstraints(h)],
    "mig": attempt(n.nvmlDeviceGetMigMode, h), "driver_model": attempt(n.nvmlDeviceGetDriverModel, h),
    "energy": attempt(n.nvmlDeviceGetTotalEnergyConsumption, h), "virtual": n.nvmlDeviceGetVirtualizationMode(h),
    "power": n.nvmlDeviceGetPowerUsage(h), "pstate": n.nvmlDeviceGetPerformanceState(h),
    "same": [number(n.nvmlDeviceGetHandleByUUID(n.nvmlDeviceGetUUID(h))) == number(h),
             number(n.nvmlDeviceGetHandleByPciBusId(n.nvmlDeviceGetPciInfo(h).busId)) == number(h)],
} for h in gpus])
""",
    )
    assert len(seen) == len(DEVICES)
    assert len({s["uuid"][:12] for s in seen}) == len({s["bus"] for s in seen}) == len(seen)
    for i, (s, device) in enumerate(zip(seen, DEVICES.values(), strict=True)):
        assert (s["name"], s["index"], s["uuid"]) == (device.name, i, fake.uuid(i))
        assert (s["architecture"], tuple(s["cc"])) == (device.architecture, device.cc)
        assert s["memory"] == s["memory2"] == device.memory_bytes
        assert (tuple(s["mem_clocks"]), tuple(s["clocks"])) == (device.mem_clocks_mhz, device.clocks_mhz)
        assert (s["max"], s["now"]) == (device.max_mhz, device.idle_mhz)
        watts = (device.limit_w, device.limit_w, device.limit_w, device.min_limit_w, device.max_limit_w)
        assert s["limits"] == [round(w * 1000) for w in watts]
        assert s["mig"] == ([0, 0] if device.has_mig else "NVMLError_NotSupported")
        assert s["driver_model"] == "NVMLError_NotSupported"
        assert isinstance(s["energy"], int) == device.has_energy_counter
        assert (s["power"], s["pstate"], s["virtual"]) == (round(device.idle_w * 1000), 8, 0)
        assert s["same"] == [True, True]


def test_the_v100_list_is_irregular_and_truncated() -> None:
    assert [c for c in V100.clocks_mhz if 1350 < c <= 1380] == [1380, 1372, 1365, 1357]
    assert DEVICES["P100"].clocks_mhz[:3] == (1480, 1467, 1454)


def test_versions(make_fake: Callable[..., Fake]) -> None:
    fake = make_fake("A100", driver="535.1.2", cuda=12020)
    seen = ask(fake, "tell([n.nvmlSystemGetDriverVersion(), n.nvmlSystemGetCudaDriverVersion(), n.nvmlErrorString(4)])")
    assert seen == ["535.1.2", 12020, "Insufficient Permissions"]


def test_memory_clocks_unknown_or_idle(make_fake: Callable[..., Fake]) -> None:
    code = "tell([attempt(n.nvmlDeviceGetSupportedGraphicsClocks, h, m) for m in (405, 999)])"
    idle, unknown = ask(make_fake("A40"), code)
    assert idle
    assert max(idle) <= 420
    assert unknown == "NVMLError_NotFound"
