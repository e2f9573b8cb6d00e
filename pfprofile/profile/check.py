"""What is doubtful in a profile, where, and the command that would help."""

from __future__ import annotations

import math
import shlex
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from pfprofile.profile.data import Profile

#: repeats of a point from which on its spread means something
ENOUGH_REPEATS = 3
#: step times or powers of one point may differ by this share of their middle
WIDE_SPREAD = 0.10
#: a clock counts as reached within this share of the request
CLOCK_TOLERANCE = 0.02
#: a sweep that leaves out the clocks below this share of the highest says little about the cheapest clock
LOW_CLOCK = 0.6
#: GPUs of one job may differ by this share of their mean power
WIDE_POWER_SPREAD = 0.25
#: columns to carry over when a profile is split in two
SPLIT = ("workload", "device_name", "precision", "n_gpus", "n_nodes", "local_batch", "accum_steps",
         "requested_clock_mhz", "achieved_clock_mhz", "step_time_s", "power_w", "power_limit_w")  # fmt: skip

#: flags of a sweep, without a value, that speak of one run of it
_ALONE = ("--fresh", "--force", "--retry-failed", "--dry-run")

Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Finding:
    """One doubt.

    Attributes:
        what: what is doubtful, in words.
        where: the rows or the column it stands in.
        next_command: what to type next.
    """

    what: str
    where: str
    next_command: str


def check_profile(profile: Profile, name: str = "PROFILE") -> list[Finding]:
    """Look for what would mislead a fit; an empty list means nothing was found.

    Args:
        profile: what to look at.
        name: how the commands should call the file.
    """
    rows = profile.rows()
    if not rows:
        return [Finding("the profile has no rows", "all", "pfprofile sweep WORKLOAD")]
    workload, imported = str(rows[0]["workload"]), profile.metadata.source == "imported"
    good = [row for row in rows if row["status"] == "ok" and row["step_time_s"] is not None]
    if not good:
        failed = f"{len(rows)} of {len(rows)} rows"
        if imported:
            again = f"pfprofile import FORMAT LOG --steps COUNT -o {name} --force"
            return [Finding("no trial has a step time, which a fit needs", failed, again)]
        finding = Finding("no trial ended well", failed, f"pfprofile sweep {workload} --retry-failed")
        return [_own_line(finding, profile, name)]
    view = _View(profile, name, workload, rows, good)
    found = [finding for look in LOOKS for finding in look(view)]
    return [_joining(finding, name) if imported else _own_line(finding, profile, name) for finding in found]


def _own_line(finding: Finding, profile: Profile, name: str) -> Finding:
    """The line that made a profile, with what a finding adds to it: its settings and device have to stay."""
    argv, words = profile.metadata.argv, shlex.split(finding.next_command)
    if profile.metadata.source != "measured" or argv[:2] != ("pfprofile", "sweep") or words[:2] != list(argv[:2]):
        return finding
    added = words[3:]
    # Of the two that begin anew only the finding may ask: following its advice must not cost what is measured.
    replaced = {word for word in (*added, "-o", "--output", *_ALONE) if word.startswith("-")}
    line: list[str] = []
    rest = iter(argv)
    for word in rest:
        option = word.partition("=")[0]
        if option in replaced:
            if word == option and option not in _ALONE:
                next(rest, None)  # its value
        elif not (word.startswith("-o") and not word.startswith("--")):
            line.append(word)
    return replace(finding, next_command=shlex.join([*line, *added, "-o", name]))


def _joining(finding: Finding, name: str) -> Finding:
    """What a sweep would add to its own profile, another imported run adds to an imported one."""
    if not finding.next_command.startswith("pfprofile sweep "):
        return finding
    return replace(finding, next_command=f"pfprofile merge {name} ANOTHER-RUN.parquet -o joined.parquet")


@dataclass(frozen=True, slots=True)
class _View:
    profile: Profile
    name: str
    workload: str
    rows: list[Row]
    good: list[Row]

    def points(self) -> dict[tuple[Any, ...], list[int]]:
        """Indices into ``good`` by point."""
        out: dict[tuple[Any, ...], list[int]] = defaultdict(list)
        for i, r in enumerate(self.good):
            out[(r["n_gpus"], r["n_nodes"], r["local_batch"], r["accum_steps"], r["requested_clock_mhz"],
                 r["power_limit_w"])].append(i)  # fmt: skip
        return out

    def values(self, column: str) -> list[Any]:
        """The distinct known values of a column among the good rows, sorted."""
        return sorted({r[column] for r in self.good if r[column] is not None})


