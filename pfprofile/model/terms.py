"""The one table of the models' parameters: what each is, how it enters, its bounds, its prior and when it is frozen.

A *linear* term is a coefficient times a basis function of the configuration, so its value and its Jacobian are the
same entry (`Term.basis`); the *shape* terms enter `forms.py` by name. Priors are functions of `Facts`, the few
figures that `facts.py` reads off the data before a fit. ``freezes`` are looked up in `freeze.RULES`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from pfprofile.model.facts import Facts
from pfprofile.model.points import Floats

TIME_BOUNDS_S = (1e-7, 1e4)
#: prior width of a time or power that is guessed from the data, nats
DATA_DRIVEN_SD = 2.5


@dataclass(frozen=True, slots=True)
class Design:
    """The configurations as floats, all (m,): GPUs, nodes, local batch, accumulation steps, relative clock."""

    n: Floats
    k: Floats
    b: Floats
    s: Floats
    phi: Floats

    def take(self, rows: object) -> Design:
        """The same for some rows (mask or indices)."""
        return Design(*(getattr(self, name)[rows] for name in ("n", "k", "b", "s", "phi")))

    def at_clock(self, phi: Floats) -> Design:
        """The same configurations at other relative clocks."""
        return Design(self.n, self.k, self.b, self.s, phi)


Basis = Callable[[Design], Floats]


@dataclass(frozen=True, slots=True)
class Term:
    """One parameter.

    Attributes:
        name: symbol, as in docs/models.md and in the model file.
        unit: its unit, "" for pure numbers.
        description: what it means.
        part: ``throughput`` or ``power``.
        stage: where it enters: floor, sample, sync, static, dynamic (linear terms) or shape.
        lower, upper: bounds of its value.
        prior: value that the ridge pulls to, from the data's facts.
        sd: width of the prior, nats (log terms) or the parameter's unit.
        freezes: names of the rules that fix it where the data cannot tell.
        basis: what the coefficient is multiplied by (linear terms).
        basis_dphi: derivative of ``basis`` by the relative clock, where it depends on it.
        log: fitted as its logarithm.
    """

    name: str
    unit: str
    description: str
    part: str
    stage: str
    lower: float
    upper: float
    prior: Callable[[Facts], float]
    sd: float
    freezes: tuple[str, ...] = ()
    basis: Basis | None = None
    basis_dphi: Basis | None = None
    log: bool = True

    def inner(self, value: float) -> float:
        """The value as the solver sees it."""
        return float(np.log(value)) if self.log else float(value)

    def outer(self, inner: float) -> float:
        """The solver's value as the parameter's."""
        return float(np.exp(inner)) if self.log else float(inner)


def _one(d: Design) -> Floats:
    return np.ones_like(d.n)


def _within(d: Design) -> Floats:
    return ((d.k <= 1) & (d.n > 1)).astype(np.float64)


def _across(d: Design) -> Floats:
    return (d.k > 1).astype(np.float64)


def _time(name: str, stage: str, description: str, prior: Callable[[Facts], float], basis: Basis,
          *freezes: str, basis_dphi: Basis | None = None) -> Term:  # fmt: skip
    return Term(name, "s", description, "throughput", stage, *TIME_BOUNDS_S, prior, DATA_DRIVEN_SD, freezes,
                basis, basis_dphi)  # fmt: skip


# fmt: off
TERMS: tuple[Term, ...] = (
    _time("a0", "floor", "time of a forward and backward pass that no batch is too small for (launches)",
          lambda f: f.floor_s, _one, "floor_untold"),
    _time("a1", "sample", "memory-bound time of a sample",
          lambda f: f.sample_s * (0.5 if f.has_clock_axis else 1.0), _one, "floor_carries"),
    _time("c1", "sample", "clock-bound time of a sample at the highest clock",
          lambda f: 0.5 * f.sample_s, lambda d: 1.0 / d.phi, "one_clock_none",
          basis_dphi=lambda d: -1.0 / d.phi**2),
    Term("p", "", "how sharply floor and per-sample time replace each other (1 they add, 16 the larger wins)",
         "throughput", "shape", 1.0, 16.0, lambda f: 2.0, 0.7, ("sum_untold",)),
    Term("kappa", "", "slow-down of the computing per doubling of the GPUs (waiting for the slowest)",
         "throughput", "shape", 1e-4, 1.0, lambda f: 0.02, 1.0, ("no_sync", "two_ns", "one_batch_narrow_n")),
    _time("alpha_r", "sync", "gradient synchronisation of two GPUs in one node",
          lambda f: f.sync_local_s, _within, "no_sync", "no_local_sync"),
    _time("beta_r", "sync", "the same, for each further GPU of the node",
          lambda f: 0.1 * f.sync_local_s, lambda d: _within(d) * (d.n - 2), "no_sync", "no_local_sync", "two_local"),
    _time("alpha_n", "sync", "gradient synchronisation of two nodes",
          lambda f: f.sync_across_s, _across, "no_across"),
    _time("beta_n", "sync", "the same, for each further GPU of a node",
          lambda f: 0.1 * f.sync_across_s, lambda d: _across(d) * (d.n / d.k - 1), "no_across", "one_width"),
    _time("delta_n", "sync", "the same, for each node beyond two",
          lambda f: 0.1 * f.sync_across_s, lambda d: _across(d) * (d.k - 2), "no_across", "one_k"),
    Term("gamma", "", "overlap of computing and synchronising (1 none, 10 full)",
         "throughput", "shape", 1.0, 10.0, lambda f: 2.0, 0.7, ("no_sync", "two_ns")),
    Term("P0", "W", "power of a GPU in use that does not scale with its work", "power", "static",
         1.0, 2000.0, lambda f: f.static_power_w, 0.5, (), _one),
    Term("e0", "J", "dynamic energy of a pass whatever its batch, at the highest clock", "power", "dynamic",
         1e-9, 1e9, lambda f: 0.1 * f.dynamic_j, DATA_DRIVEN_SD, ("one_batch",), _one),
    Term("e1", "J", "dynamic energy of a sample at the highest clock", "power", "dynamic",
         1e-12, 1e9, lambda f: 0.9 * f.dynamic_j / f.typical_batch, DATA_DRIVEN_SD, (), lambda d: d.b),
    Term("rho", "", "dynamic power while synchronising, as a share of that while computing", "power", "shape",
         0.0, 1.0, lambda f: 0.5, 0.25, ("no_sync_power",), log=False),
    Term("v", "", "rise of the core voltage with the clock, above the knee", "power", "shape",
         0.01, 6.0, lambda f: f.voltage_slope, 0.7, ("one_clock",)),
    Term("phi_knee", "", "relative clock below which the voltage is flat", "power", "shape",
         0.3, 0.99, lambda f: f.voltage_knee, 0.25, ("one_clock",), log=False),
    Term("eta", "", "mean power under a power limit, of that limit", "power", "shape",
         0.5, 1.1, lambda f: 0.99, 0.1, ("one_limit",)),
    Term("q", "", "how sharply the limit bites (low: the power swings, its peaks are cut; 60: a steady load)",
         "power", "shape", 1.5, 60.0, lambda f: 15.0, 0.7, ("one_limit_sharp",)),
    Term("phi_min", "", "lowest relative clock that a power limit brings about", "power", "shape",
         0.05, 0.6, lambda f: 0.15, 0.7, ("one_limit_low",)),
)
# fmt: on
NAMES = tuple(t.name for t in TERMS)
BY_NAME = {t.name: t for t in TERMS}
INDEX = {t.name: j for j, t in enumerate(TERMS)}
#: extra column of a Jacobian: derivative by the relative clock
PHI = len(TERMS)


@lru_cache(maxsize=8)
def stage(name: str) -> tuple[Term, ...]:
    """The linear terms that enter at one stage of the form."""
    return tuple(t for t in TERMS if t.stage == name)


def of_part(power: bool) -> tuple[Term, ...]:
    """The terms of a throughput-only model, or of a full one."""
    return TERMS if power else tuple(t for t in TERMS if t.part == "throughput")
