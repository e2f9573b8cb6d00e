"""Pictures of a profile: step time, throughput, power and energy against clock, batch and GPUs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pfprofile.profile import Profile
from pfprofile.report.axes import shown_axes
from pfprofile.report.parts import Columns, DataTable, Group, Section, enumerate_words, table
from pfprofile.report.slice_panels import panels_of
from pfprofile.report.slices import Slice, cut, derived
from pfprofile.units import format_bytes, format_clock, format_duration, format_energy, format_power

_TRIALS: Columns = {
    "n_gpus": ("GPUs", str),
    "n_nodes": ("nodes", str),
    "local_batch": ("batch", str),
    "accum_steps": ("accum.", str),
    "requested_clock_mhz": ("requested clock", format_clock),
    "achieved_clock_mhz": ("achieved clock", format_clock),
    "power_limit_w": ("power limit", format_power),
    "limited_by": ("limited by", str),
    "status": ("status", str),
    "step_time_s": ("step time", format_duration),
    "step_time_std_s": ("std", format_duration),
    "throughput_per_s": ("throughput /s", lambda v: f"{v:.4g}"),
    "power_w": ("power of one GPU", format_power),
    "power_spread_w": ("spread", format_power),
    "energy_per_sample_j": ("energy a sample", format_energy),
    "memory_peak_bytes": ("peak memory", format_bytes),
    "error": ("error", str),
}


_ALONE: tuple[tuple[str, str, Callable[[Any], str]], ...] = (
    ("step_time_s", "Step time", format_duration),
    ("throughput_per_s", "Throughput", lambda v: f"{v:.4g} /s"),
    ("power_w", "Power of one GPU", format_power),
    ("energy_j", "Energy of the window", format_energy),
    ("energy_per_sample_j", "Energy a sample", format_energy),
    ("achieved_clock_mhz", "Achieved clock", format_clock),
)


def section(profile: Profile, file_name: str, prefix: str) -> Section:
    """The profile's part of a report."""
    rows = [derived(row) for row in profile.rows()]
    ok = [row for row in rows if row["status"] == "ok" and row["step_time_s"]]
    unit = profile.metadata.workload.sample_unit
    groups = [_group(cut(rows, axis), unit, prefix) for axis in shown_axes(rows)]
    groups.append(Group("All trials", tables=(_all_trials(rows),)))
    return Section(
        kind="profile",
        heading=_name(profile),
        file_name=file_name,
        sources=(profile.metadata.source,),
        facts=tuple(_facts(profile, rows, ok)),
        notes=tuple(_notes(profile, rows, ok)),
        groups=tuple(groups),
    )


def _name(profile: Profile) -> str:
    words = [" + ".join(map(str, profile.unique(c))) for c in ("workload", "device_name", "precision")]
    return f"{words[0]} on {words[1]}, {words[2]}" if profile.n_rows else "empty profile"


def _facts(profile: Profile, rows: list[dict[str, Any]], ok: list[dict[str, Any]]) -> list[tuple[str, str]]:
    meta = profile.metadata
    failed = sum(row["status"] != "ok" for row in rows)
    untimed = len(rows) - len(ok) - failed
    words = [f"{len(rows)}", *([f"{failed} failed"] if failed else []),
             *([f"{untimed} without a step time"] if untimed else [])]  # fmt: skip
    facts = [("Trials", ", ".join(words))]
    for column, name in (("n_gpus", "GPUs"), ("local_batch", "Batch per GPU")):
        values = sorted({row[column] for row in rows})
        if values:
            facts.append((name, str(values[0]) if len(values) == 1 else f"{values[0]} to {values[-1]}"))
    clocks = sorted({row["requested_clock_mhz"] for row in rows if row["requested_clock_mhz"] is not None})
    locked = f"{clocks[0]:g} to {clocks[-1]:g} MHz" if len(clocks) > 1 else "".join(f"{c:g} MHz" for c in clocks)
    facts.append(("SM clock", locked or "not locked"))
    for name, value in (("Host", meta.host), ("Driver", meta.driver_version), ("torch", meta.torch_version),
                        ("CUDA", meta.cuda_version), ("Measured", meta.started_at)):  # fmt: skip
        if value:
            facts.append((name, value))
    if meta.power_limit_w is not None:
        facts.append(("Power limit", format_power(meta.power_limit_w)))
    if len(rows) == 1:  # no line can be drawn through it: its numbers are the picture
        facts += [(heading, show(rows[0][name])) for name, heading, show in _ALONE if rows[0][name] is not None]
    if meta.replayed_from:
        facts.append(("Replayed from", str(meta.replayed_from.get("name", "a recording"))))
    return facts


def _notes(profile: Profile, rows: list[dict[str, Any]], ok: list[dict[str, Any]]) -> list[str]:
    notes = list(profile.metadata.notes)
    throttled = [row for row in ok if is_throttled(row)]
    if throttled:
        kinds = enumerate_words(sorted({row["limited_by"] for row in throttled}))
        notes.append(f"{len(throttled)} of {len(ok)} trials did not hold the clock asked for (limit: {kinds}).")
    without = sum(row["power_w"] is None for row in ok)
    if ok and without:
        notes.append(f"Power is unknown in {_share(without, len(ok))} finished trials.")
    if not rows:
        notes.append("The profile holds no trials.")
    return notes


def is_throttled(row: dict[str, Any]) -> bool:
    """Whether power, heat or the hardware kept the trial's clock down."""
    return row["limited_by"] in ("power", "thermal", "hardware")


def _group(part: Slice, unit: str, prefix: str) -> Group:
    panels, key = panels_of(part, unit, prefix)
    return Group(part.title, part.intro, panels, (part.table(),) if part.lines else (), key=key)


def _all_trials(rows: list[dict[str, Any]]) -> DataTable:
    return table("All trials", rows, _TRIALS)


def _share(part: int, whole: int) -> str:
    return f"all {whole}" if part == whole else f"{part} of the {whole}"
