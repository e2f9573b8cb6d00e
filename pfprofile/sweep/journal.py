"""The profile file is the journal: rewritten whole after every trial, so a kill costs at most the trial under way."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pfprofile.errors import InputError, OutputError, UsageError
from pfprofile.profile import Profile, ProfileMetadata, read_profile, write_profile
from pfprofile.sweep.space import Row

#: Identity keys that --allow-mixed lets differ: the same job on the same device, with other software around it.
MIXABLE = ("driver_version", "torch_version")


@contextmanager
def file_lock(path: Path) -> Iterator[None]:
    """Hold the right to write one output.

    Raises:
        UsageError: another sweep holds it.
        OutputError: its folder cannot be made or written.
    """
    lock = path.with_name(f".{path.name}.lock")
    while True:
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            handle = os.open(lock, os.O_RDWR | os.O_CREAT, 0o666)
        except OSError as error:
            raise OutputError(f"cannot write {path}: {error.strerror}", "choose another place with -o") from None
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(handle)
            raise UsageError(f"another sweep is writing {path}", "wait for it, or give another -o") from None
        # The holder before us may have removed the file between our open and our lock.
        if lock.exists() and os.fstat(handle).st_ino == lock.stat().st_ino:
            break
        os.close(handle)
    try:
        yield
    finally:
        lock.unlink(missing_ok=True)
        os.close(handle)


class Journal:
    """The rows of a sweep and the file they live in.

    Args:
        path: where the profile stands in the end.
        working: where it is written on the way: ``path``, or a sibling while an older result is to be kept.
        metadata: of this sweep; ``metadata.sweep`` says what was asked for.
        rows: what an earlier run of the same sweep left.
        keeps_old: what stands at ``path`` is somebody's measurement, and is set aside when this sweep takes its place.

    Attributes:
        notices: what became of older files, and how trials that are kept differ from what is asked for now.
    """

    def __init__(
        self, path: Path, working: Path, metadata: ProfileMetadata, rows: Sequence[Row], keeps_old: bool = False
    ) -> None:
        self.keeps_old = keeps_old
        self.notices: list[str] = []
        self.path = path
        self.working = working
        self.metadata = metadata
        self.rows: list[Row] = list(rows)
        self.kept = len(self.rows)
        self._next = 1 + max((_number(r["trial_id"]) for r in self.rows), default=-1)

    def add(self, row: Row) -> None:
        """Keep a trial; the file is rewritten in one step."""
        self.rows.append({**row, "trial_id": f"t{self._next:05d}"})
        self._next += 1
        self.write(finished=False)

    def mark(self, outliers: Sequence[dict[str, Any]]) -> None:
        """Note in the metadata which trials disagree with the other repeats of their point."""
        if outliers:
            self.note(outliers=list(outliers))

    def note(self, **found: Any) -> None:
        """Keep something about the sweep in the metadata."""
        self.metadata = self.metadata.with_(sweep={**(self.metadata.sweep or {}), **found})

    def write(self, *, finished: bool) -> Profile:
        """Write the file; a finished sweep takes its final place."""
        self.metadata = self.metadata.with_(sweep={**(self.metadata.sweep or {}), "finished": finished})
        profile = Profile.from_rows(self.rows, self.metadata)
        write_profile(profile, self.working)
        if finished and self.working != self.path:
            if self.keeps_old and self.path.exists():
                self.notices.append(f"what {self.path} held before is another sweep's: it is kept as "
                                    f"{_set_aside(self.path, self.path)}")  # fmt: skip
            self.working.replace(self.path)
            self.working = self.path
        return profile


def _set_aside(what: Path, path: Path) -> Path:
    """Rename to ``resnet50.parquet.1``, or the next free name: none that `fit` would take for a folder's profile."""
    number = 1
    while (free := path.with_name(f"{path.name}.{number}")).exists():
        number += 1
    return what.replace(free)


def _number(trial_id: str) -> int:
    return int(trial_id[1:]) if trial_id[1:].isdigit() else -1


def differences(ours: dict[str, Any], theirs: dict[str, Any], *, allow_mixed: bool = False) -> list[str]:
    """What differs between two sweeps' identities, in words; empty = one may go on with the other."""
    ours, theirs = _flat(ours), _flat(theirs)
    keys = [k for k in sorted({*ours, *theirs}) if not (allow_mixed and k in MIXABLE)]
    return [f"{k} {theirs.get(k)!r}, not {ours.get(k)!r}" for k in keys if ours.get(k) != theirs.get(k)]


def _flat(identity: dict[str, Any]) -> dict[str, Any]:
    """Settings as keys of their own, so that a message names the one that differs."""
    settings = identity.get("settings") or {}
    return {**{k: v for k, v in identity.items() if k != "settings"}, **{f"setting {k}": settings[k] for k in settings}}


def _sweep_profile(path: Path) -> Profile | None:
    """The profile of an earlier sweep; None where the file is something else."""
    try:
        profile = read_profile(path)
    except InputError:
        return None
    return profile if profile.metadata.sweep and "identity" in profile.metadata.sweep else None


