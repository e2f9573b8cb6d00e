"""The cluster: node groups as people write them, and the pools that jobs are placed in."""

from __future__ import annotations

import json
import re
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from pfprofile.cluster.checks import first_error, no_bool, read_body
from pfprofile.cluster.jobs import floor_power_of_two
from pfprofile.errors import InputError
from pfprofile.profile.places import device_slug

MOST_NODES = 10**6
_BRACKETS = re.compile(r"([^\[\],]*)\[([0-9,-]+)\]([^\[\],]*)")


class NodesFile(BaseModel):
    """One ``[[nodes]]`` group of a cluster file."""

    model_config = ConfigDict(extra="forbid")

    name: Annotated[
        str, Field(min_length=1, description="group name; nodes are called name-0, name-1, …, or as in gpu[01-04,07]")
    ]
    gpu: Annotated[str, Field(min_length=1, description="device name or slug, e.g. a100-sxm4")]
    count: Annotated[int, Field(gt=0, le=MOST_NODES, description="number of nodes"), BeforeValidator(no_bool)]
    gpus_per_node: Annotated[int, Field(gt=0, le=1024, description="GPUs in one node"), BeforeValidator(no_bool)]
    node_power_w: Annotated[
        float | None,
        Field(ge=0, allow_inf_nan=False, description="power of a switched-on node without its GPUs, W"),
        BeforeValidator(no_bool),
    ] = None
    gpu_idle_power_w: Annotated[
        float | None,
        Field(ge=0, allow_inf_nan=False, description="power of one idle GPU, W; default: the model's"),
        BeforeValidator(no_bool),
    ] = None
    rack: Annotated[str | None, Field(description="rack or switch the nodes hang on")] = None


@dataclass(frozen=True, slots=True)
class NodeGroup:
    """Like nodes. Unknown power is None.

    Attributes:
        gpu: device slug.
        node_power_w: of a switched-on node, GPUs excluded, W.
        gpu_idle_power_w: of one GPU without work, W.
    """

    name: str
    gpu: str
    count: int
    gpus_per_node: int
    node_power_w: float | None = None
    gpu_idle_power_w: float | None = None
    rack: str | None = None

    def node_names(self) -> list[str]:
        """``name-0`` …, or what brackets in the name say; a single node carries the group's own name."""
        if "[" in self.name:
            return expand_hostlist(self.name)
        return [self.name] if self.count == 1 else [f"{self.name}-{i}" for i in range(self.count)]


