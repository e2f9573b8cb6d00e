"""Policies by name. A new one is a file and a line here; `load_policy` also takes ``file.py:Class``."""

from __future__ import annotations

from collections.abc import Callable
from inspect import signature
from typing import Any

from pfprofile.errors import UsageError, nearest
from pfprofile.plugins import load_class, names_a_class
from pfprofile.policy.afs import Afs
from pfprofile.policy.base import Policy
from pfprofile.policy.edf import Edf
from pfprofile.policy.elasticflow import ElasticFlow, ElasticFlowDeadlines
from pfprofile.policy.fifo import Fifo
from pfprofile.policy.gandiva import Gandiva
from pfprofile.policy.optimus import Optimus
from pfprofile.policy.pfprofile import PfprofilePolicy
from pfprofile.policy.powerflow import PowerFlow
from pfprofile.policy.sjf import Sjf
from pfprofile.policy.srtf import Srtf
from pfprofile.policy.themis import Themis
from pfprofile.policy.tiresias import Tiresias

POLICIES: dict[str, Callable[..., Policy]] = {
    "fifo": Fifo,
    "sjf": Sjf,
    "srtf": Srtf,
    "gandiva": Gandiva,
    "tiresias": Tiresias,
    "themis": Themis,
    "edf": Edf,
    "afs": Afs,
    "optimus": Optimus,
    "elasticflow": ElasticFlow,
    "elasticflow-deadlines": ElasticFlowDeadlines,
    "powerflow": PowerFlow,
    "pfprofile": PfprofilePolicy,
}

#: policies that choose clocks themselves, and the parameter that trades JCT for energy
KNOBS = {"pfprofile": "energy_price", "powerflow": "energy_factor"}


def check_policy(name: str) -> None:
    """Raises what `load_policy` raises."""
    load_policy(name)


def takes(name: str, parameter: str) -> bool:
    """Whether a policy has a parameter, such as ``energy_price``."""
    return parameter in signature(load_policy(name)).parameters


def make_policy(name: str, **parameters: Any) -> Policy:
    """A fresh policy. Raises what `load_policy` raises."""
    return load_policy(name)(**parameters)


def load_policy(name: str) -> Callable[..., Policy]:
    """What makes a policy: a registered name, or ``file.py:Class``.

    Raises:
        UsageError: an unknown name; the nearest one is named.
        InputError: see `pfprofile.plugins.load_class`.
    """
    if names_a_class(name):
        made: Callable[..., Policy] = load_class(name, "policy", ("decide",))
        return made
    if name not in POLICIES:
        known = ", ".join(sorted(POLICIES))
        raise UsageError(f"unknown policy {name!r}{nearest(name, POLICIES)}", f"one of {known}, or file.py:Class")
    return POLICIES[name]
