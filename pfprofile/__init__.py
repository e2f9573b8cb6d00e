"""pfprofile: profile DNN training, model its speed and power, plan a GPU cluster under an energy budget."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pfprofile._version import __version__
from pfprofile.hook import step

if TYPE_CHECKING:
    from pfprofile.api import (
        Comparison,
        Model,
        Plan,
        PowerModel,
        ProfileFrame,
        ThroughputModel,
        compare,
        fit,
        load_model,
        load_profile,
        plan,
    )

__all__ = [
    "Comparison", "Model", "Plan", "PowerModel", "ProfileFrame", "ThroughputModel", "__version__", "compare", "fit",
    "load_model", "load_profile", "plan", "step",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    # The library loads numpy, pandas and scikit-learn; a training script that only marks its steps must not.
    if name in __all__:
        from pfprofile import api

        value = getattr(api, name)
        globals()[name] = value
        return value
    raise AttributeError(f"module 'pfprofile' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
