"""Clock rules: which SM clock a policy that knows nothing of clocks runs its jobs at.

A rule leaves one configuration for each GPU count in a job's tables. So any policy can be combined with any rule, and
an elastic one sees the speeds that its jobs will really have.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from pfprofile.cluster.speed_table import Config, SpeedTable
from pfprofile.errors import UsageError, nearest
from pfprofile.policy.base import Job

#: (configurations of one GPU count, slowest first; most power of a GPU in the whole table, W) → the one to use
Pick = Callable[[Sequence[Config], float], Config]


@dataclass(frozen=True, slots=True)
class ClockRule:
    """A rule by name; ``knob`` is its parameter, None where it has none."""

    name: str
    pick: Pick
    knob: float | None = None

    @property
    def label(self) -> str:
        """As a person writes it: ``zeus:0.5``."""
        return self.name if self.knob is None else f"{self.name}:{self.knob:g}"


def _fastest(group: Sequence[Config], most_w: float) -> Config:
    return group[-1]


def _least_energy(group: Sequence[Config], most_w: float) -> Config:
    return min(group, key=lambda c: (c.power_w / c.speed_per_s, -c.speed_per_s))


def zeus(eta: float) -> ClockRule:
    """Zeus (You et al., NSDI '23): least η·E + (1 − η)·Pmax·T of the GPUs, for a fixed GPU count.

    Args:
        eta: 0 = only time counts, 1 = only the GPUs' energy does. Pmax is the most power that the table knows for one
            GPU on this workload, W.

    Raises:
        UsageError: η is not within [0, 1].
    """
    if not 0.0 <= eta <= 1.0:
        raise UsageError(f"clock rule zeus:{eta:g}: η is not within 0 and 1", "write for example zeus:0.5")

    def pick(group: Sequence[Config], most_w: float) -> Config:
        return min(group, key=lambda c: ((eta * c.gpu_w + (1.0 - eta) * most_w) / c.speed_per_s, -c.speed_per_s))

    return ClockRule("zeus", pick, eta)


MAX = ClockRule("max", _fastest)
ENERGY_OPTIMAL = ClockRule("energy-optimal", _least_energy)
NAMES = ("max", "zeus", "energy-optimal")
ETAS = (0.0, 0.25, 0.5, 0.75, 1.0)


def parse_rules(text: str) -> list[ClockRule]:
    """``max``, ``energy-optimal``, ``zeus:0.5``, or ``zeus`` for a sweep over η. Raises UsageError."""
    name, _, value = text.partition(":")
    if name == "zeus" and not value:
        return [zeus(eta) for eta in ETAS]
    if name == "zeus":
        try:
            return [zeus(float(value))]
        except ValueError:
            raise UsageError(f"clock rule {text!r}: {value!r} is not a number", "write for example zeus:0.5") from None
    found = {"max": MAX, "energy-optimal": ENERGY_OPTIMAL}.get(text)
    if found is None:
        raise UsageError(f"unknown clock rule {text!r}{nearest(name, NAMES)}", f"one of {', '.join(NAMES)}")
    return [found]


def with_rule(jobs: Sequence[Job], rule: ClockRule) -> list[Job]:
    """The same jobs with one clock for each GPU count; the work is unchanged."""
    return [replace(job, tables={p: _one_clock(t, rule) for p, t in job.tables.items()}) for job in jobs]


def _one_clock(table: SpeedTable, rule: ClockRule) -> SpeedTable:
    key = ("clock", rule.label)
    found: SpeedTable | None = table.cache.get(key)
    if found is None:
        most_w = max(c.gpu_w for c in table.configs)
        picks = [rule.pick(group, most_w) for group in table.by_n.values()]
        configs = tuple(replace(config, index=i) for i, config in enumerate(picks))
        found = SpeedTable(table.model, table.global_batch, table.pool, configs, table.extrapolated)
        table.cache[key] = found
    return found
