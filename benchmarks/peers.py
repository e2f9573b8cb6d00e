"""Policies against their peers: fig10 against its authors' results, and JCT at equal energy on fig10 and ITP 01-06.

``python -m benchmarks peers`` prints the demands and writes benchmarks/results/; exit code 6 where a demand is missed.
``python -m benchmarks._results_page`` makes docs/results.md of it. All power is synthetic (profiles/README.md).
"""

from __future__ import annotations

import csv
import json
import os
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks._datasets import data_root
from benchmarks._fig10 import Line, check
from pfprofile.plan.compare import Request, compare
from pfprofile.plan.compare.contract import columns
from pfprofile.plan.compare.equal_energy import read_curve

RESULTS = Path(__file__).parent / "results"
COMMAND = "python -m benchmarks peers"
POLICIES = "tiresias,gandiva,themis,srtf,elasticflow,optimus,afs,powerflow,pfprofile"
RULES = "max,zeus:0.5"
SEEDS = "0:3"
#: ITP cluster → first jobs only (None = all); what is left out would take hours, not minutes
FIRST: dict[int, int | None] = {1: None, 2: 2000, 3: None, 4: 1000, 5: 2000, 6: None}
#: (trace, baseline, clock rule, least ratio); None = every point of the baseline's own sweep
DEMANDS = tuple(
    (trace, baseline, rule, least)
    for trace in ("fig10/jobs.csv", "cluster03.csv")
    for baseline, rule, least in (
        ("tiresias", "max", 1.4),
        ("afs", "max", 0.98),
        ("afs", "zeus", 1.03),
        ("powerflow", None, 0.99),
    )
)

Run = Mapping[str, Any]


def say(text: str) -> None:
    """One line of the report."""
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def requests(root: Path) -> list[tuple[str, Request]]:
    """What is run, by the name of its variant."""
    processes = min(2, os.cpu_count() or 1)

    def ask(
        trace: Path, seeds: str, first: int | None = None, policies: str = POLICIES, fixed: bool = False
    ) -> Request:
        return Request([trace], policies, RULES, seeds=seeds, first=first, fixed_batch=fixed, processes=processes)

    itp = root / "traces" / "itp"
    # fig10 names its models, so a seed changes nothing.
    asked = [("requested batch", ask(root / "traces" / "fig10" / "jobs.csv", "0"))]
    for number in (3, 1, 2, 6, 5, 4):
        asked.append(("requested batch", ask(itp / f"cluster{number:02d}.csv", SEEDS, FIRST[number])))
    asked.append(
        ("fixed batch", ask(itp / "cluster03.csv", "0", None, "tiresias,srtf,elasticflow,afs,pfprofile", True))
    )
    return asked


def ratios(runs: Sequence[Run], trace: str, baseline: str, rule: str | None) -> list[tuple[float, str | None]]:
    """Ratio and clamp of each seed and knob of a baseline against our curve of the same seed."""
    found = []
    for run in runs:
        if (run["trace"], run["policy"], run["clock_rule"]) == (trace, baseline, rule):
            own = [
                (r["energy_j"], r["avg_jct_s"])
                for r in runs
                if (r["trace"], r["policy"], r["seed"]) == (trace, "pfprofile", run["seed"])
            ]
            reading = read_curve(own, run["energy_j"])
            found.append((run["avg_jct_s"] / reading.jct_s, reading.clamped))
    return found


def judge(runs: Sequence[Run]) -> list[dict[str, Any]]:
    """Each demand with the worst ratio that is not clamped low.

    Where our curve ends above (we need less energy even at our fastest) our fastest JCT is used: no flattery.
    """
    rows = []
    for trace, baseline, rule, least in DEMANDS:
        found = ratios(runs, trace, baseline, rule)
        if not found:
            continue
        counted = [ratio for ratio, clamp in found if clamp != "low"]
        worst = min(counted, default=None)
        rows.append(
            {
                "trace": trace,
                "baseline": baseline,
                "clock_rule": rule,
                "least": least,
                "worst": worst,
                "worst_inside": min((ratio for ratio, clamp in found if clamp is None), default=None),
                "clamped_low": sum(clamp == "low" for _, clamp in found),
                "clamped_high": sum(clamp == "high" for _, clamp in found),
                "points": len(found),
                "met": worst is not None and worst >= least,
            }
        )
    return rows


