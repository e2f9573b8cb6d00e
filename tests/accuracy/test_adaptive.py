"""Adaptive sweeps on real measurements: few clocks find the energy, thirty points the whole table."""

import numpy as np
import pytest

from pfprofile.model import Points
from pfprofile.model.fit import fit_profile
from pfprofile.profile import write_profile
from pfprofile.profile.importers.base import ImportOptions
from pfprofile.profile.importers.table import TableImporter
from pfprofile.sweep import SweepRequest, sweep
from pfprofile.sweep.space import Point
from pfprofile.sweep.surrogate import Machine, expect, fit_rows

CURVES = [(stage, direction) for stage in (0, 7) for direction in ("forward", "backward")]
MOST_ENERGY_ERROR = 0.025
MOST_GAP = 0.015


def imported(path, **given):
    (profile,) = TableImporter().read([path], ImportOptions(**given)).profiles
    return profile


def perseus(data, stage, direction):
    return imported(
        data / "clock" / "perseus_gpt3_a100_sxm.csv",
        mapping=("step_time_s=time", "power_w=energy/time", "requested_clock_mhz=frequency"),
        constants=("n_gpus=1", "local_batch=1", "device_name=NVIDIA A100-SXM4"),
        where=(f"stage={stage}", f"instruction={direction}"),
    )


def pollux(data, job):
    return imported(
        data / "scaling" / "pollux_t4" / job / "placements.csv",
        mapping=("step_time_s=step_time", "local_batch=local_bsz", "placement=placement"),
        constants=("device_name=Tesla T4", "gpus_per_node=4"),
    )


def picked(full, tmp_path, **changes):
    write_profile(full, tmp_path / "full.parquet")
    request = SweepRequest(None, replay=str(tmp_path / "full.parquet"), output=tmp_path / "p.parquet", **changes)
    return sweep(request).profile


@pytest.mark.parametrize(("stage", "direction"), CURVES)
def test_few_clocks_tell_the_energy_of_all(data, tmp_path, stage, direction):
    full = perseus(data, stage, direction)
    few = picked(full, tmp_path, freqs="auto")
    assert len(few.unique("requested_clock_mhz")) <= 6
    clocks, times, powers = (
        np.array(full.table[name].to_pylist(), dtype=float)
        for name in ("requested_clock_mhz", "step_time_s", "power_w")
    )
    predicted = fit_profile(few).predict(Points.of(1, 1, sm_clock_mhz=clocks))
    error = np.abs(predicted.energy_per_step_j / (times * powers) - 1)
    assert error.mean() <= MOST_ENERGY_ERROR


def form_error(fitted_on, rows):
    """MAPE of the analytic form. The residual stage of a model repeats the rows it was fitted on, so that with it the
    error of the full table on itself would say nothing of what the points that were left out are worth."""
    good = [r for r in fitted_on if r["status"] == "ok"]
    predicted = expect(fit_rows(good, Machine("Tesla T4")), [Point.of_row(r) for r in rows]).step_time_s
    return float(np.mean(np.abs(predicted / np.array([r["step_time_s"] for r in rows]) - 1)))


@pytest.mark.parametrize("job", ["bert", "cifar10", "deepspeech2", "imagenet"])
def test_thirty_points_are_worth_almost_the_whole_table(data, tmp_path, job):
    full = pollux(data, job)
    few = picked(full, tmp_path, max_points=30, repeats=1)
    assert few.n_rows == 30
    rows = full.rows()
    assert form_error(few.rows(), rows) <= form_error(rows, rows) + MOST_GAP
