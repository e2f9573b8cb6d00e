"""Simulation, budget search, bounds, schedules and their exports. Called, the package plans: see `frames.plan`."""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any


class _Callable(ModuleType):
    """``pf.plan`` is this package as soon as one of its modules is loaded, and has to stay what a person calls."""

    def __call__(self, *args: Any, **given: Any) -> Any:
        from pfprofile.plan.frames import plan

        return plan(*args, **given)


sys.modules[__name__].__class__ = _Callable
