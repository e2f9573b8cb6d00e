"""A whole live sweep with chosen clocks through the real pynvml, against the truth of the fake driver."""

import sys
import time
from pathlib import Path

import numpy as np
import pytest

from pfprofile.model import Points
from pfprofile.model.fit import fit_profile
from pfprofile.profile import read_profile
from tests.fake_nvml.devices import A100
from tests.support.on_fake_gpu import COMPUTE_S, MEMORY_S

SCRIPT = Path(__file__).parent.parent / "support" / "on_fake_gpu.py"
BATCH = 16
SWEEP = """
import sys
import time
from pathlib import Path
from pfprofile.sweep import SweepRequest, sweep
from pfprofile.sweep.request import Reporter
sweep(SweepRequest(None, command=sys.argv[1], device="cuda", gpus=(1,), batch_sizes=(16,), freqs="auto",
                   window_s=1.0, output=Path(sys.argv[2])), Reporter(notice=print))
"""


def _inside(kernel, row) -> bool:
    """Whether a kernel ran wholly in a trial's measured window (wall clock against the fake's monotonic one)."""
    start_s = row["started_at"].timestamp() - (time.time() - time.monotonic())
    return start_s <= kernel.start_ns / 1e9 and kernel.end_ns / 1e9 <= start_s + row["steps"] * row["step_time_s"]


TWELVE = SWEEP.replace('freqs="auto"', 'freqs="1410,1200,1005,600,405,210"').replace("(16,)", "(8, 16)")


@pytest.mark.live
@pytest.mark.xdist_group("live")
def test_twelve_points_tell_the_truth_of_the_fake_driver_and_capped_ones_say_so(make_fake, tmp_path):
    fake = make_fake("A100")
    fake.set_power_limit(0, 0.5 * (A100.kernel_power_w(1005, COMPUTE_S, MEMORY_S) +
                                   A100.kernel_power_w(1200, COMPUTE_S, MEMORY_S)))  # fmt: skip
    fake.python(TWELVE, f"{sys.executable} {SCRIPT} {{local_batch}}", str(tmp_path / "p.parquet"), timeout=300)
    rows = read_profile(tmp_path / "p.parquet").rows()
    assert len(rows) == 12 and {r["status"] for r in rows} == {"ok"}
    kernels = fake.kernels(0)
    for row in rows:
        ran = [k for k in kernels if _inside(k, row)]
        # From the first kernel's start to the last one's: the steps of the window with the Python between them.
        true_s = (ran[-1].start_ns - ran[0].start_ns) / 1e9 / (len(ran) - 1)
        assert row["step_time_s"] == pytest.approx(true_s, rel=0.03)
        true_w = (ran[-1].end_j - ran[0].start_j) / (ran[-1].end_ns - ran[0].start_ns) * 1e9
        assert row["power_w"] == pytest.approx(true_w, rel=0.02)
        assert {k.clock_mhz for k in ran} == {row["achieved_clock_mhz"]}
        capped = row["requested_clock_mhz"] > 1005
        assert (row["achieved_clock_mhz"] < row["requested_clock_mhz"]) == capped
        assert row["limited_by"] == ("power" if capped else "none"), row
    locks = {(r["local_batch"], r["requested_clock_mhz"]) for r in rows}
    assert len(fake.audit("lock")) >= len(locks) and fake.lock_of(0) is None


@pytest.mark.live
@pytest.mark.xdist_group("live")
def test_chosen_clocks_on_the_fake_driver_tell_the_truth_at_all_clocks(fake, tmp_path):
    done = fake.python(SWEEP, f"{sys.executable} {SCRIPT} {{local_batch}}", str(tmp_path / "p.parquet"), timeout=300)
    profile = read_profile(tmp_path / "p.parquet")
    rows = profile.rows()
    assert {r["status"] for r in rows} == {"ok"}
    assert 3 <= len(rows) <= 6
    assert {210.0, 1410.0} <= {r["requested_clock_mhz"] for r in rows}
    assert "--freqs auto: 210" in done.stdout
    kernels, shares = fake.kernels(0), []
    for row in rows:
        ran = [k for k in kernels if k.clock_mhz == row["achieved_clock_mhz"] and _inside(k, row)]
        # Between two kernels lies a little Python: a step is never shorter than the kernel, however busy the machine.
        assert row["step_time_s"] >= 0.98 * min(k.end_ns - k.start_ns for k in ran) / 1e9
        assert row["requested_clock_mhz"] == row["achieved_clock_mhz"]
        # The truth is the energy the fake logged, pauses between kernels included: a busy machine has longer ones.
        true_w = (ran[-1].end_j - ran[0].start_j) / (ran[-1].end_ns - ran[0].start_ns) * 1e9
        assert row["power_w"] == pytest.approx(true_w, rel=0.03)
        shares.append(true_w / A100.kernel_power_w(row["achieved_clock_mhz"], COMPUTE_S, MEMORY_S))
    sampling = profile.metadata.sweep["sampling"]
    assert sampling["process"] is True and sampling["looks"] > 10 * len(rows)
    assert fake.lock_of(0) is None
    assert fake.audit("lock", "reset")[-1].kind == "reset"
    clocks = np.array([c for c in A100.clocks_mhz if c % 60 == 30], dtype=float)
    predicted = fit_profile(profile).predict(Points.of(1, BATCH, sm_clock_mhz=clocks))
    power = np.mean(shares) * np.array([A100.kernel_power_w(c, COMPUTE_S, MEMORY_S) for c in clocks])
    assert np.mean(np.abs(predicted.power_w / power - 1)) < 0.06
