"""What is compared: policies with their clock rules and knobs, as people write them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from inspect import signature

from pfprofile.errors import UsageError, nearest
from pfprofile.policy.clock_rules import ClockRule, parse_rules
from pfprofile.policy.registry import KNOBS, load_policy

#: energy budgets of the relative-priority policy, as multiples of the least energy
ENERGY_FACTORS = (1.0, 1.03, 1.07, 1.12, 1.18, 1.25, 1.33, 1.45, 1.6, 1.8, 2.2, 3.0)


@dataclass(frozen=True, slots=True)
class Entry:
    """A policy, one clock rule (None: it chooses clocks itself) and the parameter to sweep.

    Attributes:
        policy: a registered name or ``file.py:Class``.
        rule: the clock rule.
        parameter: what ``knob`` sets; None = nothing.
        knob: its value; None together with a parameter = a grid that depends on the jobs.
    """

    policy: str
    rule: ClockRule | None
    parameter: str | None = None
    knob: float | None = None

    @property
    def value(self) -> float | None:
        """What the comparison calls the knob."""
        return self.knob if self.parameter is not None else self.rule.knob if self.rule is not None else None

    @property
    def curve(self) -> str:
        """Runs that differ only by their knob belong to one curve of this name."""
        return self.policy if self.rule is None or self.rule.name == "max" else f"{self.policy}+{self.rule.name}"

    @property
    def label(self) -> str:
        """Curve and knob."""
        return self.curve if self.value is None else f"{self.curve}:{self.value:.6g}"

    @property
    def needs_deadlines(self) -> bool:
        """Whether the policy orders jobs by their deadlines."""
        return bool(getattr(load_policy(self.policy), "needs_deadlines", False))


def parse_entries(policies: str, rules: str, knobs: Sequence[str]) -> list[Entry]:
    """Entries for ``--policies``, ``--clock-rules`` and ``--knob``.

    Args:
        policies: comma-separated; ``afs+zeus`` gives one of them a rule of its own.
        rules: comma-separated; for every policy that does not choose clocks itself.
        knobs: ``POLICY.PARAMETER=V1,V2,…``.

    Raises:
        UsageError: an unknown policy, rule or parameter (the nearest is named), a value that is no number.
        InputError: a policy of one's own that cannot be loaded.
    """
    everywhere = [rule for text in _split(rules, "--clock-rules") for rule in parse_rules(text)]
    entries: list[Entry] = []
    names: list[str] = []
    for item in _split(policies, "--policies"):
        name, plus, own = item.partition("+")
        load_policy(name)
        names.append(name)
        chosen: list[ClockRule | None] = [*parse_rules(own)] if plus else [*everywhere]
        if name in KNOBS and not plus:
            chosen = [None]
        entries += [Entry(name, rule, KNOBS.get(name)) for rule in chosen]
    return list(dict.fromkeys(_with_knobs(entries, knobs, names)))


def _split(text: str, flag: str) -> list[str]:
    items = [item.strip() for item in text.split(",") if item.strip()]
    if not items:
        raise UsageError(f"{flag}: empty", "name at least one")
    return items


def _with_knobs(entries: Sequence[Entry], knobs: Sequence[str], names: Sequence[str]) -> list[Entry]:
    asked: dict[str, tuple[str, list[float]]] = {}
    for text in knobs:
        target, equals, values = text.partition("=")
        name, dot, parameter = target.rpartition(".")
        if not equals or not dot:
            raise UsageError(f"--knob {text!r}: write POLICY.PARAMETER=V1,V2", "for example --knob edf.max_gpus=16,64")
        if name not in names:
            raise UsageError(f"--knob {text!r}: {name!r} is not compared{nearest(name, names)}")
        known = list(signature(load_policy(name)).parameters)
        if parameter not in known:
            hint = f"it has {', '.join(known)}" if known else "it has none"
            raise UsageError(f"--knob {text!r}: {name} has no parameter {parameter!r}{nearest(parameter, known)}", hint)
        try:
            asked[name] = (parameter, [float(v) for v in values.split(",")])
        except ValueError:
            raise UsageError(f"--knob {text!r}: {values!r} are not numbers") from None
    out: list[Entry] = []
    for entry in entries:
        if entry.policy in asked:
            parameter, numbers = asked[entry.policy]
            out += [Entry(entry.policy, entry.rule, parameter, value) for value in numbers]
        elif entry.parameter == "energy_factor":
            out += [Entry(entry.policy, entry.rule, entry.parameter, value) for value in ENERGY_FACTORS]
        else:
            out.append(entry)
    return out
