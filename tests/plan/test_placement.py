"""Placement under load: making room moves the fewest, emptying a node uses only others that are on."""

from __future__ import annotations

import random

from hypothesis import given, settings
from hypothesis import strategies as st

from pfprofile.cluster.nodes import NodeGroup, make_cluster
from pfprofile.plan.placement import Placer


def placer(nodes: int = 4, size: int = 8) -> Placer:
    return Placer(make_cluster([NodeGroup("n", "g", nodes, size, 100.0, 10.0)]).pools[0])


def check(found: Placer, sizes: dict[int, int]) -> None:
    seats = [gpu for tenant in sizes for gpu in found.gpus(tenant)]
    assert len(seats) == len(set(seats)) == found.busy == sum(sizes.values())
    assert found.free_gpus() + found.busy == found.pool.n_gpus
    nodes = {gpu.split(":")[0] for gpu in seats}
    assert found.nodes_on == len(nodes)
    used = [sum(gpu.startswith(f"{name}:") for gpu in seats) for name in found.pool.node_names]
    assert found.partial == {i for i, count in enumerate(used) if 0 < count < found.pool.gpus_per_node}
    assert all(found.used(i) == count for i, count in enumerate(used))


@settings(deadline=None, max_examples=60)
@given(st.integers(0, 10**6), st.sampled_from(((4, 8), (3, 6), (5, 4))))
def test_random_life_keeps_the_books(seed: int, shape: tuple[int, int]) -> None:
    rng = random.Random(seed)
    found, sizes = placer(*shape), dict[int, int]()
    for tenant in range(60):
        kind = rng.random()
        if kind < 0.5 or not sizes:
            n = 1 << rng.randrange(4)
            if found.put(tenant, n) or (found.make_room(n) and found.put(tenant, n)):
                sizes[tenant] = n
        elif kind < 0.75:
            gone = rng.choice(sorted(sizes))
            found.remove(gone)
            del sizes[gone]
        elif kind < 0.85:
            one = rng.choice(sorted(sizes))
            sizes[one] = max(1, sizes[one] // 2)
            found.shrink(one, sizes[one])
        elif found.partial:
            node = found.least_used()
            tenants = found.tenants_of(node)
            on = found.nodes_on
            if tenants and found.empty(node, tenants):
                assert found.used(node) == 0 and found.nodes_on == on - 1
        check(found, sizes)


def test_making_room_moves_the_fewest() -> None:
    found = placer(2, 4)
    for tenant in range(8):
        assert found.put(tenant, 1)
    for tenant in (0, 1, 4):  # node 0 keeps 2 and 3, node 1 keeps 5, 6 and 7
        found.remove(tenant)
    assert not found.put(9, 4)
    assert found.make_room(4) == []  # three free GPUs cannot be four
    found.remove(5)
    assert sorted(found.make_room(4)) == [2, 3] and found.put(9, 4)
    check(found, {2: 1, 3: 1, 6: 1, 7: 1, 9: 4})


def test_a_copy_is_apart() -> None:
    found = placer()
    found.put(1, 4)
    twin = found.copy()
    twin.put(2, 8)
    twin.remove(1)
    check(found, {1: 4})
    check(twin, {2: 8})


def test_a_node_shared_with_a_larger_job_is_not_emptied() -> None:
    found = placer(2, 6)
    assert found.put(1, 8) and found.put(2, 2)
    assert found.tenants_of(0) is None
    check(found, {1: 8, 2: 2})
