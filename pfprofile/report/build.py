"""From files to one page."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from pfprofile.errors import HardwareError
from pfprofile.profile import Profile
from pfprofile.profile.io import write_text
from pfprofile.report.artifact import Artifact, Kind, find_artifact, read_artifact
from pfprofile.report.parts import Section

if TYPE_CHECKING:
    from pfprofile.model import FittedModel


def build_report(names: Sequence[str]) -> str:
    """The page for these files, in their order.

    Args:
        names: paths, or names of shipped profiles.

    Returns:
        HTML that needs nothing else; the same files give the same bytes.

    Raises:
        InputError: a file is missing or none of the artifacts.
        HardwareError: the extra ``[report]`` is not installed.
    """
    _require_extra()
    from pfprofile.report.page import render
    from pfprofile.report.svg import drawing

    artifacts = [read_artifact(find_artifact(name)) for name in names]
    with drawing():
        sections = [_section(artifact, artifacts, f"s{i}") for i, artifact in enumerate(artifacts, start=1)]
    return render(sections)


def write_report(names: Sequence[str], output: Path) -> int:
    """Build the page and put it in place in one step.

    Returns:
        Its size in bytes.

    Raises:
        InputError, HardwareError: as `build_report`.
        PfprofileError: the file cannot be written.
    """
    text = build_report(names)
    write_text(output, text)
    return len(text.encode())


def _require_extra() -> None:
    from importlib.util import find_spec

    missing = [name for name in ("matplotlib", "jinja2") if find_spec(name) is None]
    if missing:
        raise HardwareError(
            f"report needs {' and '.join(missing)}, not installed here", "pip install 'pfprofile[report]'"
        )


def _section(artifact: Artifact, given: Sequence[Artifact], prefix: str) -> Section:
    from pfprofile.report import comparison, model, profile, schedule
    from pfprofile.report.comparison_file import read_comparison
    from pfprofile.report.schedule_file import read_schedule

    body, name = artifact.body, artifact.path.name
    if isinstance(body, Profile):
        return profile.section(body, name, prefix)
    if artifact.kind is Kind.model:
        from pfprofile.model import load_model

        fitted = load_model(artifact.path)
        return model.section(fitted, _profile_of(fitted, given), name, prefix)
    if artifact.kind is Kind.schedule:
        return schedule.section(read_schedule(body, artifact.path), name, prefix)
    return comparison.section(read_comparison(body, artifact.path), body, name, prefix)


def _profile_of(model: FittedModel, given: Sequence[Artifact]) -> Profile | None:
    """The profile among the given files that the model was fitted on, else one of its workload and device."""
    profiles = [artifact.body for artifact in given if isinstance(artifact.body, Profile)]
    like = [
        p
        for p in profiles
        if p.unique("workload") == [model.workload] and p.unique("device_name") == [model.device_name]
    ]
    same = [p for p in like if p.digest() == model.document.provenance.profile_digest]
    return next(iter(same or like), None)
