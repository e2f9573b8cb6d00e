"""Profile rows as arrays to fit: checked, repeats collapsed to the log-median of each point."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

import numpy as np

from pfprofile.errors import InputError
from pfprofile.model.points import Bools, Floats

if TYPE_CHECKING:
    from pfprofile.profile import Profile

#: columns that a fit reads; the first three may not be empty
READ = ("n_gpus", "local_batch", "step_time_s", "n_nodes", "accum_steps", "requested_clock_mhz",
        "achieved_clock_mhz", "power_w", "power_limit_w", "idle_power_w")  # fmt: skip
_DEFAULTS = {"n_nodes": 1.0, "accum_steps": 1.0}


@dataclass(frozen=True, slots=True)
class Observations:
    """Measured points, arrays (m,).

    Attributes:
        n_gpus, n_nodes, local_batch, accum_steps: the configuration.
        requested_mhz: clock that was asked for, MHz; NaN = not locked.
        achieved_mhz: clock that was reached, MHz; NaN = not recorded.
        power_limit_w: enforced power limit of one GPU, W; NaN = unknown.
        step_time_s: median step time, s.
        power_w: median power of one GPU, W; NaN = unknown.
        repeats: trials behind each point.
    """

    n_gpus: Floats
    n_nodes: Floats
    local_batch: Floats
    accum_steps: Floats
    requested_mhz: Floats
    achieved_mhz: Floats
    power_limit_w: Floats
    step_time_s: Floats
    power_w: Floats
    repeats: Floats

    def __len__(self) -> int:
        return len(self.n_gpus)

    def take(self, rows: Any) -> Observations:
        """The same for some rows (mask or indices)."""
        return Observations(*(getattr(self, f.name)[rows] for f in fields(self)))

    @property
    def has_power(self) -> bool:
        """Whether any row has power."""
        return bool(np.isfinite(self.power_w).any())

    @property
    def clock_mhz(self) -> Floats:
        """The clock to fit on: achieved where recorded, else requested, else NaN."""
        return np.where(np.isfinite(self.achieved_mhz), self.achieved_mhz, self.requested_mhz)

    @property
    def latent_clock(self) -> bool:
        """The clock was never recorded, but power limits vary: the limit takes the clock's place."""
        limits = self.power_limit_w[np.isfinite(self.power_limit_w)]
        return not np.isfinite(self.clock_mhz).any() and len(np.unique(limits)) > 1

    @property
    def n_clock_levels(self) -> int:
        """How many distinct settings the clock axis has (power limits where the clock is latent)."""
        if self.latent_clock:
            return len(np.unique(self.power_limit_w[np.isfinite(self.power_limit_w)]))
        return len(np.unique(np.round(self.setting_mhz)))

    @property
    def setting_mhz(self) -> Floats:
        """What was set, MHz: the request; unlocked rows count as one setting of their own (-1)."""
        if np.isfinite(self.requested_mhz).any():
            return np.where(np.isfinite(self.requested_mhz), self.requested_mhz, -1.0)
        # Imported logs may hold only the clock that was seen: its levels, in steps of 15 MHz, are the settings.
        return np.where(np.isfinite(self.achieved_mhz), np.round(self.achieved_mhz / 15) * 15, -1.0)


def from_profile(profile: Profile, where: str = "profile") -> Observations:
    """The rows of a profile that ended well.

    Raises:
        InputError: nothing to fit, several workloads, devices or precisions, or a value that cannot be.
    """
    table = profile.table
    for column, what in (("workload", "workloads"), ("device_name", "devices"), ("precision", "precisions")):
        values = profile.unique(column)
        if len(values) > 1:
            raise InputError(
                f"{where}: {len(values)} {what} in one profile ({', '.join(map(str, values[:3]))})",
                "a model is fitted to one: split the profile",
            )
    rows = table.select([*READ, "status"]).to_pydict()
    return from_columns(rows, where)


