"""What a table of trials has no room for: why some of them failed, and what is doubtful in others."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from pfprofile.cli._output import say
from pfprofile.units import counted

#: More different reasons than these are counted, not listed.
MOST_REASONS = 8
#: So many trials are named for one reason.
MOST_NAMED = 3


def say_reasons(rows: Sequence[Mapping[str, Any]]) -> None:
    """Each status and reason once, with the trials it stands for."""
    found: dict[tuple[str, str], list[str]] = defaultdict(list)
    for row in rows:
        if row["status"] != "ok" or row.get("error"):
            found[row["status"], row.get("error") or "no reason recorded"].append(str(row["trial_id"]))
    for (status, reason), trials in list(found.items())[:MOST_REASONS]:
        named = ", ".join(trials[:MOST_NAMED]) + (" …" if len(trials) > MOST_NAMED else "")
        who = named if len(trials) == 1 else f"{counted(len(trials), 'trial')} ({named})"
        say(f"{who}: {'' if status == 'ok' else status + ': '}{reason}")
    if len(found) > MOST_REASONS:
        say(f"and {counted(len(found) - MOST_REASONS, 'other reason')}; all with: pfprofile show FILE --format csv")
