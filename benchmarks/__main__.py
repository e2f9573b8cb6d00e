"""``python -m benchmarks [PART...]``: run the parts; the exit code is 6 where an accuracy demand is missed."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

FOLDER = Path(__file__).parent


def main() -> int:
    """Run each part in its own process, so that one part's memory and imports do not colour another's figures."""
    parts = sorted(p.stem for p in FOLDER.glob("*.py") if not p.stem.startswith("_"))
    chosen = sys.argv[1:] or parts
    if unknown := set(chosen) - set(parts):
        sys.stderr.write(f"error: no part {sorted(unknown)[0]!r} (known: {', '.join(parts)})\n")
        return 2
    worst = 0
    for part in chosen:
        sys.stdout.write(f"\n== {part} ==\n")
        sys.stdout.flush()
        worst = max(worst, subprocess.run([sys.executable, "-m", f"benchmarks.{part}"], check=False).returncode)
    return worst


if __name__ == "__main__":
    raise SystemExit(main())