def print_fig10(lines: Sequence[Line]) -> None:
    """Ours beside the authors'."""
    say("fig10 with the authors' throughput tables: average JCT, ours beside theirs")
    say("| policy | ours (s) | theirs (s) | difference | allowed | median job |\n|---|--:|--:|--:|--:|--:|")
    for line in lines:
        allowed = f"{line.allowed:.0%} {_word(line.met)}" if line.allowed is not None else "-"
        say(f"| {line.policy} | {line.ours_s:.0f} | {line.theirs_s:.0f} | {line.difference:+.1%} | {allowed} "
            f"| {line.median_difference:.1%} |")  # fmt: skip


def _word(good: bool) -> str:
    return "met" if good else "MISSED"


def write(lines: Sequence[Line], parts: Sequence[tuple[str, dict[str, Any]]], demands: Sequence[Any]) -> None:
    """Everything into benchmarks/results/."""
    RESULTS.mkdir(exist_ok=True)
    with (RESULTS / "peers.csv").open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, fieldnames=["variant", *columns("runs")], lineterminator="\n")
        writer.writeheader()
        for variant, body in parts:
            for run in body["runs"]:
                row = {k: f"{v:.7g}" if isinstance(v, float) else v for k, v in run.items()}
                writer.writerow({"variant": variant, **row})
    fig10 = [
        {"policy": x.policy, "ours_s": x.ours_s, "theirs_s": x.theirs_s, "median_difference": x.median_difference,
         "allowed": x.allowed}
        for x in lines
    ]  # fmt: skip
    body = {
        "command": COMMAND,
        "policies": POLICIES,
        "clock_rules": RULES,
        "fig10_authors": fig10,
        "demands": list(demands),
        "parts": [
            {"variant": variant, "inputs": b["inputs"], "equal_energy": b["equal_energy"]} for variant, b in parts
        ],
    }
    (RESULTS / "peers.json").write_text(json.dumps(body, indent=1) + "\n", encoding="utf-8")


def main() -> int:
    """Print the report, write the results."""
    root = data_root()
    if root is None:
        say("no traces here (see benchmarks/DATA.md): demands 2 and 3 are not measured")
        return 0
    lines = check(root)
    print_fig10(lines)
    parts: list[tuple[str, dict[str, Any]]] = []
    for variant, request in requests(root):
        begin = time.monotonic()
        body = compare(request)
        parts.append((variant, body))
        run = body["runs"][0]
        say(f"{run['trace']}, {variant}: {run['jobs']} jobs, offered load {run['offered_load']:.2f}, "
            f"{len(body['runs'])} runs in {time.monotonic() - begin:.0f} s")  # fmt: skip
    runs = [run for variant, body in parts if variant == "requested batch" for run in body["runs"]]
    demands = judge(runs)
    say("\nequal energy, worst ratio not clamped low (baseline's JCT ÷ ours)")
    say("| trace | baseline | asked for | worst | inside the curve | |\n|---|---|--:|--:|--:|---|")
    for row in demands:
        rule = f"+{row['clock_rule']}" if row["clock_rule"] not in (None, "max") else ""
        inside = f"{row['worst_inside']:.3f}" if row["worst_inside"] is not None else "-"
        worst = f"{row['worst']:.3f}" if row["worst"] is not None else "-"
        say(f"| {row['trace']} | {row['baseline']}{rule} | {row['least']} | {worst} | {inside} | {_word(row['met'])} |")
    write(lines, parts, demands)
    return 0 if all(line.met for line in lines) and all(row["met"] for row in demands) else 6


if __name__ == "__main__":
    raise SystemExit(main())
