"""`make gpu-check` where there is no GPU: its sensor report on the fake driver, its sweeps on the CPU."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from pfprofile.profile import read_profile

REPO = Path(__file__).resolve().parents[2]
SENSORS = """
import json
from benchmarks._gpu_check import Looker, sensor_report
from pfprofile.device import open_device
from tests.fake_nvml.worker import kernel
looker = Looker(open_device("cuda"), 200.0)
looker.start()
kernel(0, 2.0)
looker.enough.set()
looker.join()
print(json.dumps(sensor_report(looker)))
"""
CHECK = """
import sys
sys.modules["pydantic"] = None
from benchmarks._gpu_check import main
sys.exit(main())
"""


def test_the_sensor_report_on_the_fake(fake):
    report = json.loads(fake.python(SENSORS).stdout)
    assert report["counter_power_w"] > 100
    assert abs(report["gap"]) < 0.5  # the start-up of the kernel is in both, not in equal parts
    assert report["counter_update_period_s"] > 0
    assert report["trouble"] is None
    assert fake.audit("lock", "reset", "limit") == []


@pytest.mark.live
@pytest.mark.xdist_group("live")
def test_it_sweeps_without_pydantic(tmp_path):
    line = ["--device", "cpu", "--workloads", "resnet18", "--batches", "1", "2", "--precision", "fp32", "--window",
            "0.2", "--set", "image_size=32", "-o", str(tmp_path)]  # fmt: skip
    done = subprocess.run([sys.executable, "-c", CHECK, *line], cwd=REPO, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert read_profile(tmp_path / "resnet18.parquet").n_rows == 2
    report = json.loads((tmp_path / "report.json").read_text())
    assert "pydantic is not installed" in report["fit"]
    assert report["sensors"]["counter_power_w"] is None or report["sensors"]["counter_power_w"] > 0
    assert set(report["sampling"]) == {"resnet18"}


def test_without_a_gpu_it_is_exit_4(tmp_path):
    done = subprocess.run([sys.executable, "-m", "benchmarks._gpu_check", "-o", str(tmp_path / "x")], cwd=REPO,
                          capture_output=True, text=True, check=False)  # fmt: skip
    assert done.returncode == 4
    assert "--device cpu" in done.stderr
    assert not (tmp_path / "x").exists()
