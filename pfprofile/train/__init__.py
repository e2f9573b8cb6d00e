"""Run a workload for real: launcher, ranks, step timing. Importing this package does not import torch."""

from pfprofile.train.launch import Host, WorkerError, require_torch
from pfprofile.train.ranks import WorkerSet, describe
from pfprofile.train.resolve import WorkloadSpec, parse_workload

__all__ = ["Host", "WorkerError", "WorkerSet", "WorkloadSpec", "describe", "parse_workload", "require_torch"]
