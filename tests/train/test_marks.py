"""Windows cut from the hook's marks and from rates in a log; the hook itself."""

import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pfprofile.train.marks import cut_marks, cut_rates, read_marks, settled_at

ROOT = Path(__file__).parent.parent.parent


def marks(step_s, count=400, samples=8.0, first_s=1.0):
    """The first step takes long, as a compiled one does."""
    return [(0.0, samples), *((first_s + i * step_s, samples) for i in range(count))]


@given(st.floats(0.001, 0.5), st.floats(0.1, 5.0))
def test_a_steady_loop_is_timed_to_the_step(step_s, window_s):
    cut = cut_marks({"rank0-1": marks(step_s, 20_000)}, -1.0, window_s, None)
    assert cut.timing.step_time_s == pytest.approx(step_s)
    assert cut.timing.ended_s - cut.timing.started_s >= window_s * 0.999
    assert cut.samples == 8.0


def test_the_slowest_process_counts_and_samples_add_up():
    cut = cut_marks({"rank0-1": marks(0.01), "rank1-2": marks(0.011)}, -1.0, 1.0, None)
    assert cut.timing.step_time_s == pytest.approx(0.011, rel=1e-3)
    assert cut.samples == 16.0


def test_a_number_of_steps_is_kept():
    cut = cut_marks({"rank0-1": marks(0.01)}, -1.0, 1.0, 7)
    assert cut.timing.steps == 7


def test_what_was_before_is_not_looked_at():
    slow = [(i * 0.1, 1.0) for i in range(100)]
    fast = [(10.0 + i * 0.01, 1.0) for i in range(300)]
    assert cut_marks({"a": slow + fast}, 10.0, 1.0, None).timing.step_time_s == pytest.approx(0.01)


def test_no_window_before_it_is_whole():
    assert cut_marks({}, 0.0, 1.0, None) is None
    assert cut_marks({"a": marks(0.01, 50)}, -1.0, 1.0, None) is None
    assert settled_at([0.0, 1.0], 1.0) is None


def test_a_slow_start_is_not_measured():
    warming = [sum(0.5 / (k + 1) for k in range(i)) for i in range(20)]
    steady = [warming[-1] + 0.01 * i for i in range(1, 400)]
    cut = cut_marks({"a": [(t, 0.0) for t in warming + steady]}, -1.0, 1.0, None)
    assert cut.timing.step_time_s == pytest.approx(0.01)
    assert cut.samples is None


def test_rates_are_cut_after_they_settle():
    rates = [(0.1, 5.0), (0.2, 50.0), (0.3, 100.0), *((0.4 + i * 0.1, 100.0) for i in range(20))]
    timing = cut_rates(rates, 0.0, 1.0, None, global_batch=64)
    assert timing.step_time_s == pytest.approx(0.64)
    assert timing.started_s == pytest.approx(0.4)
    assert cut_rates(rates[:6], 0.0, 1.0, None, global_batch=64) is None


def test_the_mean_of_log_lines_is_that_of_their_times():
    rates = [(0.0, 100.0), (1.0, 100.0), (2.0, 100.0), (3.0, 50.0), (4.0, 100.0), (5.0, 50.0)]
    timing = cut_rates(rates, 0.0, 3.0, None, global_batch=100)
    assert timing.step_time_s == pytest.approx((2 + 1 + 2) / 3)


LOOP = "import pfprofile\nfor i in range(5):\n    pfprofile.step(samples=i + 1)\n"


def test_the_hook_writes_marks_where_it_is_told(tmp_path):
    code = LOOP + "import os\nif os.fork() == 0:\n    pfprofile.step()\n    os._exit(0)\nos.wait()\n"
    subprocess.run([sys.executable, "-c", code], check=True, env={"PFPROFILE_MARKS": str(tmp_path), "RANK": "3",
                                                                  "PYTHONPATH": str(ROOT)})  # fmt: skip
    found = sorted(read_marks(tmp_path).values(), key=len)
    assert [samples for _, samples in found[1]] == [1, 2, 3, 4, 5]
    assert [samples for _, samples in found[0]] == [0]
    assert all(path.name.startswith("rank3-") for path in tmp_path.iterdir())


def test_the_hook_does_nothing_unasked_and_loads_next_to_nothing(tmp_path):
    code = LOOP + "import sys\nprint(*{'torch', 'numpy', 'typer', 'pyarrow', 'subprocess'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], check=True, cwd=tmp_path, capture_output=True, text=True,
                          env={"PYTHONPATH": str(ROOT)})  # fmt: skip
    assert done.stdout.strip() == ""
    assert list(tmp_path.iterdir()) == []
