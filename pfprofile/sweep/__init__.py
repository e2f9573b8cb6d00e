"""Which points are measured in which order, by whom, and how nothing that was measured is lost."""

from pfprofile.sweep.request import Outcome, SweepRequest
from pfprofile.sweep.run import sweep

__all__ = ["Outcome", "SweepRequest", "sweep"]
