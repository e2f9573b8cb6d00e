"""Several nodes: one pfprofile on each, started by srun or torchrun. Node 0 leads; the others do what it orders.

Who is who stands in torchrun's variables (RANK, WORLD_SIZE, MASTER_ADDR, MASTER_PORT; under srun they are made from
Slurm's, docs/measurement.md; with LOCAL_WORLD_SIZE > 1 only the first process of a node takes part). Orders are JSON
lines on one TCP connection a node, on the port after MASTER_PORT; each order gets one answer. When the leader is gone,
the others leave.
"""

from __future__ import annotations

import json
import os
import socket
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import IO, Any

from pfprofile.errors import HardwareError, UsageError

#: How long nodes may take to find each other, s.
JOIN_S = 120.0
VARIABLES = ("RANK", "WORLD_SIZE", "MASTER_ADDR")
DEFAULT_PORT = 29500


@dataclass(frozen=True, slots=True)
class Place:
    """Where this process stands: node ``node`` of ``n_nodes``; ``idle`` = another process speaks for this node."""

    node: int
    n_nodes: int
    address: str
    port: int
    idle: bool


def place_from(environment: Mapping[str, str] | None = None) -> Place | None:
    """Read the launcher's variables; None = not started by one, or alone.

    Raises:
        UsageError: they are not whole numbers, or contradict each other.
    """
    given = os.environ if environment is None else environment
    if any(name not in given for name in VARIABLES):
        return None
    try:
        rank, world = int(given["RANK"]), int(given["WORLD_SIZE"])
        local = int(given.get("LOCAL_WORLD_SIZE", "1"))
        port = int(given.get("MASTER_PORT", DEFAULT_PORT)) + 1
    except ValueError as error:
        raise UsageError(f"RANK, WORLD_SIZE, LOCAL_WORLD_SIZE or MASTER_PORT is no whole number: {error}") from None
    if not 0 <= rank < world or local < 1 or world % local:
        raise UsageError(f"RANK={rank}, WORLD_SIZE={world}, LOCAL_WORLD_SIZE={local} contradict each other")
    if world == local:
        return None if rank == 0 else Place(0, 1, given["MASTER_ADDR"], port, True)
    return Place(rank // local, world // local, given["MASTER_ADDR"], port, rank % local != 0)


class Line:
    """One connection of JSON lines."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._file: IO[str] = connection.makefile("rw", encoding="utf-8")

    def send(self, message: Mapping[str, Any]) -> None:
        """Send one message. Raises HardwareError where the other side is gone."""
        try:
            self._file.write(json.dumps(message) + "\n")
            self._file.flush()
        except OSError as error:
            raise HardwareError(f"another node is gone: {error}", "look at its log") from None

    def receive(self, timeout_s: float | None) -> dict[str, Any] | None:
        """The next message; None = the other side has closed. Raises HardwareError: no answer in time."""
        self._connection.settimeout(timeout_s)
        try:
            text = self._file.readline()
        except OSError as error:
            raise HardwareError(f"another node does not answer: {error}", "look at its log") from None
        return json.loads(text) if text else None

    def close(self) -> None:
        """Hang up."""
        self._file.close()
        self._connection.close()


class Leader:
    """Node 0's connections to the others; a context manager that hangs up."""

    def __init__(self, place: Place) -> None:
        self.place = place
        self.lines: dict[int, Line] = {}
        with socket.create_server(("", place.port), backlog=place.n_nodes) as server:
            server.settimeout(JOIN_S)
            while len(self.lines) < place.n_nodes - 1:
                try:
                    line = Line(server.accept()[0])
                except TimeoutError:
                    raise HardwareError(
                        f"only {len(self.lines) + 1} of {place.n_nodes} nodes came within {JOIN_S:g} s",
                        "start the same line on every node",
                    ) from None
                hello = line.receive(JOIN_S)
                if hello is not None:
                    self.lines[int(hello["node"])] = line

    def __enter__(self) -> Leader:
        return self

    def __exit__(self, *_: object) -> None:
        for line in self.lines.values():
            line.close()

    def order(self, message: Mapping[str, Any]) -> None:
        """Tell every other node the same; each will answer once."""
        for node, line in self.lines.items():
            line.send({**message, "node": node})

    def answers(self, timeout_s: float) -> list[dict[str, Any]]:
        """One answer of each other node, in the order of the nodes. Raises HardwareError where one is gone."""
        deadline = time.monotonic() + timeout_s
        said = []
        for node, line in sorted(self.lines.items()):
            answer = line.receive(max(0.1, deadline - time.monotonic()))
            if answer is None:
                raise HardwareError(f"node {node} is gone", "look at its log")
            said.append(answer)
        return said


def follow(place: Place) -> Line:
    """Connect to node 0. Raises HardwareError where it does not answer."""
    deadline = time.monotonic() + JOIN_S
    while True:
        try:
            connection = socket.create_connection((place.address, place.port), timeout=JOIN_S)
        except OSError as error:
            if time.monotonic() > deadline:
                raise HardwareError(f"node 0 at {place.address}:{place.port} does not answer: {error}") from None
            time.sleep(0.2)
            continue
        line = Line(connection)
        line.send({"node": place.node})
        return line


def free_port() -> int:
    """A port that nobody uses now, for the ranks' rendezvous."""
    with socket.create_server(("", 0)) as server:
        return int(server.getsockname()[1])
