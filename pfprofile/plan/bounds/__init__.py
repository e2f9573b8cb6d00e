"""Lower bounds on average JCT and energy; docs/planner.md derives them."""

from pfprofile.plan.bounds.energy import least_energy_j
from pfprofile.plan.bounds.preemptive import preemptive_bound_s

__all__ = ["least_energy_j", "preemptive_bound_s"]
