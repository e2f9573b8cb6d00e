"""What the simulator may do beside a policy's choices: hold the power cap, and empty nodes that are hardly used."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from pfprofile.cluster.speed_table import Config
from pfprofile.plan.placement import Placer
from pfprofile.policy.base import JobState


def cheapest_slowdown(running: Iterable[JobState]) -> tuple[JobState, Config] | None:
    """The one clock step down that costs least speed for a watt; None where every clock is at its lowest."""
    best: tuple[float, int] | None = None
    found: tuple[JobState, Config] | None = None
    for job in running:
        config = job.config
        assert config is not None
        group = job.job.tables[job.pool].by_n[config.n]
        position = group.index(config)
        if position == 0:
            continue
        lower = group[position - 1]
        saved_w = config.n * (config.gpu_w - lower.gpu_w)
        if saved_w <= 0:
            continue
        rank = ((1.0 - lower.speed_per_s / config.speed_per_s) / saved_w, job.index)
        if best is None or rank < best:
            best, found = rank, (job, lower)
    return found


def tenants_to_move(placer: Placer, jobs: Sequence[JobState], now_s: float, price: float) -> list[int]:
    """Tenants of the least used node, if others that are on have room for them and emptying it pays at λ."""
    size = placer.pool.gpus_per_node
    # Others have room for the node's tenants only if all idle GPUs of nodes that are on would make a node.
    if len(placer.partial) < 2 or placer.nodes_on * size - placer.busy < size:
        return []
    node = placer.least_used()
    if 2 * placer.used(node) > size:
        return []
    tenants = placer.tenants_of(node)
    return tenants if tenants and _pays(placer, [jobs[t] for t in tenants], now_s, price) else []


def _pays(placer: Placer, moved: Sequence[JobState], now_s: float, price: float) -> bool:
    """Whether switching their node off until they would have left is worth the time and energy of their restarts."""
    if any(job.ready_s > now_s or job.since_s == now_s for job in moved):
        return False  # just started or moved: let it run first
    left_s = cost = 0.0
    for job in moved:
        config = job.config
        assert config is not None
        left_s = max(left_s, job.remaining_at(now_s) / config.speed_per_s)
        cost += job.job.restart_s(config.n) * (1.0 + price * config.power_w)
    saved_w = placer.pool.node_w + placer.pool.gpus_per_node * placer.pool.idle_w
    return price * saved_w * left_s > cost
