"""What is doubtful in any artifact, and the command that would help: the questions behind `check`."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

from pfprofile.profile import Profile
from pfprofile.profile.check import Finding, check_profile
from pfprofile.report.artifact import Artifact, Kind


def doubts(artifact: Artifact) -> list[Finding]:
    """Findings of one artifact; an empty list means that nothing was found."""
    looks: dict[Kind, Callable[[Artifact], list[Finding]]] = {
        Kind.profile: _profile,
        Kind.model: _model,
        Kind.schedule: _schedule,
        Kind.comparison: _comparison,
    }
    return looks[artifact.kind](artifact)


def _profile(artifact: Artifact) -> list[Finding]:
    assert isinstance(artifact.body, Profile)
    return check_profile(artifact.body, str(artifact.path))


def _model(artifact: Artifact) -> list[Finding]:
    from pfprofile.model.store import load_model

    document = load_model(artifact.path).document
    found = [Finding(text, "the whole model", f"pfprofile show {artifact.path}") for text in document.warnings]
    for p in document.parameters:
        if p.weak:
            again = f"pfprofile sweep {document.workload} --max-points 30"
            found.append(Finding(f"{p.name} is hardly known: {p.reason or 'large error'}", "parameters", again))
    return found


#: sums in a schedule are of floats: they may differ by this share
_SUM_TOLERANCE = 1e-6


def _schedule(artifact: Artifact) -> list[Finding]:
    body = artifact.body
    assert isinstance(body, Mapping)
    again = "pfprofile plan --force -o " + str(artifact.path)
    found = []
    totals = body["totals"]
    parts = sum(totals.get(key) or 0.0 for key in ("gpu_energy_j", "idle_energy_j", "node_energy_j"))
    segments = math.fsum(s["energy_j"] for s in body["segments"])
    for what, a, b in (
        ("the parts of the energy do not add up to the total", parts, totals["energy_j"]),
        ("the segments' energy does not add up to the GPUs'", segments, totals["gpu_energy_j"]),
    ):
        if not math.isclose(a, b, rel_tol=_SUM_TOLERANCE, abs_tol=1e-3):
            found.append(Finding(f"{what}: {a:.6g} J, not {b:.6g} J", "totals", again))
    used = (body.get("budget") or {}).get("used_fraction")
    if used is not None and used > 1 + _SUM_TOLERANCE:
        found.append(Finding(f"it uses {used:.1%} of its budget", "budget", again))
    found += [Finding(text, "segments", again) for text in _collisions(body["segments"])]
    synthetic = [m["name"] for m in (body.get("inputs") or {}).get("models", []) if m.get("source") == "synthetic"]
    if synthetic:
        text = f"rests on synthetic models: {', '.join(synthetic)}"
        found.append(Finding(text, "inputs", "pfprofile sweep WORKLOAD && pfprofile fit"))
    return found


def _collisions(segments: list[Mapping[str, Any]]) -> list[str]:
    """GPUs that two segments hold at one time."""
    held: dict[str, tuple[float, str]] = {}
    found = []
    for s in sorted(segments, key=lambda s: (s["start_s"], s["end_s"])):
        for gpu in s["gpus"]:
            until, by = held.get(gpu, (-math.inf, ""))
            if s["start_s"] < until - _SUM_TOLERANCE * max(1.0, abs(until)) and by != s["job"]:
                found.append(f"{gpu} serves {by} and {s['job']} at {s['start_s']:.6g} s")
            held[gpu] = max(held.get(gpu, (-math.inf, "")), (s["end_s"], s["job"]))
    return found[:10]


def _comparison(artifact: Artifact) -> list[Finding]:
    body = artifact.body
    assert isinstance(body, Mapping)
    clamped = [r for r in body["equal_energy"] if r.get("clamped")]
    if not clamped:
        return []
    text = f"{len(clamped)} ratios stand at the end of a curve, not between its points"
    policy, trace = clamped[0].get("policy", "POLICY"), clamped[0].get("trace") or "TRACE"
    again = f"pfprofile compare --trace {trace} --knob {policy}.PARAMETER=V1,V2"
    return [Finding(text, "equal_energy", again)]
