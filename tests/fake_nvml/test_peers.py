"""A second opinion: gpustat, nvitop and Zeus's monitor read the same fake and see what it truly does.

They are other people's readings of NVML, so that an error in the fake's structs or units does not go unseen because
our own reader shares it.
"""

from __future__ import annotations

import json
from importlib.util import find_spec
from typing import TYPE_CHECKING

import numpy as np
import pytest

from pfprofile.telemetry.window import counter_power
from tests.fake_nvml.devices import DEVICES

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.fake_nvml.control import Fake

WINDOW_S = 5


def needs(module: str) -> pytest.MarkDecorator:
    """Skip where a peer is not installed."""
    return pytest.mark.skipif(find_spec(module) is None, reason=f"{module} is not installed (pip install '.[peers]')")


@pytest.fixture
def node(make_fake: Callable[..., Fake]) -> Fake:
    """One GPU of each kind, the first three loaded, each at another temperature."""
    fake = make_fake(*DEVICES)
    for gpu in range(len(DEVICES)):
        fake.set_temperature(gpu, 40 + gpu)
    for gpu in range(3):
        fake.start_load(gpu, compute=0.6, memory=0.4)
    return fake


@needs("gpustat")
def test_gpustat_sees_the_same_gpus(node: Fake) -> None:
    code = """
import json, time, gpustat
time.sleep(1.2)  # the slowest sensor averages over a second
keys = ("index", "uuid", "name", "power.draw", "enforced.power.limit", "memory.total", "temperature.gpu", "processes")
print(json.dumps([{k: g.entry[k] for k in keys} for g in gpustat.new_query().gpus]))
"""
    seen = json.loads(node.python(code).stdout)
    assert len(seen) == len(DEVICES)
    for i, (g, device) in enumerate(zip(seen, node.devices, strict=True)):
        truth = node.truth(i)
        assert (g["index"], g["uuid"], g["name"]) == (i, node.uuid(i), device.name)
        assert (g["enforced.power.limit"], g["memory.total"]) == (device.limit_w, device.memory_bytes >> 20)
        assert g["power.draw"] == pytest.approx(truth.power_w, rel=0.03)
        assert g["temperature.gpu"] == 40 + i
        assert len(g["processes"]) == truth.clients


@needs("nvitop")
def test_nvitop_sees_the_same_gpus(node: Fake) -> None:
    node.lock_clock(0, 1005)
    code = """
import json, time, nvitop
time.sleep(1.2)
known = lambda value: None if value is nvitop.NA else value
print(json.dumps([[d.name(), d.uuid(), d.power_usage(), d.power_limit(), d.sm_clock(), d.max_sm_clock(),
                   known(d.total_energy_consumption()), d.memory_total(), d.performance_state(), len(d.processes()),
                   known(d.mig_mode())] for d in nvitop.Device.all()]))
"""
    done = node.python(code)
    assert "FunctionNotFound" not in done.stderr
    seen = json.loads(done.stdout)
    assert len(seen) == len(DEVICES)
    for i, (values, device) in enumerate(zip(seen, node.devices, strict=True)):
        name, uuid, power_mw, limit_mw, clock, max_clock, energy_mj, memory, pstate, processes, mig = values
        truth = node.truth(i)
        assert (name, uuid, limit_mw, memory) == (device.name, node.uuid(i), device.limit_w * 1000, device.memory_bytes)
        assert (clock, max_clock, processes) == (truth.clock_mhz, device.max_mhz, truth.clients)
        assert power_mw / 1000 == pytest.approx(truth.power_w, rel=0.03)
        assert (energy_mj is not None) == device.has_energy_counter
        assert pstate == ("P0" if truth.clients else "P8")
        assert mig == ("Disabled" if device.has_mig else None)
    assert seen[0][4] == 1005


@needs("zeus")
@needs("nvitop")
def test_zeus_nvitop_and_our_reader_measure_the_true_energy(make_fake: Callable[..., Fake]) -> None:
    """Over five seconds with kernels and pauses; the truth is the fake's own energy between the logged moments."""
    fake = make_fake("A100", "A100")
    fake.start_load(0, compute=0.6, memory=0.4)
    code = """
import json, sys, threading, time
import nvitop
from zeus.monitor import ZeusMonitor
from pfprofile.device.find import open_device
from tests.fake_nvml.worker import kernel

seconds, done, rows = float(sys.argv[1]), threading.Event(), [[], []]

def work():
    while not done.is_set():
        kernel(1, 0.01, 0.005)  # short beside the counter's period, or its last tick alone would cost 3 %
        done.wait(0.005)

threading.Thread(target=work, daemon=True).start()
device, monitor, theirs = open_device("cuda"), ZeusMonitor(gpu_indices=[0, 1]), nvitop.Device.all()
start = time.monotonic_ns()
monitor.begin_window("window", sync_execution=False)
first = [gpu.total_energy_consumption() for gpu in theirs]
while time.monotonic_ns() < start + seconds * 1e9:
    for i in range(2):
        reading = device.read(i)
        rows[i].append((time.monotonic(), reading.power_w, reading.energy_j))
    time.sleep(0.02)
zeus = monitor.end_window("window", sync_execution=False)
last = [gpu.total_energy_consumption() for gpu in theirs]
end = time.monotonic_ns()
done.set()
print(json.dumps({
    "start": start, "end": end, "rows": rows, "name": device.name, "uuids": device.uuids,
    "zeus": [zeus.gpu_energy[i] for i in range(2)], "nvitop": [(b - a) / 1000 for a, b in zip(first, last)],
}))
"""
    seen = json.loads(fake.python(code, str(WINDOW_S)).stdout)
    seconds = (seen["end"] - seen["start"]) / 1e9
    assert (seen["name"], seen["uuids"]) == (fake.devices[0].name, [fake.uuid(0), fake.uuid(1)])
    for gpu in range(2):
        true_j = fake.energy_j(gpu, seen["end"]) - fake.energy_j(gpu, seen["start"])
        time_s, power_w, energy_j = np.array(seen["rows"][gpu], dtype=np.float64).T
        ours_w = counter_power(time_s, energy_j)
        assert seen["zeus"][gpu] == pytest.approx(true_j, rel=0.03)
        assert seen["nvitop"][gpu] == pytest.approx(true_j, rel=0.03)
        assert ours_w is not None
        assert ours_w * seconds == pytest.approx(true_j, rel=0.03)
        assert np.median(power_w) == pytest.approx(
            ours_w, rel=0.5
        )  # the same unit; the sensor sees a quarter of the time


@needs("nvitop")
@needs("gpustat")
def test_peers_agree_when_a_gpu_is_lost(make_fake: Callable[..., Fake]) -> None:
    """A lost GPU must not hide the healthy one beside it from anybody."""
    fake = make_fake("A100", "V100")
    fake.lose(1)
    nvitop = fake.python("import nvitop; print(nvitop.Device(0).name())")
    gpustat = fake.python("import gpustat; print(gpustat.new_query().gpus[0].name)")
    assert nvitop.stdout.strip() == gpustat.stdout.strip() == fake.devices[0].name
