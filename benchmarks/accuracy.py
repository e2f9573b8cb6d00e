"""Accuracy of the models on public measurements, with a demand for each line: ``python -m benchmarks accuracy``.

Prints a table, writes it into docs/models.md with ``--write-docs``; exit 6 where a demand is missed.
"""

from __future__ import annotations

import sys
from pathlib import Path

from benchmarks._checks import Line, all_lines
from benchmarks._datasets import data_root
from benchmarks._measure import PEERS

DOCS = Path(__file__).resolve().parent.parent / "docs" / "models.md"
BEGIN, END = "<!-- accuracy table: made by make bench -->", "<!-- end of the accuracy table -->"
SHORT = {"adaptdl": "AdaptDL", "log_linear": "log-linear", "log_quadratic": "log-quadratic",
         "gradient_boosting": "boosting", "random_forest": "forest"}  # fmt: skip


def demand(line: Line) -> str:
    """The demand in words."""
    if line.low is not None and line.high is not None:
        return f"{line.low:g}-{line.high:g}"
    return f"≥ {line.low:g}" if line.low is not None else f"≤ {line.high:g}"


def markdown(lines: list[Line]) -> str:
    """The table; every figure in %."""
    head = ["what (%)", "data", "ours", "demand", "met", *(SHORT[p] for p in PEERS)]
    rows = [head, ["---"] * 2 + ["---:"] * (len(head) - 2)]
    for line in lines:
        peers = [f"{line.peers[p]:.1f}" if p in line.peers else "" for p in PEERS]
        rows.append([line.what, line.data, f"{line.value:.2f}", demand(line), "yes" if line.met else "**no**", *peers])
    return "\n".join("| " + " | ".join(row) + " |" for row in rows)


def write_docs(table: str) -> None:
    """Put the table between its marks in docs/models.md."""
    text = DOCS.read_text(encoding="utf-8")
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    DOCS.write_text(f"{before}{BEGIN}\n{table}\n{END}{after}", encoding="utf-8")


def main(args: list[str]) -> int:
    """Run all lines."""
    root = data_root()
    if root is None:
        sys.stdout.write("no data here: set PFPROFILE_DATA (benchmarks/DATA.md says where to get them)\n")
        return 0
    lines = []
    for line in all_lines(root):
        lines.append(line)
        sys.stderr.write(f"{line.what:<36} {line.data:<26} {line.value:7.2f} {demand(line)}\n")
    table = markdown(lines)
    sys.stdout.write(table + "\n")
    if "--write-docs" in args:
        write_docs(table)
    missed = [line for line in lines if not line.met]
    for line in missed:
        sys.stderr.write(f"missed: {line.what} on {line.data}: {line.value:.2f}, demanded {demand(line)}\n")
    return 6 if missed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
