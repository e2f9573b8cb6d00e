"""Policies by name. A new one is a file and a line here."""

from __future__ import annotations

from collections.abc import Callable
from inspect import signature
from typing import Any

from pfprofile.errors import UsageError, nearest
from pfprofile.policy.base import Policy
from pfprofile.policy.fifo import Fifo
from pfprofile.policy.pfprofile import PfprofilePolicy

POLICIES: dict[str, Callable[..., Policy]] = {
    "fifo": Fifo,
    "pfprofile": PfprofilePolicy,
}


def check_policy(name: str) -> None:
    """Raises UsageError where there is no policy of that name; the nearest one is named."""
    if name not in POLICIES:
        raise UsageError(f"unknown policy {name!r}{nearest(name, POLICIES)}", f"one of {', '.join(sorted(POLICIES))}")


def takes(name: str, parameter: str) -> bool:
    """Whether a policy has a parameter, such as ``energy_price``."""
    return name in POLICIES and parameter in signature(POLICIES[name]).parameters


def make_policy(name: str, **parameters: Any) -> Policy:
    """A fresh policy. Raises UsageError; see `check_policy`."""
    check_policy(name)
    return POLICIES[name](**parameters)