@dataclass(frozen=True, slots=True)
class Pool:
    """Nodes that one job may span: one GPU type, one size, one power. Nodes are in rack order.

    Attributes:
        node_names: one a node; the index is the node's number.
        racks: rack of each node (None = not said).
        node_w: power of a node that is on, GPUs excluded, W.
        idle_w: power of an idle GPU in a node that is on, W.
        block: GPUs of a node that multi-node jobs use: the largest power of two in ``gpus_per_node``.
    """

    gpu: str
    gpus_per_node: int
    node_names: tuple[str, ...]
    racks: tuple[str | None, ...]
    node_w: float
    idle_w: float

    @property
    def n_nodes(self) -> int:
        """Number of nodes."""
        return len(self.node_names)

    @property
    def n_gpus(self) -> int:
        """Number of GPUs."""
        return self.n_nodes * self.gpus_per_node

    @property
    def block(self) -> int:
        """See the class."""
        return floor_power_of_two(self.gpus_per_node)

    @property
    def max_job_gpus(self) -> int:
        """The largest power of two that a single job can be given."""
        return self.block * floor_power_of_two(self.n_nodes)

    def nodes_for(self, n_gpus: int) -> int:
        """Nodes that ``n_gpus`` (a power of two) sit on when packed."""
        return max(1, n_gpus // self.block)


@dataclass(frozen=True, slots=True)
class Cluster:
    """All pools, and which powers were not known (they count as 0 and are reported)."""

    pools: tuple[Pool, ...]
    unknown: tuple[str, ...] = ()

    @property
    def n_gpus(self) -> int:
        """GPUs over all pools."""
        return sum(p.n_gpus for p in self.pools)

    @property
    def floor_w(self) -> float:
        """Power of the whole cluster, all nodes on and all GPUs idle, W."""
        return sum(p.n_nodes * p.node_w + p.n_gpus * p.idle_w for p in self.pools)


def make_cluster(groups: list[NodeGroup], idle_power_w: dict[str, float | None] | None = None) -> Cluster:
    """Gather groups into pools: same GPU, GPUs per node and powers; nodes sorted by rack, else in file order.

    Args:
        groups: the node groups.
        idle_power_w: by device slug, the idle power that the models measured, for groups that do not say.
    """
    keyed: dict[tuple[str, int, float, float], list[tuple[str, int, str, str | None]]] = {}
    unknown: list[str] = []
    for i, group in enumerate(groups):
        idle = group.gpu_idle_power_w
        if idle is None:
            idle = (idle_power_w or {}).get(group.gpu)
        if idle is None:
            unknown.append(f"{group.name}: gpu_idle_power_w")
        if group.node_power_w is None:
            unknown.append(f"{group.name}: node_power_w")
        key = (group.gpu, group.gpus_per_node, group.node_power_w or 0.0, idle or 0.0)
        nodes = keyed.setdefault(key, [])
        nodes += [(group.rack or "", i, name, group.rack) for name in group.node_names()]
    pools = []
    for (gpu, size, node_w, idle_w), nodes in keyed.items():
        nodes.sort(key=lambda node: node[:2])
        pools.append(Pool(gpu, size, tuple(n[2] for n in nodes), tuple(n[3] for n in nodes), node_w, idle_w))
    return Cluster(tuple(pools), tuple(unknown))


def read_cluster(path: Path) -> list[NodeGroup]:
    """Read a cluster file (TOML or JSON).

    Raises:
        InputError: missing, unreadable, an unknown key, a wrong value, no nodes, a duplicate name; file, group and
            key are named.
    """
    text = read_body(path)
    is_json = path.suffix.lower() == ".json"
    try:
        body = json.loads(text) if is_json else tomllib.loads(text)
    except (ValueError, tomllib.TOMLDecodeError) as error:
        raise InputError(f"{path}: not valid {'JSON' if is_json else 'TOML'}: {error}") from None
    if not isinstance(body, dict) or set(body) - {"nodes"}:
        extra = sorted(set(body) - {"nodes"})[0] if isinstance(body, dict) else "list"
        raise InputError(f"{path}: unknown table {extra!r}", "a cluster file holds [[nodes]] groups")
    return parse_nodes(body.get("nodes", []), str(path))


def parse_nodes(entries: Any, where: str) -> list[NodeGroup]:
    """Check the groups of a cluster file; see `read_cluster`."""
    if not isinstance(entries, list) or not all(isinstance(e, dict) for e in entries):
        raise InputError(f"{where}: key nodes: expected a list", "a cluster file holds [[nodes]] groups")
    if not entries:
        raise InputError(f"{where}: no nodes", "add at least one [[nodes]] group")
    groups: list[NodeGroup] = []
    for i, entry in enumerate(entries, start=1):
        label = f"{where}: nodes {entry.get('name', f'entry {i}')!r}"
        try:
            file = NodesFile.model_validate(entry)
        except ValidationError as error:
            raise InputError(f"{label}: {first_error(error, NodesFile)}") from None
        if "[" in file.name or "]" in file.name:
            _check_hostlist(file, label)
        if any(g.name == file.name for g in groups):
            raise InputError(f"{label}: key name: used twice", "give each group its own name")
        groups.append(NodeGroup(**{**file.model_dump(), "gpu": device_slug(file.gpu)}))
    names = [n for g in groups for n in g.node_names()]
    if len(set(names)) != len(names):
        double = next(n for n in names if names.count(n) > 1)
        raise InputError(f"{where}: two nodes are called {double!r}", "rename a group")
    return groups


def expand_hostlist(text: str) -> list[str]:
    """``gpu[01-03,7]`` → gpu01, gpu02, gpu03, gpu7, as Slurm writes lists of nodes; zeros in front are kept.

    Raises:
        ValueError: not one pair of brackets with numbers and ranges, a range that runs backwards, too many nodes.
    """
    found = _BRACKETS.fullmatch(text)
    if found is None:
        raise ValueError("expected one pair of brackets with numbers, as in gpu[01-04,07]")
    before, inside, after = found.groups()
    names: list[str] = []
    for part in inside.split(","):
        first, dash, last = part.partition("-")
        last = last if dash else first
        if not first.isdigit() or not last.isdigit() or int(last) < int(first):
            raise ValueError(f"{part!r} is neither a number nor a range")
        if int(last) - int(first) >= MOST_NODES:
            raise ValueError(f"{part!r} is more than {MOST_NODES} nodes")
        names += [f"{before}{number:0{len(first)}d}{after}" for number in range(int(first), int(last) + 1)]
    return names


def _check_hostlist(file: NodesFile, label: str) -> None:
    try:
        names = expand_hostlist(file.name)
    except ValueError as error:
        raise InputError(f"{label}: key name: {error}") from None
    if len(names) != file.count:
        raise InputError(
            f"{label}: key count: is {file.count}, but the name is a list of {len(names)} nodes",
            f"{names[0]} to {names[-1]}: write count = {len(names)}",
        )
