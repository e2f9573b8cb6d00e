"""Replanning with jobs under way: where they sit, what is left of work and budget, what is refused."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from pfprofile.errors import InputError, UsageError
from pfprofile.plan.outcome import Options
from pfprofile.plan.planner import Limits, make_plan
from pfprofile.plan.running import StateFile, read_state, resume
from pfprofile.plan.schedule import schedule_body
from pfprofile.plan.simulator import simulate
from pfprofile.policy.registry import make_policy
from tests.plan.cases import CLUSTER, make_jobs
from tests.plan.test_conservation import check

STATE = """
now = "10min"
spent = "100Wh"
finished = ["j1"]
[[running]]
job = "j0"
done_fraction = 0.5
gpus = ["n-0:0", "n-0:1", "n-0:2", "n-0:3"]
sm_clock_mhz = 1140
[[running]]
job = "j2"
done_steps = 2
"""


def left(text: str, tmp_path: Path) -> object:
    path = tmp_path / "state.toml"
    path.write_text(text)
    jobs = make_jobs(1, 4, 0.0)
    return resume(jobs, CLUSTER, read_state(path, None), [256] * 4, str(path))


def test_work_seats_time_and_energy_are_taken_over(tmp_path: Path) -> None:
    jobs = make_jobs(1, 4, 0.0)
    found = left(STATE, tmp_path)
    assert [job.name for job in found.jobs] == ["j0", "j2", "j3"]
    assert found.jobs[0].work == jobs[0].work / 2 and found.jobs[1].work == jobs[2].work - 512
    assert found.now_s == 600 and found.spent_j == 3.6e5
    seat = found.seats[0]
    assert seat.gpus == ((0, 0), (0, 1), (0, 2), (0, 3)) and seat.config.n == 4
    assert seat.config.clock_mhz in (None, 1140.0) and found.seats[1].gpus is None
    limits = Limits(start_s=found.now_s, under_way=found.seats)
    plan = make_plan(found.jobs, CLUSTER, limits)
    assert min(s.start_s for s in plan.outcome.segments) == 600
    check(list(found.jobs), CLUSTER, plan.outcome)
    first = next(s for s in plan.outcome.segments if s.job == 1)
    assert first.kind == "rescale"  # it had begun, so it comes back from a checkpoint
    assert plan.outcome.avg_jct_s >= 600 and plan.bound.gap >= 0


def test_a_job_that_keeps_its_place_pays_no_restart(tmp_path: Path) -> None:
    jobs = make_jobs(3, 1, 0.0)
    whole = simulate(jobs, CLUSTER, make_policy("pfprofile"), Options())
    body = schedule_body(make_plan(jobs, CLUSTER, Limits()), {})
    path = tmp_path / "schedule.json"
    path.write_text(json.dumps(body))
    half_s = whole.end_s / 2
    found = resume(jobs, CLUSTER, read_state(path, half_s), [256], str(path))
    plan = make_plan(found.jobs, CLUSTER, Limits(start_s=half_s, under_way=found.seats))
    assert [s.kind for s in plan.outcome.segments] == ["run"]
    assert plan.outcome.end_s == pytest.approx(whole.end_s)
    assert found.spent_j + plan.outcome.energy_j == pytest.approx(whole.energy_j)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('finished = ["j9"]', ["unknown job 'j9'"]),
        ('[[running]]\njob = "j0"\ndone_fraction = 1.0', ["'j0'", "all its work is done"]),
        ('[[running]]\njob = "j0"\ngpus = ["m-0:0"]', ["unknown GPU 'm-0:0'"]),
        ('[[running]]\njob = "j0"\ngpus = ["n-0:8"]', ["unknown GPU 'n-0:8'"]),
        (
            '[[running]]\njob = "j0"\ngpus = ["n-0:0"]\n[[running]]\njob = "j2"\ngpus = ["n-0:0"]',
            ["n-0:0", "runs both"],
        ),
        ('nwo = "1h"', ["unknown key 'nwo'", "'now'"]),
        ('spent = "3kW"', ["key spent", "a power"]),
        ('finished = ["j0", "j1", "j2", "j3"]', ["every job is finished"]),
        ("now = [", ["neither valid TOML nor JSON"]),
    ],
)
def test_a_wrong_state_is_refused(tmp_path: Path, text: str, words: list[str]) -> None:
    with pytest.raises(InputError) as error:
        left(text, tmp_path)
    assert "state.toml" in str(error.value)
    for word in words:
        assert word in str(error.value)


def test_a_schedule_needs_the_time(tmp_path: Path) -> None:
    path = tmp_path / "schedule.json"
    path.write_text(json.dumps({"segments": []}))
    with pytest.raises(UsageError, match="--now"):
        read_state(path, None)


def test_a_place_that_is_no_block_is_left_with_a_notice() -> None:
    jobs = make_jobs(1, 1, 0.0)
    state = StateFile.model_validate(
        {"running": [{"job": "j0", "done_fraction": 0.1, "gpus": ["n-0:0", "n-1:0", "n-2:0"]}]}
    )
    found = resume(jobs, CLUSTER, state, [256], "state")
    assert "is restarted" in found.notices[0] and found.seats[0].gpus is None
