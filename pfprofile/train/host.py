"""The host: one process that imports torch once and forks ranks, so that a worker set starts in a fraction of a
second instead of the seconds that `import torch` costs. Run as ``python -m pfprofile.train.host``.

It speaks JSON lines: commands on stdin, events (its own and the ranks') on stdout. When stdin closes, whatever killed
the parent, every rank is killed and the host leaves. It never runs a torch operation itself, so a fork is safe.
"""

from __future__ import annotations

import contextlib
import os
import select
import shutil
import signal
import sys
import tempfile
import traceback
from dataclasses import dataclass, field
from typing import Any

from pfprofile.train.process import LineReader, die_with_parent, send


@dataclass(slots=True)
class RankSet:
    """The ranks of one worker set: pid → (rank, pidfd), and the pipes that carry commands to them."""

    group: int = 0
    ranks: dict[int, tuple[int, int]] = field(default_factory=dict)
    pipes: list[int] = field(default_factory=list)


class HostLoop:
    """Waits for commands and for dying ranks."""

    def __init__(self, events: int) -> None:
        self.events = events
        self.sets: dict[int, RankSet] = {}
        self.folder = tempfile.mkdtemp(prefix="pfprofile-ranks-")
        self.poll = select.poll()

    def run(self) -> None:
        """Until stdin closes."""
        commands = LineReader(0)
        self.poll.register(0, select.POLLIN | select.POLLHUP)
        while True:
            for fd, _ in self.poll.poll():
                if fd != 0:
                    self._reap(fd)
                    continue
                messages = commands.read()
                if messages is None:
                    return
                for message in messages:
                    self._obey(message)

    def close(self) -> None:
        """Kill every rank and remove the rendezvous files."""
        for number in list(self.sets):
            self._stop(number)
        shutil.rmtree(self.folder, ignore_errors=True)

    def _obey(self, message: dict[str, Any]) -> None:
        number = message["set"]
        if message["op"] == "start":
            self._start(number, message)
        elif message["op"] == "stop":
            self._stop(number)
            send(self.events, {"event": "stopped", "set": number})
        elif number in self.sets:
            for pipe in self.sets[number].pipes:
                # A rank that has died no longer reads; its exit is reported by _reap.
                if select.select([], [pipe], [], 0)[1]:
                    _write_if_open(pipe, message)

    def _start(self, number: int, message: dict[str, Any]) -> None:
        if not message["describe"]:
            # Every optimizer loads it, in seconds: here once for all ranks, but not for a sweep that only looks.
            import torch._dynamo  # noqa: F401
        ranks = self.sets[number] = RankSet()
        store = os.path.join(self.folder, f"store-{number}")  # noqa: PTH118 (torch wants a plain string)
        for rank in range(message["n_ranks"]):
            inlet, outlet = os.pipe()
            host = os.getpid()
            pid = os.fork()
            if pid == 0:
                _become_rank(host, ranks.group, inlet, [*ranks.pipes, outlet], self.events, rank, store, message)
            os.close(inlet)
            ranks.group = ranks.group or pid
            _set_group(pid, ranks.group)
            watch = os.pidfd_open(pid)
            ranks.ranks[pid] = (rank + message["rank_offset"], watch)
            ranks.pipes.append(outlet)
            self.poll.register(watch, select.POLLIN)

    def _reap(self, watch: int) -> None:
        for number, ranks in self.sets.items():
            for pid, (rank, fd) in list(ranks.ranks.items()):
                if fd == watch:
                    # Never wait here: a command read in the same round may have closed the descriptor that this
                    # event was for, and a new rank's may have taken its number.
                    ended, status = os.waitpid(pid, os.WNOHANG)
                    if ended:
                        self._forget(ranks, pid)
                        code = os.waitstatus_to_exitcode(status)
                        send(self.events, {"event": "exit", "set": number, "rank": rank, "code": code})
                    return

    def _forget(self, ranks: RankSet, pid: int) -> None:
        _, watch = ranks.ranks.pop(pid)
        self.poll.unregister(watch)
        os.close(watch)

    def _stop(self, number: int) -> None:
        ranks = self.sets.pop(number, None)
        if ranks is None:
            return
        for pid in list(ranks.ranks):
            # Not yet waited for, so the pid is still ours: it cannot have been given to somebody else.
            os.kill(pid, signal.SIGKILL)
        # The ranks' own children (a data loader, a compiler) share their group; it may be empty already.
        with contextlib.suppress(ProcessLookupError):
            os.killpg(ranks.group, signal.SIGKILL)
        for pid in list(ranks.ranks):
            os.waitpid(pid, 0)
            self._forget(ranks, pid)
        for pipe in ranks.pipes:
            os.close(pipe)


def _write_if_open(pipe: int, message: dict[str, Any]) -> None:
    try:
        send(pipe, message)
    except BrokenPipeError:
        sys.stderr.write("a rank no longer reads\n")


def _set_group(pid: int, group: int) -> None:
    try:
        os.setpgid(pid, group)
    except (PermissionError, ProcessLookupError) as error:
        # The child has set it itself or is gone already; both are reported by its exit.
        sys.stderr.write(f"setpgid: {error}\n")


def _become_rank(
    host: int, group: int, inlet: int, foreign: list[int], events: int, rank: int, store: str, message: dict[str, Any]
) -> None:
    """In the child: never returns."""
    code = 1
    try:
        os.setpgid(0, group)
        die_with_parent(host)
        for fd in foreign:
            os.close(fd)
        os.close(0)
        from pfprofile.train.worker import run_rank

        code = run_rank(inlet, events, rank, store, message)
    finally:
        sys.stderr.flush()
        os._exit(code)


def main() -> None:
    """Entry point of the host process."""
    parent = int(sys.argv[1])
    # SIGTERM, not SIGKILL: the ranks are killed and the rendezvous files removed on the way out.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if parent:
        die_with_parent(parent, signal.SIGTERM)
    # What a workload prints must not mix with the events: they get a descriptor of their own.
    events = os.dup(1)
    os.dup2(2, 1)
    loop = HostLoop(events)
    code = 1
    try:
        import torch

        send(events, {"event": "hello", "torch_version": str(torch.__version__), "cuda_version": torch.version.cuda})
        loop.run()
        code = 0
    except Exception:
        traceback.print_exc()
        raise
    finally:
        loop.close()
        # Nothing is left to tidy up, and taking torch apart module by module would cost seconds.
        sys.stderr.flush()
        os._exit(code)


if __name__ == "__main__":
    main()
