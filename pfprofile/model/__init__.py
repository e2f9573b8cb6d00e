"""Throughput and power models: points in, predictions out; fitted from profiles, kept as JSON.

The public names load on first use, so that a program that only predicts imports numpy and pydantic, no more.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pfprofile.model.fit import fit_profile
    from pfprofile.model.fitted import FittedModel
    from pfprofile.model.interface import PerformanceModel
    from pfprofile.model.points import Points, Predictions
    from pfprofile.model.store import find_model, load_model, save_model

_HOMES = {
    "FittedModel": "fitted",
    "PerformanceModel": "interface",
    "Points": "points",
    "Predictions": "points",
    "find_model": "store",
    "fit_profile": "fit",
    "load_model": "store",
    "save_model": "store",
}
__all__ = [
    "FittedModel",
    "PerformanceModel",
    "Points",
    "Predictions",
    "find_model",
    "fit_profile",
    "load_model",
    "save_model",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