def refuse_output(path: Path, *, force: bool) -> None:
    """Say at once what `open_journal` would say of an explicit output after minutes of preparation.

    Raises:
        UsageError: it is a folder, or something else than a sweep's profile.
        OutputError: its folder cannot be written.
    """
    if path.is_dir():
        raise UsageError(f"{path} is a folder", "give a file name with -o")
    if path.exists() and not force and _sweep_profile(path) is None:
        raise UsageError(f"{path} exists and is not the profile of a sweep", "give another -o, or --force")
    folder = path.parent
    if folder.is_dir() and not os.access(folder, os.W_OK):
        raise OutputError(f"cannot write {path}: its folder is read-only", "choose another place with -o")


def open_journal(
    path: Path, metadata: ProfileMetadata, *, explicit: bool, fresh: bool = False, force: bool = False,
    retry_failed: bool = False, allow_mixed: bool = False,
) -> Journal:  # fmt: skip
    """Go on with an earlier run of this sweep, or begin a new one.

    Args:
        path: the output.
        metadata: of this sweep, with ``sweep["identity"]``.
        explicit: the person named the output (-o): then nothing there may be lost.

    Raises:
        UsageError: an explicit output is something else than a sweep's profile.
        InputError: it is another sweep's; what differs is named.
    """
    if not explicit:
        return _open_default(path, metadata, fresh=fresh, retry_failed=retry_failed, allow_mixed=allow_mixed)
    if not path.exists() or force:
        return Journal(path, path, metadata, ())
    refuse_output(path, force=False)
    if fresh:
        return Journal(path, path, metadata, ())
    old = read_profile(path)
    if wrong := differences(_identity(metadata), _identity(old.metadata), allow_mixed=allow_mixed):
        raise InputError(
            f"{path} holds another sweep: {'; '.join(wrong)}", "give another -o, or start over with --fresh"
        )
    return _resumed(path, path, metadata, old, retry_failed)


def _open_default(
    path: Path, metadata: ProfileMetadata, *, fresh: bool, retry_failed: bool, allow_mixed: bool
) -> Journal:
    """The output nobody named: what other sweeps measured there is kept beside it."""
    aside = path.with_name(f".{path.name}.unfinished")
    identity = _identity(metadata)
    for place in (aside, path):
        old = _sweep_profile(place) if place.exists() and not fresh else None
        if old is None:
            continue
        # A finished replay is made again, to hold what was asked for now; a measurement is gone on with.
        finished = (old.metadata.sweep or {}).get("finished")
        usable = not finished or retry_failed or identity.get("kind") != "replay"
        if usable and not differences(identity, _identity(old.metadata), allow_mixed=allow_mixed):
            journal = _resumed(path, place, metadata, old, retry_failed)
            journal.keeps_old = place != path and _is_measured(path)
            return journal

    def is_anothers(place: Path) -> bool:
        # --fresh gives up what this sweep has measured, but not what another one has.
        old = _sweep_profile(place) if place.exists() and fresh else None
        return _is_measured(place) and (old is None or bool(differences(identity, _identity(old.metadata))))

    working = aside if path.exists() else path
    journal = Journal(path, working, metadata, (), keeps_old=is_anothers(path))
    if working == aside and is_anothers(aside):
        journal.notices.append(f"an unfinished sweep of something else is kept as {_set_aside(aside, path)}")
    return journal


def _identity(metadata: ProfileMetadata) -> dict[str, Any]:
    identity: dict[str, Any] = (metadata.sweep or {})["identity"]
    return identity


def _is_measured(path: Path) -> bool:
    """Whether a file may be the only trace of hours on a machine; a replay's output is a copy."""
    old = _sweep_profile(path) if path.exists() else None
    return path.exists() and (old is None or _identity(old.metadata).get("kind") != "replay")


def _resumed(path: Path, working: Path, metadata: ProfileMetadata, old: Profile, retry_failed: bool) -> Journal:
    theirs, ours = old.metadata, metadata.sweep or {}
    kept = theirs.with_(sweep={**(theirs.sweep or {}), **ours, "identity": _identity(theirs)})
    mixed = differences(_identity(metadata), _identity(theirs))
    if mixed:
        note = f"trials after the first {old.n_rows} were measured by a sweep that differs: {'; '.join(mixed)}"
        kept = kept.with_(notes=(*kept.notes, note))
    rows = [r for r in old.rows() if not (retry_failed and r["status"] != "ok")]
    journal = Journal(path, working, kept, rows)
    journal.notices += _other_ways(theirs, metadata)
    return journal


def _other_ways(theirs: ProfileMetadata, ours: ProfileMetadata) -> list[str]:
    """How the kept trials were measured where that is another way than the new ones will be."""
    before, now = (theirs.sweep or {}).get("window"), (ours.sweep or {}).get("window")
    said = []
    if before and now and before != now:
        words = [f"{w['steps']} steps" if w["steps"] else f"at least {w['window_s']:g} s" for w in (before, now)]
        said.append(f"the trials that are kept were measured over {words[0]}, the new ones over {words[1]}")
    if theirs.seed != ours.seed:
        said.append(f"the trials that are kept were measured with --seed {theirs.seed}, not {ours.seed}")
    return said
