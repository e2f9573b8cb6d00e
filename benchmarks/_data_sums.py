"""Check the measurements against the sums in DATA.md: ``python -m benchmarks._data_sums``."""

from __future__ import annotations

import hashlib
import re
import sys
from pathlib import Path

from benchmarks._datasets import data_root

ROW = re.compile(r"^\| `([^`]+)` \| `([0-9a-f]{64})` \|$", re.MULTILINE)


def main() -> int:
    """Print what is missing or differs; exit 3 where anything does."""
    root = data_root()
    if root is None:
        sys.stdout.write("no data here: set PFPROFILE_DATA\n")
        return 3
    wrong = 0
    for name, expected in ROW.findall((Path(__file__).parent / "DATA.md").read_text(encoding="utf-8")):
        path = root / name
        if not path.is_file():
            sys.stdout.write(f"missing: {name}\n")
        elif hashlib.sha256(path.read_bytes()).hexdigest() != expected:
            sys.stdout.write(f"differs: {name}\n")
        else:
            continue
        wrong += 1
    sys.stdout.write(f"{wrong} files are missing or differ\n")
    return 3 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