def _trials(rows: list[Row]) -> str:
    names = [str(r["trial_id"]) for r in rows[:4]]
    return ", ".join(names) + (f" and {len(rows) - 4} more" if len(rows) > 4 else "")


def _identity(v: _View) -> Iterator[Finding]:
    for column in ("workload", "device_name", "precision"):
        values = v.profile.unique(column)
        if len(values) > 1:
            yield Finding(f"{len(values)} values of {column} in one profile; a model is fitted to one",
                          f"{column}: {', '.join(map(str, values[:3]))}",
                          f"pfprofile import table {v.name} --where {column}={_quoted(values[0])} "
                          + " ".join(f"--map {name}={name}" for name in SPLIT))  # fmt: skip


def _quoted(value: Any) -> str:
    return shlex.quote(str(value))


def _failures(v: _View) -> Iterator[Finding]:
    bad = [r for r in v.rows if r["status"] in ("failed", "timeout")]
    if bad:
        yield Finding(f"{len(bad)} of {len(v.rows)} trials failed or timed out", _trials(bad),
                      f"pfprofile sweep {v.workload} --retry-failed")  # fmt: skip


def _repeats(v: _View) -> Iterator[Finding]:
    counts = [len(rows) for rows in v.points().values()]
    few = sum(c < ENOUGH_REPEATS for c in counts)
    # Within-trial spread tells as much: a trial of many steps with a known deviation needs no repeat.
    unknown = all(r["step_time_std_s"] is None for r in v.good)
    if few == len(counts) and unknown:
        yield Finding(f"every point has fewer than {ENOUGH_REPEATS} trials and no spread was recorded: "
                      "noise cannot be told from effect", f"{few} points",
                      f"pfprofile sweep {v.workload} --repeats {ENOUGH_REPEATS}")  # fmt: skip


