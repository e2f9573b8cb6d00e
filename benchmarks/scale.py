"""How simulation and planning grow: ``python -m benchmarks scale``. Figures only: they never set an exit code."""

from __future__ import annotations

import math
import multiprocessing
import resource
import sys
import time

from benchmarks._jobs import a100s, random_jobs
from pfprofile.plan.outcome import Options
from pfprofile.plan.planner import Limits, make_plan
from pfprofile.plan.simulator import simulate
from pfprofile.policy.pfprofile import PfprofilePolicy

SIZES = (1_000, 10_000, 70_000)
#: λ at which energy and time both count, s/J
PRICE = 2.0**-11


def simulated(count: int) -> tuple[float, float]:
    """CPU seconds, and MiB above what jobs and models take, of simulating ``count`` jobs on 256 GPUs."""
    cluster = a100s(32)
    jobs = random_jobs(count, cluster, 1, gap_s=90.0)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    begin = time.process_time()
    simulate(jobs, cluster, PfprofilePolicy(PRICE), Options(record=False))
    spent = time.process_time() - begin
    return spent, (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024


def planned(count: int, nodes: int) -> tuple[float, float, float]:
    """CPU seconds of a plan under a budget with everybody at once, of its longest simulation, and its gap."""
    cluster = a100s(nodes)
    jobs = random_jobs(count, cluster, 1)
    begin = time.process_time()
    free = simulate(jobs, cluster, PfprofilePolicy(0.0), Options(record=False))
    middle = time.process_time()
    plan = make_plan(jobs, cluster, Limits(budget_j=0.8 * free.energy_j))
    return time.process_time() - middle, middle - begin, plan.bound.gap


def main() -> int:
    """Print the tables; each figure comes from its own process."""
    context = multiprocessing.get_context("spawn")
    with context.Pool(1, maxtasksperchild=1) as pool:
        loop = min(pool.apply(loop_seconds) for _ in range(2))
        sys.stdout.write(f"this machine: 10^7 additions in a Python loop take {loop:.2f} s\n\n")
        sys.stdout.write("| jobs | simulated (s) | jobs/s | memory (MiB) |\n|--:|--:|--:|--:|\n")
        times = []
        for count in SIZES:
            seconds, mib = pool.apply(simulated, (count,))
            times.append(seconds)
            sys.stdout.write(f"| {count} | {seconds:.2f} | {count / seconds:.0f} | {mib:.1f} |\n")
            sys.stdout.flush()
        exponent = math.log(times[-1] / times[0]) / math.log(SIZES[-1] / SIZES[0])
        sys.stdout.write(f"\ntime grows with jobs to the power {exponent:.2f}\n\n")
        sys.stdout.write("| jobs | GPUs | plan (s) | one simulation (s) | gap to the bound |\n|--:|--:|--:|--:|--:|\n")
        for count, nodes in ((1_000, 512), (10_000, 5_120)):
            seconds, one, gap = pool.apply(planned, (count, nodes))
            sys.stdout.write(f"| {count} | {nodes * 8} | {seconds:.2f} | {one:.2f} | {gap:.1%} |\n")
            sys.stdout.flush()
    return 0


def loop_seconds() -> float:
    """A yardstick for the machine."""
    begin = time.process_time()
    total = 0
    for i in range(10**7):
        total += i
    return time.process_time() - begin


if __name__ == "__main__":
    raise SystemExit(main())
