"""A schedule on stdout, for every command that has one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import typer

from pfprofile.cli._output import Cells, Format, print_csv, print_json, print_table

if TYPE_CHECKING:
    from pfprofile.plan.actual import Progress


def print_schedule(body: Mapping[str, Any], fmt: Format) -> None:
    """Jobs and totals as a table, the whole artifact as JSON, or one segment a row as CSV."""
    from pfprofile.plan import words
    from pfprofile.plan.schedule import SEGMENT_COLUMNS, job_rows

    if fmt is Format.json:
        print_json(body)
    elif fmt is Format.csv:
        print_csv([{**s, "gpus": " ".join(s["gpus"])} for s in body["segments"]], SEGMENT_COLUMNS)
    else:
        print_table(job_rows(dict(body)), words.JOB_CELLS)
        typer.echo("\n" + words.summary(dict(body)))


def print_progress(rows: Sequence[Progress]) -> None:
    """Planned against actual, on stderr: the schedule is what was asked for."""
    from pfprofile.units import format_duration

    cells: Cells = {
        "script": ("script", str), "planned": ("planned", str), "expected": ("by now", "{:.0%}".format),
        "state": ("state", str), "done": ("done", "{:.0%}".format), "late": ("late", str),
    }  # fmt: skip
    shown = [
        {
            "script": r.script, "planned": f"{format_duration(r.start_s)} to {format_duration(r.end_s)}",
            "expected": r.expected, "state": r.state, "done": r.done,
            "late": format_duration(r.behind_s) if r.behind_s > 0.5 else "-",
        }
        for r in rows
    ]  # fmt: skip
    print_table(shown, cells, on_stderr=True)
