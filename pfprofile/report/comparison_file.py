"""A comparison read for its pictures: the contract's keys checked, any other key let through unread."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from pfprofile.errors import InputError

Amount = Annotated[float, Field(ge=0, allow_inf_nan=False)]


class _Read(BaseModel):
    # A reader of somebody else's contract: a key that a later version adds is no error here.
    model_config = ConfigDict(extra="ignore", frozen=True)


class Run(_Read):
    """One simulated run."""

    trace: str
    policy: str
    clock_rule: str | None = None
    knob: float | str | None = None
    seed: int | None = None
    jobs: int | None = None
    offered_load: Amount | None = None
    avg_jct_s: Amount | None = None
    median_jct_s: Amount | None = None
    p99_jct_s: Amount | None = None
    makespan_s: Amount | None = None
    energy_j: Amount | None = None
    gpu_energy_j: Amount | None = None
    node_energy_j: Amount | None = None
    utilisation: Amount | None = None
    rescales: int | None = None
    migrations: int | None = None

    @property
    def label(self) -> str:
        """The policy, and its clock rule where it has one."""
        return f"{self.policy}, {self.clock_rule}" if self.clock_rule else self.policy


class EqualEnergy(_Read):
    """The baseline's average JCT over the policy's at one energy; clamped where a curve ends before that energy."""

    baseline: str
    policy: str
    energy_j: Amount | None = None
    jct_ratio: Amount | None = None
    clamped: bool = False
    trace: str | None = None


class Comparison(_Read):
    """The comparison contract."""

    runs: list[Run]
    equal_energy: list[EqualEnergy]


def read_comparison(body: Mapping[str, Any], path: Path) -> Comparison:
    """Check the keys of the contract.

    Raises:
        InputError: a missing or wrong value; the key is named.
    """
    try:
        return Comparison.model_validate(body)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"]))
        hint = "make it again with: pfprofile compare --format json"
        raise InputError(f"{path}: comparison: {where}: {first['msg']}", hint) from None


def rows_to_print(body: Mapping[str, Any], path: Path) -> dict[str, list[dict[str, Any]]]:
    """Runs and ratios with every field of today's contract, unknown ones None; runs without JCT or energy left out.

    Raises:
        InputError: as `read_comparison`.
    """
    from pfprofile.plan.compare.contract import columns

    read_comparison(body, path)
    runs = [{**dict.fromkeys(columns("runs")), **run} for run in body["runs"]]
    blank = dict.fromkeys(columns("equal_energy"))
    ratios = [{**blank, "clamped_at": "low" if row.get("clamped") else None, **row} for row in body["equal_energy"]]
    return {
        "runs": [run for run in runs if run["avg_jct_s"] is not None and run["energy_j"] is not None],
        "equal_energy": [_of_known_trace(row, runs) for row in ratios if row["jct_ratio"] is not None],
    }


def _of_known_trace(row: dict[str, Any], runs: list[dict[str, Any]]) -> dict[str, Any]:
    """A ratio that names no trace belongs to the only one there is."""
    traces = {run["trace"] for run in runs}
    return {**row, "trace": traces.pop()} if row["trace"] is None and len(traces) == 1 else row
