"""Foreign text files as numbered lines, whatever made them: BOMs, PowerShell's UTF-16, damaged bytes."""

from __future__ import annotations

import re
from pathlib import Path

from pfprofile.errors import InputError

_BOMS = ((b"\xff\xfe", "utf-16"), (b"\xfe\xff", "utf-16"), (b"\xef\xbb\xbf", "utf-8-sig"))
#: above this share of zero bytes a file is no text with a hole, but something else
_MOST_ZEROS = 0.3


def read_lines(path: Path, *, blanks: bool = False) -> list[tuple[int, str]]:
    """The lines, each with its number from 1; blank ones only where asked for, and never at the end.

    Bytes that are no UTF-8 become U+FFFD, so that one damaged line is one unreadable line.

    Raises:
        InputError: missing, a folder, empty, or not text.
    """
    if not path.is_file():
        raise InputError(f"{path}: {'a folder, not a file' if path.is_dir() else 'no such file'}")
    try:
        raw = path.read_bytes()
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from None
    encoding = next((name for bom, name in _BOMS if raw.startswith(bom)), "utf-8")
    if raw.startswith(b"PAR1") or (encoding != "utf-16" and raw.count(0) > _MOST_ZEROS * len(raw)):
        raise InputError(f"{path}: not a text file")
    text = raw.decode(encoding, errors="replace")
    numbered = list(enumerate(re.split(r"\r\n|\n|\r", text), start=1))
    lines = [(i, line) for i, line in numbered if line.strip(" \t\0")]
    if not lines:
        raise InputError(f"{path}: empty")
    return [(i, line) for i, line in numbered if i <= lines[-1][0]] if blanks else lines
