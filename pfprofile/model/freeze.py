"""What the data cannot tell is not fitted: each rule fixes a parameter and says why. `terms.TERMS` names the rules."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from pfprofile.model.facts import Facts
from pfprofile.model.observations import Observations
from pfprofile.model.points import Floats
from pfprofile.model.saturation import at_the_limit
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
    n_limits: int
    n_at_limit: int

    @classmethod
    def of(cls, obs: Observations, cap_w: Floats) -> Variety:
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
            n_limits=len(np.unique(obs.power_limit_w[np.isfinite(obs.power_limit_w)])) if obs.latent_clock else 0,
            n_at_limit=int(at_the_limit(obs, cap_w).sum()),
        )


#: clocks from which on a single batch tells floor and clock-bound time apart
MANY_CLOCKS = 4
#: GPU counts from which on a single batch tells the waiting for the slowest
WIDE_N = 4
#: power limits, or rows at the limit, from which on its effect is fitted
SEVERAL_LIMITS = 3


@dataclass(frozen=True, slots=True)
class Rule:
    """When a parameter is frozen.

    Attributes:
        applies: to which data.
        reason: in words, for the report.
        value: where it is held, or what of the facts; None = at its prior.
        unknown: it may well be another value.
    """

    applies: Callable[[Variety], bool]
    reason: str
    value: float | Callable[[Facts], float] | None = None
    unknown: bool = False

    def frozen(self, variety: Variety, facts: Facts, prior: float) -> Frozen | None:
        """The verdict on one data set."""
        if not self.applies(variety):
            return None
        value = self.value(facts) if callable(self.value) else prior if self.value is None else self.value
        return Frozen(value, self.reason, self.unknown)


def _few_clocks_one_batch(v: Variety) -> bool:
    return v.n_batches == 1 and v.n_clocks < MANY_CLOCKS


def _limit_untold(v: Variety) -> bool:
    return v.n_limits < SEVERAL_LIMITS and v.n_at_limit < SEVERAL_LIMITS


# fmt: off
RULES: dict[str, Rule] = {
    # Half the computing time as floor, and a plain sum: AdaptDL's choice for a single batch size.
    "floor_untold": Rule(_few_clocks_one_batch, "one batch and few clocks: half the computing time is taken as floor",
                         lambda f: f.floor_s, unknown=True),
    "sum_untold": Rule(_few_clocks_one_batch, "one batch and few clocks: floor and the rest add", 1.0),
    "floor_carries": Rule(lambda v: v.n_batches == 1 and v.n_clocks >= MANY_CLOCKS,
                          "one batch: the floor carries what does not depend on the clock", 0.0),
    "one_batch": Rule(lambda v: v.n_batches == 1, "one batch: cannot be told from the energy of a sample", 0.0),
    "one_batch_narrow_n": Rule(lambda v: v.n_batches == 1 and len(v.gpus) < WIDE_N, "one batch and few GPU counts"),
    "one_clock": Rule(lambda v: v.n_clocks == 1, "one clock"),
    "one_clock_none": Rule(lambda v: v.n_clocks == 1, "one clock", 0.0),
    "no_sync": Rule(lambda v: v.gpus[-1] <= 1, "no row has more than one GPU"),
    "two_ns": Rule(lambda v: set(v.gpus) <= {1.0, 2.0}, "only one and two GPUs were measured", unknown=True),
    "no_local_sync": Rule(lambda v: not v.local, "no row has several GPUs on one node", unknown=True),
    "two_local": Rule(lambda v: not v.local or v.local[-1] <= 2, "no row has more than two GPUs on one node",
                      unknown=True),
    "no_across": Rule(lambda v: not v.nodes_across, "no row spans several nodes"),
    "one_k": Rule(lambda v: len(v.nodes_across) == 1, "one node count above 1: kept at a data-driven guess",
                  unknown=True),
    "one_width": Rule(lambda v: len(v.widths_across) == 1, "one number of GPUs a node: kept at a data-driven guess",
                      unknown=True),
    "one_limit": Rule(_limit_untold, "hardly a row at its power limit: as measured on other GPUs"),
    "one_limit_sharp": Rule(_limit_untold, "hardly a row at its power limit: a steady load", 60.0),
    "one_limit_low": Rule(lambda v: v.n_limits < SEVERAL_LIMITS, "power limits were not varied", 0.1),
    "no_sync_power": Rule(lambda v: not v.power_beyond_one, "no power with more than one GPU: half the computing power",
                          unknown=True),
}
# fmt: on


def frozen_terms(obs: Observations, facts: Facts, cap_w: Floats) -> dict[str, Frozen]:
    """Which parameters are held fixed, where and why."""
    variety, power = Variety.of(obs, cap_w), obs.has_power
    out: dict[str, Frozen] = {}
    for term in TERMS:
        prior = float(np.clip(term.prior(facts), term.lower, term.upper))
        if term.part == "power" and not power:
            out[term.name] = Frozen(prior, "no power was measured")
            continue
        for name in term.freezes:
            frozen = RULES[name].frozen(variety, facts, prior)
            if frozen is not None:
                out[term.name] = frozen
                break
    return out
