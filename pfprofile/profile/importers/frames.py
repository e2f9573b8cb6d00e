"""Read foreign tables as DataFrames, knowing the line each row came from and the many spellings of "unknown"."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from pfprofile.errors import InputError, UsageError, nearest
from pfprofile.profile.importers.cells import is_unknown

if TYPE_CHECKING:
    import pandas as pd

#: Spellings of "no value" seen in the wild, beside pandas' own.
NULLS = (
    "[N/A]", "N/A", "n/a", "NA", "", "-", "[Not Supported]", "Not Supported", "[Unknown Error]", "[Function Not Found]",
    "[Insufficient Permissions]", "ERR!", "null", "None", "nan", "NaN",
)  # fmt: skip
#: column that carries the line (CSV) or row (Parquet) of the source
LINE = "__line__"


def read_table(path: Path) -> pd.DataFrame:
    """Read a CSV/TSV or Parquet file; ``LINE`` holds where each row stood.

    Raises:
        InputError: missing, empty, not text, ragged, or two headers in one file.
    """
    import pandas as pd
    import pyarrow as pa

    if not path.is_file():
        raise InputError(f"{path}: {'a folder, not a file' if path.is_dir() else 'no such file'}")
    if path.suffix == ".parquet":
        try:
            frame = pd.read_parquet(path)
        except (pa.ArrowException, OSError, ValueError) as error:
            raise InputError(f"{path}: not a readable Parquet file: {str(error).splitlines()[0]}") from None
        frame[LINE] = range(1, len(frame) + 1)
    else:
        frame = _read_csv(path)
    frame.columns = [str(c).strip() for c in frame.columns]
    repeated = frame.columns[frame.columns.duplicated()]
    if len(repeated):
        raise InputError(f"{path}: two columns are named {repeated[0]!r}")
    if frame.empty:
        raise InputError(f"{path}: no rows")
    return frame


def _read_csv(path: Path) -> pd.DataFrame:
    import csv

    import pandas as pd

    try:
        text = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: not a text file in UTF-8 ({error.reason} at byte {error.start})") from None
    if "\0" in text:
        raise InputError(f"{path}: not a text file")
    first = text.lstrip().split("\n", 1)[0]
    delimiter = max(",;\t", key=first.count)
    reader = csv.reader(text.splitlines(), delimiter=delimiter, skipinitialspace=True)
    header: list[str] | None = None
    rows: list[list[Any]] = []
    try:
        for row in reader:
            cells = [c.strip() for c in row]
            if not any(cells):
                continue
            if header is None:
                header = cells
            elif cells != header:  # a repeated header is skipped, as concatenated files have them
                if _is_other_header(cells, header):
                    raise InputError(
                        f"{path}: line {reader.line_num} has another header: {delimiter.join(cells)!r}, the file began "
                        f"with {delimiter.join(header)!r}",
                        "split the file there and import the parts one by one",
                    )
                if len(cells) != len(header):
                    raise InputError(f"{path}: line {reader.line_num}: {len(cells)} fields, expected {len(header)}")
                rows.append([*(None if c in NULLS or is_unknown(c) else c for c in cells), reader.line_num])
    except csv.Error as error:
        raise InputError(f"{path}: line {reader.line_num}: {error}") from None
    if header is None:
        raise InputError(f"{path}: empty")
    return pd.DataFrame(rows, columns=[*header, LINE], dtype=object)


def _is_other_header(cells: list[str], header: list[str]) -> bool:
    """Whether a row repeats names of the header, in another order or number, and holds no numbers."""
    shared = {c for c in cells if c in header and c}
    return 2 * len(shared) >= min(len(header), len(cells)) and not any(_is_number(c) for c in cells)


def unpivot(frame: pd.DataFrame, spec: str, path: Path) -> pd.DataFrame:
    """Columns whose heading is a number become rows: ``n_gpus=rate`` makes a column of headings and one of values.

    Raises:
        UsageError: the option is not ``name=name``.
        InputError: no heading is a number.
    """
    import pandas as pd

    headings, _, values = (part.strip() for part in spec.partition("="))
    if not headings or not values:
        raise UsageError(f"--unpivot {spec!r} is not HEADINGS=VALUES", "write for example --unpivot n_gpus=rate")
    wide = [c for c in frame.columns if _is_number(c)]
    if not wide:
        raise InputError(f"{path}: no column heading is a number", "drop --unpivot")
    kept = [c for c in frame.columns if c not in wide]
    long = pd.melt(frame, id_vars=kept, value_vars=wide, var_name=headings, value_name=values)
    return long.sort_values(LINE, kind="stable").reset_index(drop=True)


def only(frame: pd.DataFrame, conditions: list[tuple[str, str]], path: Path) -> pd.DataFrame:
    """Rows in which every named column equals the given value (as text, or as a number where both are numbers).

    Raises:
        UsageError: an unknown column.
        InputError: no row is left.
    """
    for column, wanted in conditions:
        if column not in frame.columns:
            known = [c for c in frame.columns if c != LINE]
            raise UsageError(f"--where: {path} has no column {column!r}{nearest(column, known)}")
        number = float(wanted) if _is_number(wanted) else None
        keep = [
            str(v) == wanted or (number is not None and _is_number(str(v)) and float(v) == number)
            for v in frame[column]
        ]
        frame = frame[keep]
        if frame.empty:
            raise InputError(f"{path}: no row has {column} = {wanted}")
    return frame.reset_index(drop=True)


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
