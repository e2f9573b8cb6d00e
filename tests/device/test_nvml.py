"""NVML through a pynvml of plain Python: identity, units, missing functions, refusals, foreign modules."""

import os
import platform
import sys
from pathlib import Path
from types import ModuleType

import pytest

from pfprofile.device import open_device
from pfprofile.device.nvml import NvmlDevice, load_pynvml, visible
from pfprofile.errors import HardwareError, UsageError
from tests.support.fakes import FakePynvml


@pytest.fixture
def nvml(monkeypatch):
    def install(**changes):
        fake = FakePynvml(**changes)
        monkeypatch.setitem(sys.modules, "pynvml", fake)
        monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
        return fake

    return install


def test_identity_with_bytes_for_strings(nvml):
    nvml()
    device = NvmlDevice()
    assert device.name == "NVIDIA A100-SXM4-40GB"
    assert device.driver_version == "550.54"
    assert device.uuids == ("GPU-aaaa", "GPU-abbb", "GPU-cccc")
    assert device.supported_clocks_mhz == (1365.0, 1372.0, 1380.0)
    assert device.default_clock_mhz == 1380.0
    assert (device.power_limit_w, device.power_limit_range_w) == (400.0, (100.0, 400.0))
    assert device.rank_environment(2) == {"CUDA_VISIBLE_DEVICES": "GPU-aaaa,GPU-abbb"}


def test_sensors_are_in_watts_joules_and_mhz(nvml):
    nvml()
    reading = NvmlDevice().read(0)
    assert (reading.power_w, reading.energy_j) == (250.5, 7.0)
    assert (reading.sm_clock_mhz, reading.temperature_c) == (1372.0, 61.0)
    assert reading.limits == {"power", "thermal"}


def test_locks_and_resets(nvml):
    fake = nvml()
    device = NvmlDevice()
    device.lock_clock(1, 1372.0)
    device.reset_clock(1)
    assert fake.locks == [(1, 1372, 1372), (1,)]


SENSORS = [
    "nvmlDeviceGetPowerUsage", "nvmlDeviceGetTotalEnergyConsumption", "nvmlDeviceGetClockInfo",
    "nvmlDeviceGetTemperature", "nvmlDeviceGetCurrentClocksEventReasons", "nvmlSystemGetDriverVersion",
    "nvmlDeviceGetSupportedMemoryClocks", "nvmlDeviceGetSupportedGraphicsClocks",
    "nvmlDeviceGetEnforcedPowerLimit", "nvmlDeviceGetPowerManagementLimitConstraints",
]  # fmt: skip


@pytest.mark.parametrize("name", SENSORS)
@pytest.mark.parametrize("how", ["refused", "lacking"])
def test_what_a_driver_cannot_tell_is_unknown(nvml, name, how):
    nvml(**({"faults": {name: 3}} if how == "refused" else {"lacks": (name,)}))
    device = NvmlDevice()
    reading = device.read(0)
    unknown = [reading.power_w, reading.energy_j, reading.sm_clock_mhz, reading.temperature_c, reading.limits]
    empty = [device.driver_version, device.power_limit_w]
    assert None in unknown + empty or () in (device.supported_clocks_mhz, device.power_limit_range_w)


def test_a_lost_gpu_is_an_error(nvml):
    nvml(faults={"nvmlDeviceGetPowerUsage": 15})
    with pytest.raises(HardwareError, match="fallen off the bus"):
        NvmlDevice().read(0)


def test_no_permission_names_the_capability(nvml):
    nvml(faults={"nvmlDeviceSetGpuLockedClocks": 4})
    with pytest.raises(HardwareError, match="CAP_SYS_ADMIN"):
        NvmlDevice().lock_clock(0, 1372.0)


def test_no_clocks_to_choose_from_is_said(nvml):
    nvml(lacks=("nvmlDeviceGetSupportedMemoryClocks",))
    assert "no clocks to choose from" in NvmlDevice().lock_trouble()
    nvml(lacks=("nvmlDeviceSetGpuLockedClocks",))
    assert "cannot lock" in NvmlDevice().lock_trouble()


def test_others_on_a_gpu_are_named(nvml):
    nvml()
    (words,) = NvmlDevice().others(0)
    assert words == f"process 1 ({Path('/proc/1/comm').read_text().strip()}) on GPU 0"


def test_a_foreign_pynvml_is_detected(monkeypatch):
    monkeypatch.setitem(sys.modules, "pynvml", ModuleType("pynvml"))
    with pytest.raises(HardwareError, match=r"not NVIDIA's.*force-reinstall nvidia-ml-py"):
        load_pynvml()


def test_without_a_driver_the_ways_out_are_named(nvml):
    nvml(faults={"nvmlInit": 12})
    for kind in ("auto", "cuda"):
        with pytest.raises(HardwareError) as caught:
            open_device(kind)
        assert caught.value.exit_code == 4
        assert "--device cpu" in str(caught.value)
        assert "--replay" in str(caught.value)


def test_an_unknown_kind_gives_the_nearest():
    with pytest.raises(UsageError, match="did you mean 'cuda'"):
        open_device("cude")


UUIDS = ["GPU-aaaa", "GPU-abbb", "GPU-cccc"]


@pytest.mark.parametrize(
    ("variable", "expected"),
    [(None, ([0, 1, 2], None)), ("", ([], "")), ("2,0", ([2, 0], None)), ("GPU-c", ([2], None)),
     ("GPU-abbb,GPU-aaaa", ([1, 0], None)), ("GPU-a", ([], "GPU-a")), ("0,7,1", ([0], "7")), ("-1", ([], "-1"))],
)  # fmt: skip
def test_cuda_visible_devices(variable, expected):
    assert visible(UUIDS, variable) == expected


def test_under_wsl_and_without_a_lock_call_clocks_belong_to_others(nvml, monkeypatch):
    nvml()
    device = NvmlDevice()
    assert device.lock_trouble() is None
    monkeypatch.setattr(platform, "release", lambda: "5.15.153.1-microsoft-standard-WSL2")
    assert device.lock_trouble() == "under WSL the clocks belong to Windows"


def test_a_mig_device_is_refused():
    with pytest.raises(HardwareError, match="MIG-1234"):
        visible(UUIDS, "MIG-1234")


def test_hidden_gpus_are_not_used(nvml, monkeypatch):
    nvml()
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    with pytest.raises(HardwareError, match="CUDA_VISIBLE_DEVICES"):
        NvmlDevice()
    assert os.environ["CUDA_VISIBLE_DEVICES"] == ""
