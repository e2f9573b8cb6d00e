"""Buddy placement: power-of-two blocks of GPUs in one pool, best fit, O(log G) to take and give back.

The tree is GPU → … → node → aligned groups of nodes (racks, where a rack holds a power of two of them). A node whose
GPU count is no power of two is split into the powers of two it is made of; larger jobs use the largest of them.
A free block smaller than a node always lies in a node that is in use, so best fit fills nodes that are on before it
wakes another.
"""

from __future__ import annotations

from heapq import heappop, heappush
from typing import NamedTuple

from pfprofile.cluster.jobs import floor_power_of_two


class Block(NamedTuple):
    """2^order GPUs from ``start`` on, in the allocator's own addresses."""

    order: int
    start: int

    @property
    def size(self) -> int:
        """GPUs in the block."""
        return 1 << self.order


class BuddyAllocator:
    """Free blocks of a pool.

    Args:
        n_nodes: nodes in the pool.
        gpus_per_node: GPUs in each node.
    """

    __slots__ = ("_extras", "_free", "_heaps", "_top", "block", "free_gpus", "gpus_per_node", "n_gpus", "n_nodes")

    def __init__(self, n_nodes: int, gpus_per_node: int) -> None:
        self.n_nodes, self.gpus_per_node = n_nodes, gpus_per_node
        self.n_gpus = n_nodes * gpus_per_node
        self.block = floor_power_of_two(gpus_per_node)
        self._top = (n_nodes * self.block).bit_length() - 1
        self._free: list[set[int]] = [set() for _ in range(self._top + 1)]
        self._heaps: list[list[int]] = [[] for _ in range(self._top + 1)]
        self.free_gpus = 0
        start, end = 0, n_nodes * self.block
        while start < end:
            size = floor_power_of_two(end - start)
            self._add(size.bit_length() - 1, start)
            start += size
        # What a node has beyond its largest power of two: blocks spaced so that they never merge with a neighbour's.
        self._extras: list[tuple[int, int, int]] = []
        base, offset, rest = 1 << (self._top + 1), self.block, gpus_per_node - self.block
        while rest:
            size = floor_power_of_two(rest)
            self._extras.append((base, size, offset))
            for node in range(n_nodes):
                self._add(size.bit_length() - 1, base + node * 2 * size)
            base += 1 << (n_nodes * 2 * size).bit_length()
            offset, rest = offset + size, rest - size
        self.free_gpus = self.n_gpus

    def copy(self) -> BuddyAllocator:
        """An independent copy, to try things on."""
        twin = BuddyAllocator.__new__(BuddyAllocator)
        for name in ("n_nodes", "gpus_per_node", "n_gpus", "block", "free_gpus", "_top", "_extras"):
            setattr(twin, name, getattr(self, name))
        twin._free = [set(starts) for starts in self._free]
        twin._heaps = [list(heap) for heap in self._heaps]
        return twin

    def _add(self, order: int, start: int) -> None:
        self._free[order].add(start)
        heappush(self._heaps[order], start)

    def allocate(self, order: int) -> Block | None:
        """Take 2^order GPUs from the smallest free block that holds them (lowest address first); None if none does."""
        free = self._free
        for level in range(order, self._top + 1):
            starts = free[level]
            if not starts:
                continue
            heap = self._heaps[level]
            start = heappop(heap)
            while start not in starts:  # stale: merged or taken since it was pushed
                start = heappop(heap)
            starts.discard(start)
            while level > order:
                level -= 1
                self._add(level, start + (1 << level))
            self.free_gpus -= 1 << order
            return Block(order, start)
        return None

    def take(self, block: Block) -> bool:
        """Take exactly this block, if it is free."""
        order, start = block
        for level in range(order, self._top + 1):
            root = start >> level << level
            if root in self._free[level]:
                self._free[level].discard(root)
                while level > order:
                    level -= 1
                    half = root + (1 << level)
                    if start >= half:
                        self._add(level, root)
                        root = half
                    else:
                        self._add(level, half)
                self.free_gpus -= 1 << order
                return True
        return False

    def release(self, block: Block) -> None:
        """Give a block back; free buddies merge."""
        order, start = block
        self.free_gpus += 1 << order
        free = self._free
        while order < self._top:
            buddy = start ^ (1 << order)
            if buddy not in free[order]:
                break
            free[order].discard(buddy)
            start &= ~(1 << order)
            order += 1
        self._add(order, start)

    def shrink(self, block: Block, order: int) -> Block:
        """Keep the first 2^order GPUs of a taken block and free the others."""
        for level in range(order, block.order):
            self._add(level, block.start + (1 << level))
        self.free_gpus += (1 << block.order) - (1 << order)
        return Block(order, block.start)

    def largest_free(self) -> int:
        """The largest order that can be allocated now; −1 if nothing is free."""
        for level in range(self._top, -1, -1):
            if self._free[level]:
                return level
        return -1

    def free_blocks(self) -> list[Block]:
        """All free blocks, ordered by size, then address."""
        return [Block(o, s) for o, starts in enumerate(self._free) for s in sorted(starts)]

    def free_starts(self, order: int) -> list[int]:
        """Addresses of the free blocks of exactly one order, ascending."""
        return sorted(self._free[order]) if 0 <= order <= self._top else []

    def free_between(self, start: int, order: int) -> list[Block]:
        """Free blocks inside the aligned 2^order GPUs from ``start`` on, smaller than these."""
        found, end = [], start + (1 << order)
        for level in range(order):
            free = self._free[level]
            if len(free) << level < end - start:
                found += [Block(level, at) for at in sorted(free) if start <= at < end]
            else:
                found += [Block(level, at) for at in range(start, end, 1 << level) if at in free]
        return found

    def addresses(self, node: int) -> list[int]:
        """Where blocks that lie in one node may start."""
        out = list(range(node * self.block, (node + 1) * self.block))
        for base, size, _ in self._extras:
            out += range(base + node * 2 * size, base + node * 2 * size + size)
        return out

    def free_in(self, node: int) -> list[Block]:
        """Free blocks that lie in one node."""
        orders = range(self.block.bit_length())
        starts = self.addresses(node)
        return [Block(o, s) for o in orders for s in starts if s in self._free[o]]

    def spans(self, block: Block) -> list[tuple[int, int, int]]:
        """Where a block lies: (node, first GPU, number of GPUs) for each of its nodes."""
        order, start = block
        size = 1 << order
        for base, part, offset in reversed(self._extras):
            if start >= base:
                node, inside = divmod(start - base, 2 * part)
                return [(node, offset + inside, size)]
        node, inside = divmod(start, self.block)
        if size <= self.block:
            return [(node, inside, size)]
        return [(node + i, 0, self.block) for i in range(size // self.block)]

    def locate(self, gpus: list[tuple[int, int]]) -> Block | None:
        """The block made of exactly these (node, index) GPUs, or None where they form no block."""
        n = len(gpus)
        if n == 0 or n & (n - 1):
            return None
        node, index = min(gpus)
        start = node * self.block + index
        for base, part, offset in self._extras:
            if offset <= index < offset + part:
                start = base + node * 2 * part + index - offset
        block = Block(n.bit_length() - 1, start)
        if start & (n - 1):
            return None
        found = {(k, i) for k, first, count in self.spans(block) for i in range(first, first + count)}
        return block if found == set(gpus) else None
