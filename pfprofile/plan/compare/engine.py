"""Where runs are computed: here, or on a Dask or Ray cluster, through joblib's own backends."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, ExitStack
from typing import Any

from pfprofile.errors import UsageError, nearest
from pfprofile.plan.compare.runs import Task, run_task

ENGINES = ("local", "dask", "ray")
#: told how many runs are done, of how many
Tell = Callable[[int, int], None]


def check_engine(name: str, processes: int) -> None:
    """Raises UsageError: an unknown engine, or no process."""
    if name not in ENGINES:
        raise UsageError(f"unknown engine {name!r}{nearest(name, ENGINES)}", f"one of {', '.join(ENGINES)}")
    if processes < 1:
        raise UsageError(f"--processes {processes}: at least 1")


def run_all(tasks: Sequence[Task], engine: str, processes: int, tell: Tell) -> list[dict[str, Any]]:
    """All runs, in the order of the tasks, whatever computes them.

    Args:
        tasks: what to run.
        engine: local, dask or ray.
        processes: on this machine; an engine that is told its cluster (DASK_SCHEDULER_ADDRESS, RAY_ADDRESS) uses that.
        tell: progress.

    Raises:
        UsageError: the engine is not installed.
    """
    if engine == "local" and processes == 1:
        runs = []
        for task in tasks:
            runs.append(run_task(task))
            tell(len(runs), len(tasks))
        return runs
    from joblib import Parallel, delayed

    with ExitStack() as stack:
        if engine != "local":
            stack.enter_context(_dask(processes) if engine == "dask" else _ray(processes))
            found = Parallel(n_jobs=-1)(delayed(run_task)(task) for task in tasks)
            tell(len(tasks), len(tasks))
            return list(found)
        runs = []
        parallel = Parallel(n_jobs=processes, backend="loky", return_as="generator", batch_size=1)
        for run in parallel(delayed(run_task)(task) for task in tasks):
            runs.append(run)
            tell(len(runs), len(tasks))
        return runs


def _missing(engine: str) -> UsageError:
    return UsageError(f"--engine {engine}: {engine} is not installed", f"pip install 'pfprofile[{engine}]'")


def _dask(processes: int) -> AbstractContextManager[Any]:
    try:
        from dask.distributed import Client, LocalCluster
    except ImportError:
        raise _missing("dask") from None
    from joblib import parallel_config

    stack = ExitStack()
    address = os.environ.get("DASK_SCHEDULER_ADDRESS")
    if address is None:
        cluster = LocalCluster(n_workers=processes, threads_per_worker=1, dashboard_address=None)
        address = stack.enter_context(cluster)
    stack.enter_context(Client(address))
    stack.enter_context(parallel_config(backend="dask"))
    return stack


def _ray(processes: int) -> AbstractContextManager[Any]:
    try:
        import ray
        from ray.util.joblib import register_ray
    except ImportError:
        raise _missing("ray") from None
    from joblib import parallel_config

    if os.environ.get("RAY_ADDRESS"):
        ray.init(log_to_driver=False)
    else:
        ray.init(num_cpus=processes, include_dashboard=False, log_to_driver=False)
    register_ray()
    stack = ExitStack()
    stack.callback(ray.shutdown)
    stack.enter_context(parallel_config(backend="ray"))
    return stack
