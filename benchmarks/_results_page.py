"""``python -m benchmarks._results_page``: docs/results.md and its figures from benchmarks/results/."""

from __future__ import annotations

import csv
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

from benchmarks._results_words import FIG10, HEAD, LIMITS, REASONS
from benchmarks.peers import RESULTS
from pfprofile.plan.compare.equal_energy import frontier

DOCS = Path(__file__).resolve().parent.parent / "docs"
PAPER = (1.57, 3.39)
Row = Mapping[str, Any]


def load() -> tuple[dict[str, Any], list[dict[str, str]]]:
    """The stored results."""
    body = json.loads((RESULTS / "peers.json").read_text(encoding="utf-8"))
    with (RESULTS / "peers.csv").open(encoding="utf-8") as file:
        return body, list(csv.DictReader(file))


def name_of(trace: str) -> str:
    """A trace as the page calls it."""
    return "fig10" if trace.startswith("fig10") else f"ITP {trace.removeprefix('cluster').removesuffix('.csv')}"


def fig10_table(rows: Sequence[Row]) -> list[str]:
    """Ours beside the authors'."""
    out = ["| policy | ours (s) | authors (s) | difference | asked for | median job's |", "|---|--:|--:|--:|--:|--:|"]
    for row in rows:
        difference = row["ours_s"] / row["theirs_s"] - 1.0
        asked = f"within {row['allowed']:.0%}" if row["allowed"] is not None else "-"
        out.append(
            f"| {row['policy']} | {row['ours_s']:.0f} | {row['theirs_s']:.0f} | {difference:+.1%} | {asked} "
            f"| {row['median_difference']:.1%} |"
        )
    return out


def cell(row: Row | None) -> str:
    """Mean ratio ± half of its 95 % interval; ≥: our curve ends below that energy; <: it does not reach so low."""
    if row is None:
        return "-"
    mark = {"low": "(< ", "high": "≥ "}.get(row["clamped_at"] or "", "")
    half = f" ± {(row['jct_ratio_hi'] - row['jct_ratio_lo']) / 2:.2f}" if row["jct_ratio_hi"] is not None else ""
    return f"{mark}{row['jct_ratio']:.2f}{half}{')' if mark.startswith('(') else ''}"


def ratio_tables(parts: Sequence[Row], runs: Sequence[Row], variant: str) -> list[str]:
    """Baselines down, traces across, for our policy."""
    chosen = [part for part in parts if part["variant"] == variant]
    found: dict[tuple[str, str], Row] = {}
    for part in chosen:
        for row in part["equal_energy"]:
            if row["policy"] == "pfprofile":
                found[row["trace"], row["baseline"]] = row
    traces = sorted({trace for trace, _ in found}, key=lambda t: (not t.startswith("fig10"), t))
    singles = [b for b in dict.fromkeys(b for _, b in found) if not b.startswith("powerflow")]
    singles.sort(key=lambda b: "+" in b)
    out = ["| baseline | " + " | ".join(map(name_of, traces)) + " |", "|---|" + "--:|" * len(traces)]
    for what, form in (("jobs", "{:.0f}"), ("offered_load", "{:.2f}")):
        values = [fmean(float(r[what]) for r in runs if (r["trace"], r["variant"]) == (t, variant)) for t in traces]
        out.append(f"| *{what.replace('_', ' ')}* | " + " | ".join(form.format(v) for v in values) + " |")
    for baseline in singles:
        out.append(f"| {baseline} | " + " | ".join(cell(found.get((t, baseline))) for t in traces) + " |")
    swept = [powerflow_cell([r for (t, b), r in found.items() if t == trace and b.startswith("powerflow")])
             for trace in traces]  # fmt: skip
    if any(text != "-" for text in swept):
        out.append("| powerflow, over its budgets | " + " | ".join(swept) + " |")
    return out


def powerflow_cell(rows: Sequence[Row]) -> str:
    """Least, median and greatest ratio over the sweep of its energy budget."""
    ratios = sorted(row["jct_ratio"] for row in rows if row["clamped_at"] != "low")
    return f"{ratios[0]:.2f} / {ratios[len(ratios) // 2]:.2f} / {ratios[-1]:.2f}" if ratios else "-"


def range_table(parts: Sequence[Row]) -> list[str]:
    """Against whom the paper's range is reached."""
    found: dict[str, list[Row]] = {}
    for part in parts:
        for row in part["equal_energy"]:
            if row["policy"] == "pfprofile" and part["variant"] == "requested batch" and row["clamped_at"] != "low":
                found.setdefault(row["baseline"].rpartition("powerflow:")[1] or row["baseline"], []).append(row)
    out = [
        f"| baseline | least | greatest | traces on which the mean ratio is {PAPER[0]} or more |",
        "|---|--:|--:|---|",
    ]
    for baseline, rows in sorted(found.items(), key=lambda item: -max(r["jct_ratio"] for r in item[1])):
        if baseline.startswith("powerflow"):
            continue
        names = [name_of(r["trace"]) for r in rows if r["jct_ratio"] >= PAPER[0]]
        values = [r["jct_ratio"] for r in rows]
        out.append(f"| {baseline} | {min(values):.2f} | {max(values):.2f} | {', '.join(sorted(names)) or 'none'} |")
    return out


