"""Read and write profile files. Files are whole or absent: temp file, fsync, `os.replace`."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from pfprofile.errors import InputError, OutputError, nearest
from pfprofile.profile.data import Profile
from pfprofile.profile.metadata import from_json, to_json
from pfprofile.profile.schema import BY_NAME, COLUMN_NAMES, COLUMNS, METADATA_KEY, arrow_schema


def write_atomically(path: Path, write: Callable[[Path], None]) -> None:
    """Let ``write`` fill a temporary sibling, then put it in place in one step.

    Raises:
        OutputError: the folder cannot be written or the disk is full; nothing is left behind.
    """
    temp: Path | None = None
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(prefix=f".{path.name}.", suffix=".partial", dir=path.parent)
        os.close(handle)
        temp = Path(name)
        umask = os.umask(0)
        os.umask(umask)
        temp.chmod(0o666 & ~umask)
        write(temp)
        with temp.open("rb") as written:
            os.fsync(written.fileno())
        temp.replace(path)
    except OSError as error:
        raise OutputError(f"cannot write {path}: {error.strerror or error}", "choose another place with -o") from error
    finally:
        if temp is not None:
            temp.unlink(missing_ok=True)


def write_text(path: Path, text: str) -> None:
    """Write a text file atomically (UTF-8). Raises OutputError; see `write_atomically`."""

    def write(temp: Path) -> None:
        temp.write_text(text, encoding="utf-8")

    write_atomically(path, write)


def write_profile(profile: Profile, path: Path) -> None:
    """Write a profile as Parquet (zstd) with its schema and metadata. Raises OutputError where it cannot."""
    schema = arrow_schema().with_metadata({METADATA_KEY: to_json(profile.metadata).encode()})
    table = profile.table.cast(arrow_schema()).replace_schema_metadata(schema.metadata)
    write_atomically(path, lambda temp: pq.write_table(table, temp, compression="zstd"))


def read_profile(path: Path) -> Profile:
    """Read and check a profile file.

    Raises:
        InputError: missing, not Parquet, not a profile, unknown version, a missing, mistyped or unknown column,
            a null or an unknown word where none may be; it names file, column and what was expected.
    """
    if not path.exists():
        raise InputError(f"{path}: no such file")
    if path.is_dir():
        raise InputError(f"{path}: a folder, not a file", "name the files in it")
    with path.open("rb") as file:
        if file.read(1) == b"{":
            raise InputError(f"{path}: JSON (a model or a schedule?), not a profile", "a profile is a .parquet file")
    try:
        table = pq.read_table(path)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, OSError) as error:
        raise InputError(f"{path}: not a readable Parquet file: {str(error).splitlines()[0]}") from None
    blob = (table.schema.metadata or {}).get(METADATA_KEY)
    if blob is None:
        raise InputError(
            f"{path}: a Parquet file, but not a pfprofile profile (no metadata key 'pfprofile')",
            f"turn it into one with: pfprofile import table {path} --map step_time_s=COLUMN ...",
        )
    metadata = from_json(blob, str(path))
    return Profile(_checked(table, str(path)), metadata)


def _checked(table: pa.Table, where: str) -> pa.Table:
    for name in table.column_names:
        if name not in BY_NAME:
            raise InputError(f"{where}: unknown column {name!r}{nearest(name, COLUMN_NAMES)}")
    for column in COLUMNS:
        if column.name not in table.column_names:
            raise InputError(f"{where}: column {column.name!r} is missing", f"expected {column.type}")
        found = table.schema.field(column.name).type
        if found != column.type:
            raise InputError(f"{where}: column {column.name!r} is {found}", f"expected {column.type}")
        values = table[column.name]
        if not column.nullable and values.null_count:
            raise InputError(f"{where}: column {column.name!r} has {values.null_count} empty values, expected none")
        if column.choices:
            foreign = set(values.unique().to_pylist()) - set(column.choices)
            if foreign:
                raise InputError(
                    f"{where}: column {column.name!r} holds {sorted(map(str, foreign))[0]!r}",
                    f"expected one of {', '.join(column.choices)}",
                )
    return table.select(list(COLUMN_NAMES)).replace_schema_metadata(None).cast(arrow_schema())
