"""``pf.plan``: a plan over files, DataFrames or lists of dicts, and its result as DataFrames."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import pandas as pd

from pfprofile.profile.shown import Shown

#: jobs or nodes: a file, a DataFrame or a list of dicts with the file's keys; None = the command's default
Table: TypeAlias = str | Path | pd.DataFrame | Sequence[Mapping[str, Any]] | None


@dataclass(frozen=True, slots=True, repr=False)
class Plan(Shown):
    """A schedule.

    Attributes:
        body: the schedule contract (``pfprofile schema schedule``).
        notices: what the command would have said beside it.
    """

    body: dict[str, Any]
    notices: list[str]

    @property
    def jobs(self) -> pd.DataFrame:
        """One row a job: submit, start, finish, JCT with its interval, energy."""
        return pd.DataFrame(self.body["jobs"])

    @property
    def segments(self) -> pd.DataFrame:
        """One row a segment: job, GPUs, clock, throughput, power, energy."""
        return pd.DataFrame(self.body["segments"])

    @property
    def totals(self) -> dict[str, float]:
        """Energy by part, average JCT, makespan."""
        return dict(self.body["totals"])

    def save(self, path: str | Path) -> None:
        """Write schedule.json. Raises OutputError where it cannot."""
        from pfprofile.plan.schedule import write_schedule

        write_schedule(self.body, Path(path))

    def _frame(self) -> pd.DataFrame:
        return self.jobs

    def __repr__(self) -> str:
        from pfprofile.units import format_duration, format_energy

        totals, bound = self.body["totals"], self.body["bound"]
        return (
            f"<plan of {len(self.body['jobs'])} jobs: {format_energy(totals['energy_j'])}, average JCT "
            f"{format_duration(totals['avg_jct_s'])}, at most {bound['gap']:.1%} above what is possible>"
        )


def plan(
    jobs: Table = None, cluster: Table = None, budget: str | float | None = None, *,
    power_cap: str | float | None = None, models: str | Path = "models", policy: str = "pfprofile",
    confidence: float | None = None, exact: bool = False, nodes_always_on: bool = False, seed: int = 0,
) -> Plan:  # fmt: skip
    """The least average JCT within the limits; what ``pfprofile plan`` does.

    Args:
        jobs: what to run; None = one epoch of each fitted model.
        cluster: where; None = the machine that the models were profiled on.
        budget: energy, as text with its unit or in J.
        power_cap: power at every instant, as text with its unit or in W.
        models: folder of fitted models, or one model file.
        policy, confidence, exact, nodes_always_on, seed: as the flags.

    Raises:
        UsageError, InputError, InfeasibleError: as the command.
    """
    from pfprofile.plan.limits import parse_limits
    from pfprofile.plan.run import Request, run_plan
    from pfprofile.policy.registry import check_policy

    check_policy(policy)
    limits = parse_limits(
        budget if budget is None or isinstance(budget, str) else f"{budget!r}J",
        power_cap if power_cap is None or isinstance(power_cap, str) else f"{power_cap!r}W",
        None if confidence is None else str(confidence), always_on=nodes_always_on, seed=seed,
    )  # fmt: skip
    answer = run_plan(Request(_entries(jobs), _entries(cluster), Path(models), limits, policy, exact))
    return Plan(answer.body, answer.notices)


def _entries(table: Table) -> Path | list[dict[str, Any]] | None:
    """A file, or the entries that it would hold; empty cells of a DataFrame are keys that are not there."""
    if table is None or isinstance(table, Path):
        return table
    if isinstance(table, str):
        return Path(table)
    if isinstance(table, pd.DataFrame):
        rows = table.astype(object).where(table.notna(), None).to_dict("records")
        return [{str(k): getattr(v, "item", lambda v=v: v)() for k, v in row.items() if v is not None} for row in rows]
    return [dict(row) for row in table]
