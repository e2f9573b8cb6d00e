"""Who sits where in one pool: the buddy allocator, its tenants, the nodes that are on, and moves that make room."""

from __future__ import annotations

from pfprofile.cluster.buddy import Block, BuddyAllocator
from pfprofile.cluster.nodes import Pool

#: most jobs moved to make one block, and most places looked at for it
MOST_MOVES = 3
MOST_PLACES = 16


class Placer:
    """Placement in one pool. Tenants are numbers (job indices).

    Attributes:
        pool: the nodes.
        tree: free blocks.
        blocks: block of each tenant.
        nodes_on: nodes with at least one tenant.
        busy: GPUs with a tenant.
        partial: nodes with both tenants and free GPUs.
    """

    __slots__ = ("_names", "_tenants", "_used", "blocks", "busy", "nodes_on", "partial", "pool", "tree")

    def __init__(self, pool: Pool) -> None:
        self.pool = pool
        self.tree = BuddyAllocator(pool.n_nodes, pool.gpus_per_node)
        self.blocks: dict[int, Block] = {}
        self._tenants: dict[int, int] = {}  # start address → tenant
        self._used = [0] * pool.n_nodes
        self._names: dict[int, tuple[str, ...]] = {}  # of a node's GPUs, as they are asked for
        self.nodes_on = 0
        self.busy = 0
        self.partial: set[int] = set()

    def copy(self) -> Placer:
        """An independent copy, to try things on."""
        twin = Placer.__new__(Placer)
        twin.pool, twin.tree = self.pool, self.tree.copy()
        twin.blocks, twin._tenants, twin._used = dict(self.blocks), dict(self._tenants), list(self._used)
        twin._names = self._names
        twin.nodes_on, twin.busy, twin.partial = self.nodes_on, self.busy, set(self.partial)
        return twin

    def free_gpus(self) -> int:
        """GPUs without a tenant."""
        return self.tree.free_gpus

    def put(self, tenant: int, n: int) -> bool:
        """Place a tenant on ``n`` GPUs by best fit; False if no block is free."""
        block = self.tree.allocate(n.bit_length() - 1)
        if block is None:
            return False
        self._settle(tenant, block)
        return True

    def put_at(self, tenant: int, block: Block) -> bool:
        """Place a tenant on exactly this block; False if it is not free."""
        if not self.tree.take(block):
            return False
        self._settle(tenant, block)
        return True

    def _settle(self, tenant: int, block: Block) -> None:
        self.blocks[tenant] = block
        self._tenants[block.start] = tenant
        self._count(block, 1)

    def _count(self, block: Block, sign: int) -> None:
        self.busy += sign * block.size
        used, full = self._used, self.pool.gpus_per_node
        for node, _, count in self.tree.spans(block):
            before = used[node]
            used[node] = after = before + sign * count
            if before == 0:
                self.nodes_on += 1
            elif after == 0:
                self.nodes_on -= 1
            if 0 < after < full:
                self.partial.add(node)
            else:
                self.partial.discard(node)

    def remove(self, tenant: int) -> Block:
        """Give a tenant's block back."""
        block = self.blocks.pop(tenant)
        del self._tenants[block.start]
        self.tree.release(block)
        self._count(block, -1)
        return block

    def shrink(self, tenant: int, n: int) -> None:
        """Keep the first ``n`` GPUs of a tenant's block."""
        block = self.blocks[tenant]
        self._count(block, -1)
        smaller = self.tree.shrink(block, n.bit_length() - 1)
        self.blocks[tenant] = smaller
        self._count(smaller, 1)

    def gpus(self, tenant: int) -> tuple[str, ...]:
        """A tenant's GPUs as ``node:index``."""
        out: tuple[str, ...] = ()
        for node, first, count in self.tree.spans(self.blocks[tenant]):
            names = self._names.get(node)
            if names is None:
                node_name = self.pool.node_names[node]
                names = self._names[node] = tuple(f"{node_name}:{i}" for i in range(self.pool.gpus_per_node))
            out += names[first : first + count]
        return out

    # ── making room ──

    def make_room(self, n: int) -> list[int]:
        """Move the fewest tenants so that a block of ``n`` GPUs is free; returns the moved, none if it cannot be."""
        order = n.bit_length() - 1
        if order == 0 or self.tree.free_gpus < n:
            return []
        plans: list[tuple[int, int, int, list[int]]] = []
        for start in self.tree.free_starts(order - 1)[:MOST_PLACES]:
            other = start ^ (1 << (order - 1))
            inside = self._inside(other, 1 << (order - 1))
            if 0 < len(inside) <= MOST_MOVES:
                plans.append((len(inside), sum(self.blocks[t].size for t in inside), start, inside))
        for _, _, start, inside in sorted(plans):
            if self._clear(start, order, inside):
                return inside
        return []

    def _inside(self, start: int, size: int) -> list[int]:
        return [t for a in range(start, start + size) if (t := self._tenants.get(a)) is not None]

    def tenants_of(self, node: int) -> list[int] | None:
        """Who sits on a node; None if one of them sits on other nodes too."""
        found = [t for start in self.tree.addresses(node) if (t := self._tenants.get(start)) is not None]
        sizes = [self.blocks[t].size for t in found]
        return found if sum(sizes) == self._used[node] else None

    def least_used(self) -> int:
        """The partly used node with the fewest GPUs in use."""
        used, fewest, found = self._used, self.pool.gpus_per_node, -1
        for node in self.partial:
            if used[node] < fewest or (used[node] == fewest and node < found):
                fewest, found = used[node], node
        return found

    def used(self, node: int) -> int:
        """GPUs of a node with a tenant."""
        return self._used[node]

    def empty(self, node: int, tenants: list[int]) -> list[int]:
        """Move a node's tenants into free GPUs of other nodes that are on; returns the nodes they go to, or nothing."""
        tree = self.tree
        fenced = tree.free_in(node)
        for block in fenced:
            tree.take(block)
        found: dict[int, Block] = {}
        for tenant in sorted(tenants, key=lambda t: (-self.blocks[t].order, t)):
            place = tree.allocate(self.blocks[tenant].order)
            if place is None:
                break
            found[tenant] = place
            if tree.spans(place)[0][0] == node or self._used[tree.spans(place)[0][0]] == 0:
                break  # only a node that is off was left
        places = [tree.spans(block)[0][0] for block in found.values()]
        done = len(found) == len(tenants) and all(k != node and self._used[k] > 0 for k in places)
        if done:
            for tenant in tenants:
                self.remove(tenant)
            for tenant, block in found.items():
                self._settle(tenant, block)
        else:
            for block in found.values():
                tree.release(block)
        for block in fenced:
            tree.release(block)
        return sorted({tree.spans(b)[0][0] for b in found.values()}) if done else []

    def _clear(self, free_half: int, order: int, tenants: list[int]) -> bool:
        """Move ``tenants`` out of the aligned region around ``free_half``; undone if one finds no other place."""
        tree = self.tree
        region = free_half >> order << order
        fenced = tree.free_between(region, order)
        for block in fenced:
            tree.take(block)
        old = {t: self.blocks[t] for t in tenants}
        moved: dict[int, Block] = {}
        for tenant in sorted(tenants, key=lambda t: -self.blocks[t].order):
            place = tree.allocate(old[tenant].order)
            if place is None:
                break
            moved[tenant] = place
        done = len(moved) == len(tenants)
        if done:
            for tenant in tenants:
                self.remove(tenant)
            for tenant, block in moved.items():
                self._settle(tenant, block)
        else:
            for block in moved.values():
                tree.release(block)
        for block in fenced:
            tree.release(block)
        return done
