"""The placement view and derived columns."""

from __future__ import annotations

import pytest

from pfprofile.cluster.nodes import NodeGroup, make_cluster
from pfprofile.errors import UsageError
from pfprofile.plan.derived import Rates
from pfprofile.plan.words import placement_view


def segment(job: str, start: float, end: float, gpus: list[str]) -> dict[str, object]:
    return {"job": job, "start_s": start, "end_s": end, "n_gpus": len(gpus), "gpus": gpus}


def test_who_sits_where() -> None:
    cluster = make_cluster([NodeGroup("a", "g", 2, 4, rack="r1"), NodeGroup("b", "g", 1, 4, rack="r2")])
    body = {
        "segments": [
            segment("one", 0.0, 9.0, ["a-0:0", "a-0:1"]),
            segment("two", 5.0, 9.0, ["b:0", "b:1", "b:2", "b:3"]),
        ]
    }
    text = placement_view(body, cluster)
    assert text.splitlines() == [
        "placement at 5.00 s",
        "g, rack r1",
        "  a-0 [AA..]  a-1 [    ]",
        "g, rack r2",
        "  b   [BBBB]",
        "  A one  B two",
    ]
    assert "b   [    ]" in placement_view(body, cluster, at_s=1.0)


def test_derived_columns_follow_from_energy() -> None:
    body = {"totals": {"energy_j": 7.2e6}, "jobs": [{"energy_j": 3.6e6}]}
    Rates(pue=1.5, price_per_kwh=0.2, carbon_g_per_kwh=400.0).add(body)
    assert body["totals"] == {
        "energy_j": 7.2e6,
        "facility_energy_j": 1.08e7,
        "cost": pytest.approx(0.6),
        "carbon_kg": 1.2,
    }
    assert body["jobs"][0]["cost"] == pytest.approx(0.3)
    plain = {"totals": {"energy_j": 7.2e6}, "jobs": []}
    Rates().add(plain)
    assert plain["totals"] == {"energy_j": 7.2e6}


@pytest.mark.parametrize("rates", [{"pue": 0.9}, {"pue": float("nan")}, {"price_per_kwh": -1.0}])
def test_impossible_rates_are_refused(rates: dict[str, float]) -> None:
    with pytest.raises(UsageError):
        Rates(**rates)
