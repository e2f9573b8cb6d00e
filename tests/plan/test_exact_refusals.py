"""``--exact`` says what it cannot be combined with."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pfprofile.errors import UsageError
from pfprofile.plan.exact import exact_plan
from pfprofile.plan.inputs import load_inputs
from pfprofile.plan.outcome import Seat
from pfprofile.plan.planner import Limits
from tests.plan.fitted import save


@pytest.mark.parametrize(("what", "words"), [("under_way", "--running"), ("power_cap_w", "--power-cap")])
def test_what_exact_cannot_do_is_named(tmp_path: Path, what: str, words: str) -> None:
    save(tmp_path)
    inputs = load_inputs(None, None, tmp_path)
    table = next(iter(inputs.jobs[0].tables.values()))
    value: Any = {0: Seat(0, table.configs[0], None)} if what == "under_way" else 1e6
    with pytest.raises(UsageError, match=words):
        exact_plan(inputs.jobs, inputs.cluster, Limits(**{what: value}))
