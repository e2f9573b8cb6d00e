"""Policies by name. A new one is a file and a line here; `load_policy` also takes ``file.py:Class``."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable
from inspect import signature
from pathlib import Path
from typing import Any

from pfprofile.errors import InputError, UsageError, nearest
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
        InputError: no such file, it does not run, or it has no such class.
    """
    file, colon, member = name.rpartition(":")
    if not colon or not file.endswith(".py"):
        if name not in POLICIES:
            known = ", ".join(sorted(POLICIES))
            raise UsageError(f"unknown policy {name!r}{nearest(name, POLICIES)}", f"one of {known}, or file.py:Class")
        return POLICIES[name]
    path = Path(file)
    if not path.is_file():
        raise InputError(f"{path}: no such file", "name the policy as file.py:Class")
    module = _module(path)
    found = getattr(module, member, None)
    if not callable(found) or not hasattr(found, "decide"):
        raise InputError(f"{path}: no policy class {member!r}", "a policy has a name and decide(state)")
    made: Callable[..., Policy] = found
    return made


def _module(path: Path) -> Any:
    """Run a file as a module, once for each path."""
    name = f"_pfprofile_policy_{path.resolve().as_posix().replace('/', '_').replace('.', '_')}"
    if name in sys.modules:
        return sys.modules[name]
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        # A file of one's own may raise anything while it is read.
        del sys.modules[name]
        raise InputError(f"{path}: does not run: {type(error).__name__}: {error}") from error
    return module
