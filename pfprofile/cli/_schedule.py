"""A schedule on stdout, for every command that has one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import typer

from pfprofile.cli._output import Format, print_csv, print_json, print_table


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
