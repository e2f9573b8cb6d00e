"""Pictures of a model: curves with intervals over measured points, residuals, the time-energy front with the pick."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from pfprofile.errors import InputError
from pfprofile.model.fitted import FittedModel
from pfprofile.profile import Profile
from pfprofile.report.axes import ALWAYS, NAMES
from pfprofile.report.curve_panels import curve_panels
from pfprofile.report.curves import curves_of, cut_of_domain, known_values
from pfprofile.report.front import front_group
from pfprofile.report.parts import Columns, Group, Section, spread_evenly, table
from pfprofile.report.residuals import residual_group
from pfprofile.report.slices import cut, derived
from pfprofile.units import format_power

_PARAMETERS: Columns = {
    "name": ("parameter", str),
    "value": ("value", lambda v: f"{v:.4g}"),
    "stderr": ("± standard error", lambda v: f"{v:.2g}"),
    "unit": ("unit", str),
    "state": ("state", str),
    "reason": ("why", str),
}
_QUALITY: Columns = {
    "part": ("part", str),
    "test": ("tested on", str),
    "mape": ("mean error", lambda v: f"{100 * v:.2f} %"),
    "coverage": ("inside the 90 % interval", lambda v: f"{100 * v:.1f} %"),
    "baseline": ("best baseline", str),
    "baseline_mape": ("its error", lambda v: f"{100 * v:.2f} %"),
}
#: more curves than this, each with its band, hide each other
MOST_CURVES = 3


def section(model: FittedModel, profile: Profile | None, file_name: str, prefix: str) -> Section:
    """The model's part of a report.

    Args:
        model: as loaded.
        profile: the one it was fitted on (or of the same workload and device), for the measured points.
    """
    document = model.document
    rows = [derived(row) for row in profile.rows()] if profile is not None else []
    known = known_values(model)
    axes = [axis for axis in NAMES if axis in ALWAYS or len(known[axis]) > 1]
    groups = [_curve_group(model, rows, axis, prefix) for axis in axes]
    groups += [residual_group(model, rows, prefix), front_group(model, prefix)]
    groups += [
        Group(
            "How good it is",
            _quality_words(model),
            tables=(table("Errors", _quality(model), _QUALITY, missing="–"),),
            open_tables=True,
        ),
        Group("Parameters", tables=(table("Parameters", _parameters(model), _PARAMETERS),)),
    ]
    notes = [*document.warnings, *_about_points(model, profile)]
    return Section(
        kind="model",
        heading=f"{model.workload} on {model.device_name}, {document.precision}",
        file_name=file_name,
        sources=(model.source,),
        facts=tuple(_facts(model)),
        notes=tuple(notes),
        groups=tuple(groups),
    )


def _facts(model: FittedModel) -> list[tuple[str, str]]:
    document = model.document
    facts = [("Fitted on", document.provenance.extent)]
    facts.append(("Forms", ", ".join(form for form in document.forms.values() if form) or "none"))
    for name, part in (("Throughput error", document.quality.throughput), ("Power error", document.quality.power)):
        facts.append((name, "unknown: no power was measured" if part is None else _worst(part)))
    if document.clocks.cap_w is not None:
        facts.append(("Power limit", format_power(document.clocks.cap_w)))
    if not document.converged:
        facts.append(("Fit", "did not converge"))
    return facts


def _worst(part: Any) -> str:
    held = max(part.cv.items(), key=lambda item: item[1], default=None)
    inside = f"{100 * part.in_sample_mape:.1f} % in-sample"
    return inside if held is None else f"{inside}, {100 * held[1]:.1f} % with one {_axis_words(held[0])} left out"


def _axis_words(axis: str) -> str:
    """``n_gpus`` → ``GPU count``."""
    return {"n_gpus": "GPU count", "batch": "batch size"}.get(axis, axis)


def _about_points(model: FittedModel, profile: Profile | None) -> list[str]:
    if profile is None:
        return [
            "Give the profile beside the model (pfprofile report PROFILE MODEL) to see measured points and residuals."
        ]
    if profile.digest() != model.document.provenance.profile_digest:
        return ["The points are of a profile of the same workload and device, not the one this model was fitted on."]
    return []


def _curve_group(model: FittedModel, rows: Sequence[dict[str, Any]], axis: str, prefix: str) -> Group:
    part = cut(rows, axis) if rows else cut_of_domain(model, axis)
    if rows and not part.lines:
        part = cut_of_domain(model, axis)
    part = replace(part, lines=tuple(spread_evenly(part.lines, MOST_CURVES)), failed=())
    title = f"The fit {part.title[0].lower()}{part.title[1:]}"
    if not part.lines:
        return Group(title, part.intro)
    try:
        curves = curves_of(model, part)
    except InputError as error:
        return Group(title, f"The model does not speak about these points: {error}")
    intro = part.intro.split(" are drawn;")[0].rsplit(".", 1)[0].rstrip(".") + "."
    panels, key, tables = curve_panels(model, part, curves, prefix)
    return Group(title, intro, panels, tables, key=key)


def _quality(model: FittedModel) -> list[dict[str, Any]]:
    quality = model.document.quality
    rows = []
    for name, part in (("throughput", quality.throughput), ("power", quality.power)):
        if part is None:
            continue
        rows.append({"part": name, "test": "the fitted points", "mape": part.in_sample_mape})
        for axis, mape in part.cv.items():
            others = {n: by_axis[axis] for n, by_axis in part.baselines.items() if axis in by_axis}
            best = min(others, key=lambda n: others[n]) if others else None
            rows.append({
                "part": name, "test": f"one {_axis_words(axis)} left out", "mape": mape,
                "coverage": part.coverage.get(axis), "baseline": best, "baseline_mape": others[best] if best else None,
            })  # fmt: skip
    return rows


def _quality_words(model: FittedModel) -> str:
    if model.source == "synthetic":
        return "The profile is synthetic: these errors say how well the form fits a generated table, nothing more."
    return "Mean absolute percentage errors; left out means fitted without that value and tested on it."


def _parameters(model: FittedModel) -> list[dict[str, Any]]:
    rows = []
    for p in model.document.parameters:
        states = [word for word, on in (("frozen", p.frozen), ("weak", p.weak), ("at its bound", p.at_bound)) if on]
        rows.append({**p.model_dump(), "state": ", ".join(states) or "fitted"})
    return rows
