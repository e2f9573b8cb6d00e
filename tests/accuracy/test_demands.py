"""The models on public measurements (they are not in this repository; without them these tests skip).

`make bench` runs the whole table; here stands a part of each line that takes seconds.
"""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks import _datasets as sets
from benchmarks._measure import Errors, everything, five_clocks, leave_one_out, mean, measure, observe


def run(named, splits, device):
    return [measure(obs, splits(obs), device, starts=1) for obs in named]


def average(runs: list[Errors], part: str = "time") -> float:
    return mean([r.mape(part=part) for r in runs])


def test_a100_throughput_over_gpus_and_batch(data):
    named = [observe(sets.elasticflow(data, m)) for m in sets.ELASTICFLOW]
    assert average(run(named, everything, "A100")) <= 2.5
    left = run(named, lambda o: leave_one_out(o, "n_gpus", interior=True), "A100")
    assert average(left) <= 5.5
    assert mean([r.coverage() for r in left]) >= 78


def test_a100_throughput_beyond_the_measured_gpus(data):
    named = [observe(sets.elasticflow(data, m)) for m in sets.ELASTICFLOW]
    beyond = run(named, lambda o: [(np.flatnonzero(o.n_gpus <= 16), np.flatnonzero(o.n_gpus >= 32))], "A100")
    assert average(beyond) <= 13


def test_t4_placements(data):
    named = [observe(sets.pollux(data, m)) for m in ("bert", "imagenet")]
    assert average(run(named, everything, "T4")) <= 7.5
    assert average(run(named, lambda o: leave_one_out(o, "n_gpus", interior=True)[::3], "T4")) <= 6.5


def test_clock_curves_from_five_clocks(data):
    curves = [observe(c) for c in sets.clock_curves(data).values()]
    runs = run(curves, lambda o: [five_clocks(o)], "A100")
    assert average(runs) <= 2.0
    assert average(runs, "power") <= 2.5
    assert average(runs, "energy") <= 2.5
    assert mean([r.coverage() for r in runs]) >= 90


@pytest.mark.parametrize("stage", ["stage0-forward", "stage7-backward"])
def test_an_unrecorded_power_limit_is_seen(data, stage):
    obs = observe(sets.perseus(data, "a40")[f"perseus-a40-{stage}"])
    capped = np.flatnonzero(obs.requested_mhz >= 1480)
    errors = measure(obs, [(np.arange(len(obs)), capped)], "A40", starts=1)
    assert errors.mape() <= 1.0
    assert errors.mape(part="power") <= 1.0


@pytest.mark.parametrize(
    "name", ["zeus-v100-imagenet-resnet50-adadelta", "zeus-a40-sentiment140-bert_base_uncased-adamw"]
)
def test_batch_and_power_limit_with_a_latent_clock(data, name):
    obs = observe(dict(sets.zeus(data))[name])
    errors = measure(obs, everything(obs), name.split("-")[1], starts=1)
    assert errors.mape() <= 4.5
    assert errors.mape(part="power") <= 4.5
    left = measure(obs, leave_one_out(obs, "batch")[::3], name.split("-")[1], starts=1)
    assert left.mape() <= 6.5
    assert left.mape(part="power") <= 5.5
