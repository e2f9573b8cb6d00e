"""The doctor's page, on the fake driver and without one."""

import json
import os
import re
import subprocess
import sys

import pytest

from pfprofile.device import capabilities
from pfprofile.device.locks import journal_for
from pfprofile.device.nvml import NvmlDevice


def doctor(fake, *args, **env):
    done = subprocess.run(
        [sys.executable, "-m", "pfprofile", "doctor", *args], env={**fake.env, **env}, capture_output=True, text=True,
        check=False,
    )  # fmt: skip
    assert "Traceback" not in done.stderr
    return done


def findings(fake, **env):
    """Exit code, and the findings by topic."""
    done = doctor(fake, "--format", "json", **env)
    page = json.loads(done.stdout)
    assert page["sweep_possible"] == (done.returncode == 0)
    return done.returncode, {f["topic"]: f for f in page["findings"]}


def test_a_healthy_machine(make_fake):
    fake = make_fake("A100", "A100")
    code, found = findings(fake, CUDA_VISIBLE_DEVICES=f"1,{fake.uuid(0)[:8]}")
    assert code == 0
    assert f"CUDA ordinal 0 = NVML index 1 = {fake.uuid(1)}" in found["GPU 0"]["words"]
    assert f"CUDA ordinal 1 = NVML index 0 = {fake.uuid(0)}" in found["GPU 1"]["words"]
    assert "energy counter" in found["GPU 0 sensors"]["words"].split("lacking")[0]
    assert "from 210 to 1410 MHz" in found["clocks"]["words"]
    assert found["clock locks"]["state"] == "ok"
    assert fake.audit("lock", "reset", "limit") == []


def test_what_is_lacking_is_said_with_its_fix(make_fake, tmp_path):
    fake = make_fake("A100")
    fake.set_mig(0)
    fake.add_process(0, os.getpid())
    fake.fail("nvmlDeviceGetTotalEnergyConsumption", "NOT_SUPPORTED")
    code, found = findings(fake)
    assert code == 4
    assert found["GPU 0"]["state"] == "missing"
    assert "MIG" in found["GPU 0"]["words"]
    assert "nvidia-smi -mig 0" in found["GPU 0"]["fix"]
    assert f"process {os.getpid()}" in found["GPU 0 processes"]["words"]
    assert "--shared" in found["GPU 0 processes"]["fix"]
    assert "energy counter" in found["GPU 0 sensors"]["words"].split("lacking")[1]


def test_an_entry_that_names_no_gpu_is_named(make_fake):
    fake = make_fake("A100", "A100")
    code, found = findings(fake, CUDA_VISIBLE_DEVICES="1,7")
    assert code == 0
    assert found["CUDA_VISIBLE_DEVICES"]["state"] == "warning"
    assert "1 of 2 GPUs; '7' names none of them" in found["CUDA_VISIBLE_DEVICES"]["words"]
    code, found = findings(fake, CUDA_VISIBLE_DEVICES="7")
    assert code == 4
    assert f"0 = {fake.uuid(0)}, 1 = {fake.uuid(1)}" in found["GPUs"]["fix"]


def test_a_module_in_pynvmls_place_is_found_with_the_remedy(fake, tmp_path):
    (tmp_path / "pynvml.py").write_text("def nvmlInit(): pass\n")
    code, found = findings(fake, PYTHONPATH=f"{tmp_path}:{fake.env.get('PYTHONPATH', '')}")
    assert code == 4
    assert f"pynvml at {tmp_path / 'pynvml.py'} is not NVIDIA's" in found["GPUs"]["words"]
    assert "pip install --force-reinstall nvidia-ml-py" in found["GPUs"]["fix"]


def test_the_power_limit_and_what_may_be_set(fake):
    _, found = findings(fake)
    assert re.fullmatch(r"\d+ W enforced, \d+–\d+ W settable", found["power limit"]["words"])


def test_a_virtual_gpu_has_no_clocks_of_its_own(fake):
    fake.set_virtualization(0, 2)
    code, found = findings(fake)
    assert code == 0
    assert found["clocks"]["state"] == "warning"
    assert "virtual GPU" in found["clocks"]["words"]


@pytest.mark.parametrize("variable", ["", "7", "GPU-nothing", "MIG-1234"])
def test_a_variable_that_leaves_nothing_is_one_line_and_exit_4(fake, variable):
    code, found = findings(fake, CUDA_VISIBLE_DEVICES=variable)
    assert code == 4
    assert "CUDA_VISIBLE_DEVICES" in found["GPUs"]["words"]


def test_a_journal_of_a_dead_owner_is_shown_and_cleared(fake, state_folder):
    child = subprocess.run([sys.executable, "-c", "import os; print(os.getpid())"], capture_output=True, text=True,
                           check=True)  # fmt: skip
    path = journal_for(1, NvmlDevice.opener, [fake.uuid(0)]).path
    journal_for(1, NvmlDevice.opener, [fake.uuid(0)]).write()
    body = {**json.loads(path.read_text()), "pid": int(child.stdout), "watchdog_start": -1}
    path.unlink()
    (state_folder / f"clocks-{child.stdout.strip()}-{body['start_time']}.json").write_text(json.dumps(body))
    fake.lock_clock(0, 600)
    _, found = findings(fake)
    assert found["clock locks"]["fix"] == "pfprofile doctor --restore-clocks"
    done = doctor(fake, "--restore-clocks")
    assert (done.returncode, fake.lock_of(0)) == (0, None)
    assert "reset the clocks" in done.stderr
    assert "no clock locks are left behind" in doctor(fake, "--restore-clocks").stderr


def test_without_a_gpu_the_page_helps(cli):
    done = cli("doctor")
    assert done.returncode == 4
    assert "--device cpu" in done.stderr
    assert "--replay" in done.stderr
    assert "GPUs" in done.stdout
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("mask", "container", "fix"), [(1 << 21, False, ""), (0, False, "sudo"), (0, True, "SYS_ADMIN")]
)
def test_the_permission_that_is_missing_is_named(monkeypatch, mask, container, fix):
    monkeypatch.setattr(capabilities, "_effective_capabilities", lambda: mask)
    monkeypatch.setattr(capabilities, "in_container", lambda: container)
    found = capabilities.permission()
    assert fix in found.fix
    assert (found.state == "ok") == bool(mask)
