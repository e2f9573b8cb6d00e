"""The buddy allocator's invariants: no GPU twice, aligned blocks, free + used = all, freeing all restores the tree."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pfprofile.cluster.buddy import Block, BuddyAllocator


def gpus(allocator: BuddyAllocator, block: Block) -> set[tuple[int, int]]:
    return {(node, i) for node, first, count in allocator.spans(block) for i in range(first, first + count)}


def check(allocator: BuddyAllocator, held: list[Block]) -> None:
    blocks = held + allocator.free_blocks()
    covered = [gpu for block in blocks for gpu in gpus(allocator, block)]
    assert len(covered) == len(set(covered)) == allocator.n_gpus
    assert all(node < allocator.n_nodes and index < allocator.gpus_per_node for node, index in covered)
    assert all(block.start % block.size == 0 for block in blocks)
    assert allocator.free_gpus + sum(b.size for b in held) == allocator.n_gpus


@settings(deadline=None, max_examples=60)
@given(
    st.integers(1, 13), st.integers(1, 9), st.lists(st.tuples(st.integers(0, 3), st.integers(0, 10**6)), max_size=80)
)
def test_any_sequence_keeps_the_tree_whole(n_nodes: int, size: int, moves: list[tuple[int, int]]) -> None:
    allocator = BuddyAllocator(n_nodes, size)
    whole = allocator.free_blocks()
    held: list[Block] = []
    for kind, value in moves:
        if kind <= 1 or not held:
            block = allocator.allocate(value % 6 if value % 6 <= allocator.largest_free() else 0)
            if block is not None:
                held.append(block)
        elif kind == 2:
            allocator.release(held.pop(value % len(held)))
        else:
            i = value % len(held)
            held[i] = allocator.shrink(held[i], value % (held[i].order + 1))
        check(allocator, held)
    for block in held:
        allocator.release(block)
    assert allocator.free_blocks() == whole


@pytest.mark.parametrize(("n_nodes", "size"), [(16, 8), (24, 4), (7, 6)])
def test_ten_thousand_random_steps(n_nodes: int, size: int) -> None:
    rng = random.Random(n_nodes)
    allocator = BuddyAllocator(n_nodes, size)
    whole = allocator.free_blocks()
    held: list[Block] = []
    for step in range(10_000):
        if held and rng.random() < 0.5:
            allocator.release(held.pop(rng.randrange(len(held))))
        else:
            block = allocator.allocate(rng.randrange(5))
            if block is not None:
                held.append(block)
        if step % 100 == 0:
            check(allocator, held)
    check(allocator, held)
    for block in held:
        allocator.release(block)
    assert allocator.free_blocks() == whole


def test_powers_of_two_do_not_fragment_when_placed_largest_first() -> None:
    rng = random.Random(5)
    for _ in range(200):
        allocator = BuddyAllocator(16, 8)
        left, orders = 128, []
        while left:
            order = rng.randrange(min(6, left.bit_length()))
            orders.append(order)
            left -= 1 << order
        assert all(allocator.allocate(order) is not None for order in sorted(orders, reverse=True))
        assert allocator.free_gpus == 0 and allocator.allocate(0) is None


def test_best_fit_fills_used_nodes_before_empty_ones() -> None:
    allocator = BuddyAllocator(4, 8)
    first = allocator.allocate(1)
    second = allocator.allocate(1)
    third = allocator.allocate(2)
    nodes = {allocator.spans(b)[0][0] for b in (first, second, third) if b}
    assert nodes == {0}


def test_a_named_block_is_taken_once_and_found_again_by_its_gpus() -> None:
    allocator = BuddyAllocator(3, 6)
    for wanted in ([(1, 2), (1, 3)], [(2, 4), (2, 5)], [(0, 0), (0, 1), (0, 2), (0, 3)]):
        block = allocator.locate(wanted)
        assert block is not None and gpus(allocator, block) == set(wanted)
        assert allocator.take(block) and not allocator.take(block)
    assert allocator.locate([(0, 1), (0, 2)]) is None
    assert allocator.locate([(0, 0), (1, 0), (2, 0)]) is None
    assert allocator.free_gpus == 18 - 8


def test_growing_needs_the_whole_pool_and_no_more() -> None:
    allocator = BuddyAllocator(2, 8)
    assert allocator.allocate(5) is None
    block = allocator.allocate(4)
    assert block is not None and [s[0] for s in allocator.spans(block)] == [0, 1]
