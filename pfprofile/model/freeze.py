"""What the data cannot tell is not fitted: each rule fixes a parameter and says why. `terms.TERMS` names the rules."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from pfprofile.model.facts import Facts
from pfprofile.model.observations import Observations
from pfprofile.model.terms import TERMS


@dataclass(frozen=True, slots=True)
class Frozen:
    """A parameter that is held fixed.

    Attributes:
        value: where it is held.
        reason: why, in words.
        unknown: it may well be another value (its prior's width counts in intervals); else it plays no part.
    """

    value: float
    reason: str
    unknown: bool = False


@dataclass(frozen=True, slots=True)
class Variety:
    """What varies in the data."""

    n_batches: int
    n_clocks: int
    gpus: tuple[float, ...]
    local: tuple[float, ...]
    nodes_across: tuple[float, ...]
    widths_across: tuple[float, ...]
    power_beyond_one: bool

    @classmethod
    def of(cls, obs: Observations) -> Variety:
        """Count the distinct values of each axis."""
        across, local = obs.n_nodes > 1, (obs.n_nodes <= 1) & (obs.n_gpus > 1)

        def distinct(values: np.ndarray) -> tuple[float, ...]:
            return tuple(float(v) for v in np.unique(values))

        return cls(
            n_batches=len(np.unique(obs.local_batch)),
            n_clocks=obs.n_clock_levels,
            gpus=distinct(obs.n_gpus),
            local=distinct(obs.n_gpus[local]),
            nodes_across=distinct(obs.n_nodes[across]),
            widths_across=distinct(obs.n_gpus[across] / obs.n_nodes[across]),
            power_beyond_one=bool(np.isfinite(obs.power_w[obs.n_gpus > 1]).any()),
        )


Rule = Callable[[Variety, Facts, float], Frozen | None]
MANY_CLOCKS = 4


def _few_clocks_one_batch(name: str) -> Rule:
    def rule(v: Variety, facts: Facts, prior: float) -> Frozen | None:
        if v.n_batches > 1 or v.n_clocks >= MANY_CLOCKS:
            return None
        # Half the computing time, and a plain sum: AdaptDL's choice for a single batch size.
        value = facts.floor_s if name == "a0" else 1.0
        return Frozen(
            value, f"one batch and {v.n_clocks} clocks: half the computing time is taken as floor", name == "a0"
        )

    return rule


def _when(
    condition: Callable[[Variety], bool], reason: str, value: float | None = None, *, unknown: bool = False
) -> Rule:
    def rule(v: Variety, facts: Facts, prior: float) -> Frozen | None:
        return Frozen(prior if value is None else value, reason, unknown) if condition(v) else None

    return rule


RULES: dict[str, dict[str, Rule]] = {
    "few_clocks_one_batch": {"a0": _few_clocks_one_batch("a0"), "p": _few_clocks_one_batch("p")},
    "many_clocks_one_batch": {
        "*": _when(lambda v: v.n_batches == 1 and v.n_clocks >= MANY_CLOCKS,
                   "one batch: the floor carries what does not depend on the clock", 0.0),
    },
    "one_batch": {"*": _when(lambda v: v.n_batches == 1, "one batch: cannot be told from the energy of a sample", 0.0)},
    "one_batch_narrow_n": {
        "*": _when(lambda v: v.n_batches == 1 and len(v.gpus) < 4, "one batch and few GPU counts"),
    },
    "one_clock": {
        "c1": _when(lambda v: v.n_clocks == 1, "one clock", 0.0),
        "*": _when(lambda v: v.n_clocks == 1, "one clock"),
    },
    "no_sync": {"*": _when(lambda v: v.gpus[-1] <= 1, "no row has more than one GPU")},
    "two_ns": {"*": _when(lambda v: set(v.gpus) <= {1.0, 2.0}, "only one and two GPUs were measured", unknown=True)},
    "no_local_sync": {"*": _when(lambda v: not v.local, "no row has several GPUs on one node", unknown=True)},
    "two_local": {"*": _when(lambda v: not v.local or v.local[-1] <= 2, "no row has more than two GPUs on one node", unknown=True)},
    "no_across": {"*": _when(lambda v: not v.nodes_across, "no row spans several nodes")},
    "one_k": {"*": _when(lambda v: len(v.nodes_across) == 1, "one node count above 1: kept at a data-driven guess", unknown=True)},
    "one_width": {"*": _when(lambda v: len(v.widths_across) == 1, "one number of GPUs a node across nodes: kept at a data-driven guess", unknown=True)},
    "no_sync_power": {"*": _when(lambda v: not v.power_beyond_one, "no power was measured with more than one GPU: half the computing power", unknown=True)},
}  # fmt: skip


def frozen_terms(obs: Observations, facts: Facts) -> dict[str, Frozen]:
    """Which parameters are held fixed, where and why."""
    variety, power = Variety.of(obs), obs.has_power
    out: dict[str, Frozen] = {}
    for term in TERMS:
        prior = float(np.clip(term.prior(facts), term.lower, term.upper))
        if term.part == "power" and not power:
            out[term.name] = Frozen(prior, "no power was measured")
            continue
        for name in term.freezes:
            rules = RULES[name]
            rule = rules.get(term.name, rules.get("*"))
            frozen = rule(variety, facts, prior) if rule else None
            if frozen is not None:
                out[term.name] = frozen
                break
    return out
