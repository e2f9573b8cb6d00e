"""Logs that other people recorded: the numbers that come out are those that a hand calculation gives."""

from __future__ import annotations

import csv
from datetime import datetime

import numpy as np
import pytest

from pfprofile.profile.importers import ImportOptions, importer

ASKED = ("workload=w", "local_batch=8")


def load(form, path, *constants, **options):
    return importer(form).read([path], ImportOptions(constants=(*ASKED, *constants), **options))


def one(done):
    (row,) = done.profiles[0].rows()
    return row


def by_hand(path, column):
    """Trapezoids over every line, J, and the length, s."""
    rows = list(csv.reader(path.read_text().splitlines()))[1:]
    times = np.array([datetime.strptime(r[0], "%Y/%m/%d %H:%M:%S.%f").timestamp() for r in rows])
    watts = np.array([float(r[column]) for r in rows])
    return float((np.diff(times) * (watts[1:] + watts[:-1]) / 2).sum()), float(times[-1] - times[0])


@pytest.mark.parametrize(
    ("name", "column", "busy_from", "busy_to", "busy_w", "clock"),
    [
        ("a100_5050", 6, "10:12:48.0", "10:12:55.9", 129.8, 1410),
        ("a5000_transient", 7, "08:50:41.7", "08:50:47.6", 206.4, 1650),
        ("k40m_transient", 5, "18:15:33.6", "18:15:39.5", 102.8, 745),
    ],
)
def test_fast_polled_logs(data, name, column, busy_from, busy_to, busy_w, clock):
    path = data / "telemetry" / f"nvidia_smi_{name}.csv"
    energy_j, seconds = by_hand(path, column)
    done = load("nvidia-smi", path, steps=100)
    row = one(done)
    assert row["energy_j"] == pytest.approx(energy_j, rel=1e-3)
    assert row["power_w"] == pytest.approx(energy_j / seconds, rel=1e-3)
    assert row["step_time_s"] == pytest.approx(seconds / 100, abs=1e-6)
    assert row["achieved_clock_mhz"] == clock
    assert any("polled faster than the sensor moves" in n for n in done.notices)
    assert any("leave them out with --trim" in n for n in done.notices)
    trimmed = load("nvidia-smi", path, trim=True)
    (words,) = [n for n in trimmed.notices if n.startswith("trimmed")]
    assert busy_from in words
    assert busy_to in words
    assert one(trimmed)["power_w"] == pytest.approx(busy_w, abs=0.1)
    same = load("nvidia-smi", path, start=busy_from, end=busy_to)
    assert one(same)["power_w"] == pytest.approx(busy_w, rel=0.02)


@pytest.mark.parametrize(
    ("name", "watts", "clock", "limit", "device"),
    [
        ("h100_590", 633.6, 1980, 700, "NVIDIA H100 80GB HBM3"),
        ("h200_mig_590", 294.9, 1980, 700, "NVIDIA H200"),
        ("rtx2080s_windows_591", 97, 2055, 250, "NVIDIA GeForce RTX 2080 SUPER"),
    ],
)
def test_dmon_and_query_of_one_moment(data, name, watts, clock, limit, device):
    row = one(load("nvidia-smi-dmon", data / "telemetry" / f"{name}_dmon_load.txt", interval_s=1.0))
    assert row["power_w"] == pytest.approx(watts, abs=0.1)
    assert row["energy_j"] == pytest.approx(4 * watts, rel=1e-3)
    assert row["achieved_clock_mhz"] == clock
    done = load("nvidia-smi", data / "telemetry" / f"{name}_query_gpu_load.csv")
    row = one(done)
    assert (row["achieved_clock_mhz"], row["power_limit_w"], row["device_name"]) == (clock, limit, device)
    assert (row["power_w"], row["limited_by"]) == (None, "none")  # one reading is no mean
    assert "too short" in row["error"]
    assert any("MIG is on" in n for n in done.notices) == ("mig" in name)


def test_zeus_monitor_logs(data):
    rows = load("zeus", data / "batch" / "multi_gpu" / "A40+resnet50+gpu0,1,2,3.csv", steps=40).profiles[0].rows()
    assert [r["power_limit_w"] for r in rows] == list(range(300, 99, -25))
    assert {r["n_gpus"] for r in rows} == {4}
    assert rows[0]["energy_j"] == pytest.approx(1067.513 + 1072.433 + 1049.198 + 1129.595)
    assert rows[0]["power_w"] == pytest.approx(rows[0]["energy_j"] / 8.226085 / 4, rel=1e-6)
    assert rows[-1]["step_time_s"] == pytest.approx(8.274237 / 40, rel=1e-6)
    single = load("zeus", data / "batch" / "multi_gpu" / "V100+resnet50+gpu0.csv").profiles[0].rows()
    assert [r["n_gpus"] for r in single] == [1] * 7
    assert single[0]["power_w"] == pytest.approx(6065.03 / 26.674534, rel=1e-6)


def test_the_zeus_trace(data):
    done = importer("zeus").read(
        [data / "batch" / "summary_power_v100.csv"],
        ImportOptions(constants=("samples_per_epoch=1281167", "device_name=V100"), where=("dataset=imagenet",)),
    )
    rows = done.profiles[0].rows()
    assert len(rows) == 56
    with (data / "batch" / "summary_power_v100.csv").open() as file:
        first = next(r for r in csv.DictReader(file) if r["dataset"] == "imagenet")
    batch, seconds = int(first["batch_size"]), float(first["time_per_epoch"])
    assert (rows[0]["workload"], rows[0]["local_batch"]) == ("resnet50", batch)
    assert rows[0]["step_time_s"] == pytest.approx(seconds * batch / 1281167)
    assert rows[0]["power_w"] == float(first["average_power"])
    assert rows[0]["energy_j"] == pytest.approx(float(first["average_power"]) * seconds)