def from_columns(columns: Mapping[str, Iterable[Any]], where: str = "data") -> Observations:
    """Rows given as columns with a profile's names (a DataFrame will do).

    Raises:
        InputError: see `from_profile`.
    """
    for name in READ[:3]:
        if name not in columns:
            raise InputError(f"{where}: column {name!r} is missing")
    count = len(list(columns[READ[0]]))
    status = list(columns["status"]) if "status" in columns else ["ok"] * count
    ok = np.array([s == "ok" for s in status], dtype=np.bool_)
    raw: dict[str, Floats] = {}
    for name in READ:
        if name in columns:
            values = [np.nan if v is None else float(v) for v in columns[name]]
            raw[name] = np.array(values, dtype=np.float64)
        else:
            raw[name] = np.full(count, _DEFAULTS.get(name, np.nan))
    _refuse_impossible(raw, ok, where)
    keep = ok & np.isfinite(raw["step_time_s"])
    if not keep.any():
        failed = "all trials failed" if count and not ok.any() else "no row has a step time" if count else "no rows"
        raise InputError(f"{where}: nothing to fit: {failed}", "look at: pfprofile show FILE")
    return _collapse({name: values[keep] for name, values in raw.items()})


def idle_power(columns: Mapping[str, Iterable[Any]]) -> float | None:
    """Median idle power of a profile's rows, W, where any recorded it."""
    values = [float(v) for v in columns.get("idle_power_w", ()) if v is not None and np.isfinite(v)]
    return float(np.median(values)) if values else None


def _refuse_impossible(raw: Mapping[str, Floats], ok: Bools, where: str) -> None:
    for name in ("n_gpus", "n_nodes", "local_batch", "accum_steps", "step_time_s", "power_w",
                 "requested_clock_mhz", "achieved_clock_mhz", "power_limit_w"):  # fmt: skip
        values = raw[name]
        bad = ok & ((values <= 0) | np.isinf(values))
        if bad.any():
            row = int(np.flatnonzero(bad)[0])
            raise InputError(
                f"{where}: row {row}: {name} is {values[row]:g}, must be above 0 and finite",
                "an unknown value must be empty (null)",
            )
    nodes = ok & (raw["n_nodes"] > raw["n_gpus"])
    if nodes.any():
        row = int(np.flatnonzero(nodes)[0])
        raise InputError(f"{where}: row {row}: {raw['n_nodes'][row]:g} nodes for {raw['n_gpus'][row]:g} GPUs")
    with np.errstate(invalid="ignore"):
        above = ok & (raw["power_w"] > 2 * raw["power_limit_w"])
    if above.any():
        row = int(np.flatnonzero(above)[0])
        raise InputError(
            f"{where}: row {row}: power_w {raw['power_w'][row]:g} is above twice the limit of "
            f"{raw['power_limit_w'][row]:g} W",
            "power_w is of one GPU, in watts",
        )


def _collapse(raw: Mapping[str, Floats]) -> Observations:
    """One row a point: the log-median of times and powers over its repeats."""
    locked = np.where(np.isfinite(raw["requested_clock_mhz"]), raw["requested_clock_mhz"], -1.0)
    # Without a request the achieved clock is all that tells settings apart.
    seen = np.where(np.isfinite(raw["achieved_clock_mhz"]), np.round(raw["achieved_clock_mhz"] / 15), -1.0)
    seen = np.where(np.isfinite(raw["requested_clock_mhz"]).any(), 0.0, seen)
    limit = np.where(np.isfinite(raw["power_limit_w"]), raw["power_limit_w"], -1.0)
    key = np.column_stack([raw["n_gpus"], raw["n_nodes"], raw["local_batch"], raw["accum_steps"], locked, seen, limit])
    _, first, group = np.unique(key, axis=0, return_index=True, return_inverse=True)
    group = group.ravel()
    order = np.argsort(first, kind="stable")
    rank = np.empty_like(order)
    rank[order] = np.arange(len(order))
    group = rank[group]
    m = len(order)
    repeats = np.bincount(group, minlength=m).astype(np.float64)

    def middle(name: str) -> Floats:
        values = raw[name]
        if m == len(values):
            return values.copy()
        known = np.isfinite(values)
        out = np.full(m, np.nan)
        for g in np.unique(group[known]):
            out[g] = np.exp(np.median(np.log(values[known & (group == g)])))
        return out

    start = first[order]
    return Observations(
        n_gpus=raw["n_gpus"][start],
        n_nodes=raw["n_nodes"][start],
        local_batch=raw["local_batch"][start],
        accum_steps=raw["accum_steps"][start],
        requested_mhz=raw["requested_clock_mhz"][start],
        achieved_mhz=middle("achieved_clock_mhz"),
        power_limit_w=raw["power_limit_w"][start],
        step_time_s=middle("step_time_s"),
        power_w=middle("power_w"),
        repeats=repeats,
    )
