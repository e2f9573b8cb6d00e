"""What a fit found, as one JSON-able object a model (DESIGN: fit report) and as text."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pfprofile.model.advise import correlations
from pfprofile.model.document import ModelDocument, NextPoint, Parameter, PartQuality, WorstRow
from pfprofile.model.fitted import FittedModel
from pfprofile.units import format_clock, format_duration, format_power


def fit_report(path: Path, model: FittedModel) -> dict[str, Any]:
    """The contract's object: parameters, quality, warnings."""
    document = model.document
    return {
        "model_path": str(path),
        "workload": document.workload,
        "device_name": document.device_name,
        "source": document.source,
        "rows": document.provenance.rows,
        "points": document.provenance.points,
        "converged": document.converged,
        "parameters": {p.name: _parameter(p) for p in document.parameters},
        "quality": {
            "throughput": _part(document.quality.throughput),
            "power": _part(document.quality.power) if document.quality.power else None,
        },
        "correlations": correlations(document),
        "worst_rows": [w.model_dump() for w in document.advice.worst],
        "next_points": [p.model_dump() for p in document.advice.next_points],
        "warnings": list(document.warnings),
    }


def _parameter(p: Parameter) -> dict[str, Any]:
    return {"value": p.value, "stderr": p.stderr, "frozen": p.frozen, "reason": p.reason, "unit": p.unit,
            "weak": p.weak, "at_bound": p.at_bound}  # fmt: skip


def _part(part: PartQuality) -> dict[str, Any]:
    return part.model_dump()


def as_text(path: Path, model: FittedModel) -> str:
    """The report to read: head, parameters, errors by axis, warnings."""
    document = model.document
    lines = [f"{document.workload} on {document.device_name} ({document.source}) -> {path}",
             f"  {document.provenance.extent} fitted"]  # fmt: skip
    lines += ["  " + line for line in _parameter_lines(document)]
    lines += ["  " + line for line in _quality_lines(document)]
    lines += ["  " + line for line in _advice_lines(document)]
    lines += [f"  note: {w}" for w in document.warnings]
    return "\n".join(lines)


def _parameter_lines(document: ModelDocument) -> list[str]:
    out = ["parameter       value    stderr  unit"]
    for p in document.parameters:
        spread = "frozen" if p.stderr is None else f"{p.stderr:.2g}"
        reason = f"  {p.reason}" if p.reason else ""
        out.append(f"{p.name:<9} {p.value:>11.4g} {spread:>9}  {p.unit:<3}{reason}".rstrip())
    return out


def _advice_lines(document: ModelDocument) -> list[str]:
    out = []
    tied = [f"{c['a']}/{c['b']} {c['correlation']:+.2f}" for c in correlations(document)[:4]]
    if tied:
        out.append(f"known only together (correlation): {', '.join(tied)}")
    if document.advice.worst:
        out.append("worst points:")
        for w in document.advice.worst:
            value = format_duration(w.measured) if w.part == "time" else format_power(w.measured)
            out.append(f"  {_point(w)}: {w.part} {value} predicted {w.error:+.1%}")
    if document.advice.next_points:
        out.append("to measure next:")
        out += [f"  {_point(p)}: {p.reason}" for p in document.advice.next_points]
    return out


def _point(p: WorstRow | NextPoint) -> str:
    nodes = f" on {p.n_nodes} nodes" if p.n_nodes > 1 else ""
    return f"{p.n_gpus} GPU{'s' * (p.n_gpus > 1)}{nodes}, batch {p.local_batch}, {format_clock(p.sm_clock_mhz)}"


def _quality_lines(document: ModelDocument) -> list[str]:
    quality = document.quality
    out = []
    for name, part in (("throughput", quality.throughput), ("power", quality.power)):
        if part is None:
            out.append(f"{name}: not measured")
            continue
        held = "".join(f", leave one {axis} out {mape:.1%}" for axis, mape in part.cv.items())
        out.append(f"{name}: error in-sample {part.in_sample_mape:.1%}{held}")
        for other, by_axis in part.baselines.items():
            errors = ", ".join(f"{axis} {mape:.1%}" for axis, mape in by_axis.items())
            out.append(f"  {other.replace('_', ' ')}, left out: {errors}")
        if part.coverage:
            inside = ", ".join(f"{axis} {share:.0%}" for axis, share in part.coverage.items())
            out.append(f"  90 % intervals held: {inside}")
    return out


def parameter_rows(path: Path, model: FittedModel) -> list[dict[str, Any]]:
    """One row a parameter, for CSV."""
    document = model.document
    head = {"model_path": str(path), "workload": document.workload, "device_name": document.device_name}
    return [{**head, "parameter": p.name, **_parameter(p)} for p in document.parameters]
