"""The journal of clock locks: one small file an owner, written to the disk before the first lock.

It is for the worst case, in which the owner and its watchdog die at once: then it tells whose clocks to reset.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from pfprofile.errors import HardwareError

#: Overrides the folder of journals.
VARIABLE = "PFPROFILE_STATE_DIR"
PREFIX = "clocks-"
#: Suffix of a journal that is not whole yet.
PART = ".part"
#: How long a dead owner's watchdog may take to finish, s.
WATCHDOG_S = 15.0


@dataclass(frozen=True, slots=True)
class LockJournal:
    """Who may have locked which devices.

    Attributes:
        pid, start_time: of the owner; both together name a process of one boot.
        watchdog_pid, watchdog_start: of its watchdog.
        boot_id: of the kernel; locks do not survive it.
        pid_namespace: in which these numbers mean something.
        opener: what opens the devices again, ``module:function`` (see `Device`).
        uuids: the devices.
    """

    pid: int
    start_time: int
    watchdog_pid: int
    watchdog_start: int
    boot_id: str
    pid_namespace: str
    opener: str
    uuids: tuple[str, ...]

    @property
    def path(self) -> Path:
        """Its file."""
        return state_folder() / f"{PREFIX}{self.pid}-{self.start_time}.json"

    def owner(self) -> str | None:
        """The living owner in words; None = it is dead."""
        if self.boot_id != boot_id():
            return None
        if self.pid_namespace != pid_namespace():
            return f"process {self.pid} of another container, which cannot be seen from here"
        return f"process {self.pid}" if start_time(self.pid) == self.start_time else None

    def write(self) -> None:
        """To the disk, whole or not at all. Raises HardwareError."""
        path = self.path
        beside = path.with_suffix(PART)
        try:
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            with beside.open("w", encoding="utf-8") as file:
                json.dump(asdict(self), file)
                file.flush()
                os.fsync(file.fileno())
            beside.replace(path)
            _sync_folder(path.parent)
        except OSError as error:
            raise HardwareError(
                f"no journal of clock locks can be kept at {path}: {error.strerror or error}",
                f"set {VARIABLE} to a folder that may be written; without a journal no clock is locked",
            ) from None
        finally:
            with contextlib.suppress(NotADirectoryError):
                beside.unlink(missing_ok=True)

    def remove(self) -> None:
        """The clocks are reset."""
        with contextlib.suppress(NotADirectoryError):  # then it never could be written
            self.path.unlink(missing_ok=True)

    def wait_for_watchdog(self) -> None:
        """Let a dead owner's watchdog finish, lest it resets a later owner's clocks."""
        if self.boot_id != boot_id() or start_time(self.watchdog_pid) != self.watchdog_start:
            return
        try:
            watch = os.pidfd_open(self.watchdog_pid)
        except ProcessLookupError:
            return
        try:
            select.select([watch], [], [], WATCHDOG_S)
        finally:
            os.close(watch)


def journal_for(watchdog_pid: int, opener: str, uuids: Sequence[str]) -> LockJournal:
    """A journal of this process."""
    pid = os.getpid()
    return LockJournal(
        pid, start_time(pid) or 0, watchdog_pid, start_time(watchdog_pid) or 0, boot_id(), pid_namespace(), opener,
        tuple(uuids),
    )  # fmt: skip


def state_folder() -> Path:
    """Where journals are kept: /run/pfprofile for root (gone at a reboot, as locks are), else the user's state."""
    if given := os.environ.get(VARIABLE):
        return Path(given)
    if os.geteuid() == 0:
        return Path("/run/pfprofile")
    home = os.environ.get("XDG_STATE_HOME")
    return (Path(home) if home else Path.home() / ".local" / "state") / "pfprofile"


def read_journals() -> tuple[list[LockJournal], list[str]]:
    """All journals, and what cannot be read, in words."""
    found, troubles = [], []
    try:
        paths = sorted(state_folder().glob(f"{PREFIX}*.json"))
    except PermissionError as error:
        return [], [f"{state_folder()} cannot be read: {error.strerror}"]
    for path in paths:
        try:
            found.append(_journal(json.loads(path.read_text(encoding="utf-8"))))
        except FileNotFoundError:
            continue  # its owner has just removed it
        except (OSError, ValueError, TypeError, KeyError) as error:
            troubles.append(f"{path} is no journal of clock locks: {error}")
    return found, troubles


def _journal(body: dict[str, Any]) -> LockJournal:
    journal = LockJournal(**{**body, "uuids": tuple(map(str, body["uuids"]))})
    if not (isinstance(journal.pid, int) and isinstance(journal.start_time, int)):
        raise ValueError("pid and start_time must be whole numbers")
    return journal


def start_time(pid: int) -> int | None:
    """When a process began, in the kernel's ticks since boot; None = there is none (a zombie is none)."""
    try:
        after_name = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
    except OSError:
        return None
    return None if after_name[0] in "ZX" else int(after_name[19])


def boot_id() -> str:
    """Of the running kernel."""
    return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()


def pid_namespace() -> str:
    """Of this process."""
    return str(Path("/proc/self/ns/pid").readlink())


def _sync_folder(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