def demand_table(rows: Sequence[Row]) -> list[str]:
    """What was asked for, and the worst of all seeds and points."""
    out = ["| trace | baseline | asked for | worst | worst inside our curve | |", "|---|---|--:|--:|--:|---|"]
    for row in rows:
        baseline = row["baseline"] + ("+zeus:0.5" if row["clock_rule"] == "zeus" else "")
        worst, inside = (f"{row[k]:.3f}" if row[k] is not None else "-" for k in ("worst", "worst_inside"))
        verdict = "met" if row["met"] else "**missed**"
        out.append(f"| {name_of(row['trace'])} | {baseline} | {row['least']} | {worst} | {inside} | {verdict} |")
    reasons = [
        REASONS[key] for row in rows if not row["met"] and (key := (row["baseline"], row["clock_rule"])) in REASONS
    ]
    return [*out, "", *dict.fromkeys(reasons)]


def figure(runs: Sequence[Row], trace: str, path: Path) -> None:
    """Energy against average JCT, means over seeds: our curve, the relative priority's, the peers' points."""
    import matplotlib as mpl

    mpl.use("svg")
    from matplotlib import pyplot as plt

    points: dict[tuple[str, str, str], list[Row]] = {}
    for run in runs:
        if run["trace"] == trace and run["variant"] == "requested batch":
            points.setdefault((run["policy"], run["clock_rule"], run["knob"]), []).append(run)
    curves: dict[tuple[str, str], list[tuple[float, float]]] = {}
    for (policy, rule, _), found in points.items():
        energy = fmean(float(r["energy_j"]) for r in found) / 3.6e9
        curves.setdefault((policy, rule), []).append((energy, fmean(float(r["avg_jct_s"]) for r in found) / 3600.0))
    with mpl.rc_context({"svg.hashsalt": "pfprofile", "svg.fonttype": "none", "font.size": 9}):
        fig, axes = plt.subplots(figsize=(7.6, 4.2), layout="constrained")
        colors: dict[str, str] = {}
        for (policy, rule), xy in curves.items():
            x, y = zip(*xy, strict=True)
            if len(xy) > 1:
                color = "black" if policy == "pfprofile" else "tab:red"
                axes.plot(*zip(*frontier(xy), strict=True), ".-", label=policy, color=color, linewidth=1.2)
                axes.plot(x, y, ".", color=color, alpha=0.3)
                continue
            colors.setdefault(policy, f"C{len(colors)}")
            style = {"marker": "o"} if rule == "max" else {"marker": "s", "fillstyle": "none"}
            label = f"{policy}" if rule == "max" else f"{policy}+{rule}:0.5"
            axes.plot(x, y, linestyle="none", color=colors[policy], label=label, **style)
        axes.set_yscale("log")
        axes.set_xlabel("energy (MWh; synthetic power)")
        axes.set_ylabel("average JCT (h)")
        axes.set_title(name_of(trace))
        axes.grid(True, which="both", alpha=0.25)
        fig.legend(fontsize=7, loc="outside right upper")
        path.parent.mkdir(parents=True, exist_ok=True)
        fig.savefig(path, metadata={"Date": None})
        plt.close(fig)
    text = path.read_text(encoding="utf-8")
    path.write_text("\n".join(line.rstrip() for line in text.splitlines()) + "\n", encoding="utf-8")


def traces_of(runs: Sequence[Row]) -> list[str]:
    """fig10 first, then ITP by number."""
    return sorted({r["trace"] for r in runs}, key=lambda t: (not t.startswith("fig10"), t))


def picture(trace: str) -> str:
    """A figure's path below docs/."""
    return f"results/{name_of(trace).lower().replace(' ', '-')}.svg"


def page(body: Row, runs: Sequence[Row]) -> str:
    """docs/results.md."""
    lines = [
        HEAD.format(
            command=body["command"],
            policies=body["policies"].replace(",", ", "),
            rules=body["clock_rules"].replace(",", ", "),
        )
    ]
    lines += ["## fig10 beside its authors' results", "", *fig10_table(body["fig10_authors"]), "", FIG10]
    lines += ["## What was asked for", "", *demand_table(body["demands"]), ""]
    lines += ["## Average JCT of the baseline ÷ ours, at the baseline's energy", "", LIMITS["ratios"]]
    lines += [*ratio_tables(body["parts"], runs, "requested batch"), ""]
    lines += ["## Where the paper's range is reached", "", LIMITS["range"], *range_table(body["parts"]), ""]
    lines += ["## The fixed-batch variant", "", LIMITS["fixed"]]
    lines += [*ratio_tables(body["parts"], runs, "fixed batch"), "", "## Curves", ""]
    lines += [f"![Energy against average JCT on {name_of(t)}]({picture(t)})\n" for t in traces_of(runs)]
    lines += ["## Limits", "", LIMITS["limits"]]
    return "\n".join(lines).rstrip() + "\n"


def main() -> int:
    """Write the page and its figures."""
    body, runs = load()
    for trace in traces_of(runs):
        figure(runs, trace, DOCS / picture(trace))
    (DOCS / "results.md").write_text(page(body, runs), encoding="utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
