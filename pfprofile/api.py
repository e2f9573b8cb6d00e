"""The library: what the commands do, as functions over DataFrames. ``import pfprofile as pf`` loads this lazily.

profile = pf.load_profile("a100-sxm4/resnet50")
model = pf.fit(profile)
model.predict({"n_gpus": [1, 8], "local_batch": 64, "sm_clock_mhz": 1200})
plan = pf.plan("jobs.toml", "cluster.toml", budget="40kWh")
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd

from pfprofile.errors import UsageError, nearest
from pfprofile.model.estimators import PowerModel, ThroughputModel
from pfprofile.plan.frames import Plan, plan
from pfprofile.profile.shown import Shown
from pfprofile.units import counted

if TYPE_CHECKING:
    from pfprofile.model.fitted import FittedModel
    from pfprofile.profile.data import Profile

__all__ = [
    "Comparison", "Model", "Plan", "PowerModel", "ProfileFrame", "ThroughputModel", "compare", "fit", "load_model",
    "load_profile", "plan",
]  # fmt: skip


class ProfileFrame(Shown):
    """A profile: its trials as a DataFrame with the contract's columns, and what the file says of itself.

    Attributes:
        df: one row a trial.
        metadata: see ``pfprofile schema metadata``.
    """

    def __init__(self, profile: Profile) -> None:
        self.profile = profile
        self.metadata = profile.metadata
        self.df = profile.to_pandas()

    def _frame(self) -> pd.DataFrame:
        return self.df

    def __repr__(self) -> str:
        names = " ".join(sorted(set(self.df["workload"]))), " ".join(sorted(set(self.df["device_name"])))
        return f"<profile of {names[0]} on {names[1]}: {counted(len(self.df), 'trial')}, {self.metadata.source}>"


class Model(Shown):
    """A fitted model.

    Attributes:
        fitted: the model that the planner uses.
        parameters: value, stderr, whether frozen and why, one row a parameter.
    """

    def __init__(self, fitted: FittedModel) -> None:
        self.fitted = fitted
        self.parameters = pd.DataFrame(
            [{"name": p.name, "value": p.value, "stderr": p.stderr, "frozen": p.frozen, "reason": p.reason}
             for p in fitted.document.parameters]
        )  # fmt: skip

    def predict(self, points: pd.DataFrame | Mapping[str, Any]) -> pd.DataFrame:
        """Time, throughput, power and energy with 90 % intervals, one row a point.

        Args:
            points: columns ``n_gpus``, ``n_nodes``, ``local_batch``, ``accum_steps``, ``sm_clock_mhz``; what is
                missing takes the default of ``pfprofile predict --points``.

        Raises:
            UsageError: an unknown column.
            InputError: an axis of which the model knows one value.
        """
        from pfprofile.model.ask import COLUMNS
        from pfprofile.model.points import Points

        frame = (
            points
            if isinstance(points, pd.DataFrame)
            else pd.DataFrame({k: pd.Series(v) for k, v in points.items()}).ffill()
        )
        unknown = [str(c) for c in frame.columns if c not in COLUMNS]
        if unknown:
            raise UsageError(f"points: unknown column {unknown[0]!r}{nearest(unknown[0], COLUMNS)}")
        n = frame["n_gpus"] if "n_gpus" in frame else pd.Series(1, index=frame.index)
        given = {c: frame[c].to_numpy() for c in ("accum_steps", "sm_clock_mhz") if c in frame}
        nodes = frame["n_nodes"] if "n_nodes" in frame else -(-n // self.fitted.gpus_per_node)
        batch = (
            frame["local_batch"]
            if "local_batch" in frame
            else pd.Series(self.fitted.facts.reference_local_batch or 1, index=frame.index)
        )
        asked = Points.of(n.to_numpy(), batch.to_numpy(), n_nodes=nodes.to_numpy(), **given)
        return pd.DataFrame(list(self.fitted.predict(asked).rows()))

    def save(self, path: str | Path) -> None:
        """Write the model's JSON. Raises OutputError where it cannot."""
        from pfprofile.model.store import save_model

        save_model(self.fitted, Path(path))

    def _frame(self) -> pd.DataFrame:
        return self.parameters

    def __repr__(self) -> str:
        power = "time and power" if self.fitted.has_power else "time only"
        return f"<model of {self.fitted.workload} on {self.fitted.device_name}: {power}, {self.fitted.source}>"


@dataclass(frozen=True, slots=True, repr=False)
class Comparison(Shown):
    """Policies on the same work.

    Attributes:
        body: the comparison contract (``pfprofile schema comparison``).
    """

    body: dict[str, Any]

    @property
    def runs(self) -> pd.DataFrame:
        """One row a run."""
        return pd.DataFrame(self.body["runs"])

    @property
    def equal_energy(self) -> pd.DataFrame:
        """JCT ratios at equal energy."""
        return pd.DataFrame(self.body["equal_energy"])

    def _frame(self) -> pd.DataFrame:
        return self.equal_energy if len(self.body["equal_energy"]) else self.runs

    def __repr__(self) -> str:
        return f"<comparison of {self.runs['policy'].nunique()} policies: {len(self.body['runs'])} runs>"


def load_profile(name: str | Path) -> ProfileFrame:
    """A profile by path, or by the name of a shipped one (``a100-sxm4/resnet50``). Raises InputError."""
    from pfprofile.profile.io import read_profile
    from pfprofile.profile.places import find_profile

    return ProfileFrame(read_profile(find_profile(str(name))))


def load_model(name: str | Path, folder: str | Path = "models") -> Model:
    """A model by path, by name in ``folder``, or a shipped one. Raises InputError."""
    from pfprofile.model.store import load_model as load

    return Model(load(str(name), Path(folder)))


def fit(profile: ProfileFrame | str | Path) -> Model:
    """Fit a profile's throughput and, where power was measured, power model. Raises InputError."""
    from pfprofile.model.fit import fit_profile

    loaded = profile if isinstance(profile, ProfileFrame) else load_profile(profile)
    return Model(fit_profile(loaded.profile, "profile"))


def compare(
    trace: str | Path | Sequence[str | Path], policies: str = "tiresias,afs,powerflow,pfprofile", **flags: Any
) -> Comparison:
    """Policies on traces; what ``pfprofile compare`` does.

    Args:
        trace: one or several CSV files.
        policies: as the flag.
        flags: the other flags' values by name: ``clock_rules``, ``knobs``, ``seeds``, ``mapping``, ``cluster``,
            ``models``, ``first``, ``load``, ``fixed_batch``, ``deadlines``, ``always_on``, ``engine``, ``processes``.

    Raises:
        UsageError: an unknown flag or value.
        InputError, InfeasibleError: as the command.
    """
    from dataclasses import fields

    from pfprofile.plan.compare import Request
    from pfprofile.plan.compare import compare as run

    known = [f.name for f in fields(Request)][2:]
    unknown = next((name for name in flags if name not in known), None)
    if unknown is not None:
        raise UsageError(f"compare: unknown argument {unknown!r}{nearest(unknown, known)}")
    for name in ("cluster", "models"):
        if flags.get(name) is not None:
            flags[name] = Path(flags[name])
    traces = [trace] if isinstance(trace, (str, Path)) else list(trace)
    return Comparison(run(Request([Path(t) for t in traces], policies, **flags)))