def _spread(v: _View) -> Iterator[Finding]:
    for column, words in (("step_time_s", "step time"), ("power_w", "power")):
        wide = []
        for rows in v.points().values():
            values = sorted(v.good[i][column] for i in rows if v.good[i][column] is not None)
            if len(values) > 1 and values[-1] - values[0] > WIDE_SPREAD * values[len(values) // 2]:
                wide += [v.good[i] for i in rows]
        if wide:
            yield Finding(f"{words} differs by more than {WIDE_SPREAD:.0%} between trials of one point", _trials(wide),
                          f"pfprofile sweep {v.workload} --repeats 5")  # fmt: skip
    noisy = [r for r in v.good if (r["step_time_std_s"] or 0) > WIDE_SPREAD * r["step_time_s"]]
    if noisy:
        yield Finding(f"step time varies by more than {WIDE_SPREAD:.0%} within a trial: something else ran, or the "
                      "input is the bottleneck", _trials(noisy),
                      f"pfprofile sweep {v.workload} --steps 200 --fresh")  # fmt: skip
    uneven = [r for r in v.good if r["power_w"] and (r["power_spread_w"] or 0) > WIDE_POWER_SPREAD * r["power_w"]]
    if uneven:
        yield Finding("the GPUs of one job draw very different power: one may be shared or throttled", _trials(uneven),
                      "pfprofile doctor")  # fmt: skip


def _throttled(v: _View) -> Iterator[Finding]:
    hot = [r for r in v.good if r["limited_by"] in ("thermal", "hardware")]
    if hot:
        yield Finding("the GPU was throttled by heat or hardware", _trials(hot), "pfprofile doctor")
    missed = [
        r for r in v.good
        if r["requested_clock_mhz"] and r["achieved_clock_mhz"]
        and abs(r["achieved_clock_mhz"] / r["requested_clock_mhz"] - 1) > CLOCK_TOLERANCE
    ]  # fmt: skip
    held = [r for r in missed if r["limited_by"] == "power"]
    if held:
        top = max(r["achieved_clock_mhz"] for r in held)
        yield Finding(f"the power limit kept the clock below the request (at most {top:g} MHz); the fit uses the clock "
                      "that was reached", _trials(held),
                      f"pfprofile sweep {v.workload} --freqs {_below(v, top)}")  # fmt: skip
    others = [r for r in missed if r["limited_by"] not in ("power", "thermal", "hardware")]
    if others:
        yield Finding("a requested clock was not reached, for no recorded reason", _trials(others), "pfprofile doctor")


def _below(v: _View, top: float) -> str:
    clocks = [f for f in v.profile.metadata.supported_clocks_mhz if f <= top] or v.values("achieved_clock_mhz")
    return f"{clocks[0]:g},{top:g}" if clocks and clocks[0] < top else f"{top:g}"


def _clock_axis(v: _View) -> Iterator[Finding]:
    clocks, supported = v.values("requested_clock_mhz"), sorted(v.profile.metadata.supported_clocks_mhz)
    again = f"pfprofile sweep {v.workload} --freqs auto"
    if supported:
        foreign = [f for f in clocks if min(abs(f - s) for s in supported) > 0.5]
        if foreign:
            yield Finding(f"{foreign[0]:g} MHz is not a clock the device offers", "requested_clock_mhz", again)
    if len(clocks) == 1 or (supported and len(supported) > 1 and not clocks):
        yield Finding("one clock only: nothing can be said of others", "requested_clock_mhz", again)
    if len(clocks) > 1:
        least = supported[0] if supported else None
        if least is not None and clocks[0] > least + 0.5:
            yield Finding(f"the lowest clock ({least:g} MHz) was not measured; the cheapest clock may be misjudged",
                          "requested_clock_mhz", f"pfprofile sweep {v.workload} --freqs {least:g}")  # fmt: skip
        elif least is None and clocks[0] > LOW_CLOCK * clocks[-1]:
            yield Finding(f"no clock below {LOW_CLOCK:.0%} of the highest was measured; the cheapest clock may be "
                          "misjudged", "requested_clock_mhz", again)  # fmt: skip


def _other_axes(v: _View) -> Iterator[Finding]:
    n, b = v.values("n_gpus"), v.values("local_batch")
    if len(n) == 1:
        yield Finding(f"one GPU count only ({n[0]}): others cannot be predicted", "n_gpus",
                      f"pfprofile sweep {v.workload} --gpus {n[0]},{2 * n[0]},{4 * n[0]}")  # fmt: skip
    if len(b) == 1:
        yield Finding(f"one batch only ({b[0]}): others cannot be predicted", "local_batch",
                      f"pfprofile sweep {v.workload} --batch-sizes auto")  # fmt: skip


def _power(v: _View) -> Iterator[Finding]:
    unknown = [r for r in v.good if r["power_w"] is None]
    if unknown:
        part = "no trial has" if len(unknown) == len(v.good) else f"{len(unknown)} trials lack"
        yield Finding(f"{part} power: energy cannot be predicted from them", _trials(unknown), "pfprofile doctor")
    above = [r for r in v.good if r["power_w"] and r["power_limit_w"] and r["power_w"] > 1.1 * r["power_limit_w"]]
    if above:
        yield Finding("power above the limit by more than 10 %: a wrong unit, or several GPUs summed", _trials(above),
                      f"pfprofile show {v.name}")  # fmt: skip


def _impossible(v: _View) -> Iterator[Finding]:
    bad = [r for r in v.rows if r["step_time_s"] is not None and not 0 < r["step_time_s"] < math.inf]
    bad += [r for r in v.rows if r["power_w"] is not None and not 0 < r["power_w"] < math.inf]
    if bad:
        yield Finding("step times or powers that are not above zero: the fit refuses them", _trials(bad),
                      f"pfprofile show {v.name}")  # fmt: skip


def _source(v: _View) -> Iterator[Finding]:
    if v.profile.metadata.source == "synthetic":
        yield Finding("synthetic: nothing about a real machine follows from it", "metadata",
                      f"pfprofile sweep {v.workload}")  # fmt: skip


LOOKS: tuple[Callable[[_View], Iterator[Finding]], ...] = (
    _impossible, _identity, _failures, _throttled, _spread, _repeats, _clock_axis, _other_axes, _power, _source,
)  # fmt: skip
