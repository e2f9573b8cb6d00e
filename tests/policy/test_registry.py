"""Policies by name, and of one's own: the example of docs/add-a-policy.md is found, run and refused like any other."""

from __future__ import annotations

from pathlib import Path

import pytest

from pfprofile.errors import InputError, UsageError
from pfprofile.plan.outcome import Options
from pfprofile.plan.simulator import simulate
from pfprofile.policy.base import Policy
from pfprofile.policy.clock_rules import ENERGY_OPTIMAL, MAX, parse_rules, with_rule, zeus
from pfprofile.policy.registry import load_policy, make_policy
from tests.plan.cases import CLUSTER, make_jobs
from tests.plan.test_conservation import check

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "policy.py"


def test_the_example_is_a_policy_of_fifteen_lines() -> None:
    policy = make_policy(f"{EXAMPLE}:LargestFirst")
    assert isinstance(policy, Policy) and policy.name == "largest-first"
    code = [line for line in EXAMPLE.read_text(encoding="utf-8").splitlines() if line.strip()]
    assert len(code) <= 15
    jobs = make_jobs(3, 20, 100.0)
    check(jobs, CLUSTER, simulate(jobs, CLUSTER, policy, Options()))


def test_the_page_shows_the_example() -> None:
    page = (EXAMPLE.parents[1] / "docs" / "add-a-policy.md").read_text(encoding="utf-8")
    assert EXAMPLE.read_text(encoding="utf-8") in page


def test_what_cannot_be_loaded_says_why(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="did you mean 'tiresias'"):
        load_policy("tiresia")
    with pytest.raises(InputError, match="no such file"):
        load_policy("nowhere.py:Class")
    with pytest.raises(InputError, match="no policy class 'Largest'"):
        load_policy(f"{EXAMPLE}:Largest")
    broken = tmp_path / "broken.py"
    broken.write_text("1 / 0\n")
    with pytest.raises(InputError, match=r"broken\.py: does not run: ZeroDivisionError"):
        load_policy(f"{broken}:Class")


def test_clock_rules_trade_time_for_energy() -> None:
    jobs = make_jobs(1, 5, 0.0)
    for job in jobs:
        for group in job.tables[0].by_n.values():
            most_w = max(c.gpu_w for c in job.tables[0].configs)
            picks = [rule.pick(group, most_w) for rule in (MAX, zeus(0.0), zeus(0.5), zeus(1.0))]
            speeds = [c.speed_per_s for c in picks]
            energies = [c.gpu_w / c.speed_per_s for c in picks]
            assert picks[0] is picks[1] is group[-1]
            assert speeds == sorted(speeds, reverse=True) and energies == sorted(energies, reverse=True)
            least = min(c.power_w / c.speed_per_s for c in group)
            frugal = ENERGY_OPTIMAL.pick(group, most_w)
            assert frugal.power_w / frugal.speed_per_s == least
    slow, fast = (with_rule(jobs, rule) for rule in (ENERGY_OPTIMAL, MAX))
    assert [j.work for j in slow] == [j.work for j in fast] == [j.work for j in jobs]
    assert slow[0].tables[0].fastest(1).speed_per_s < fast[0].tables[0].fastest(1).speed_per_s


@pytest.mark.parametrize(
    ("text", "words"), [("zeu", "did you mean 'zeus'"), ("zeus:2", "within"), ("zeus:x", "number")]
)
def test_wrong_clock_rules_are_refused(text: str, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        parse_rules(text)


def test_a_bare_zeus_is_a_sweep() -> None:
    assert [rule.label for rule in parse_rules("zeus")] == ["zeus:0", "zeus:0.25", "zeus:0.5", "zeus:0.75", "zeus:1"]
