"""One run's sensor log → one trial: the window, its power and energy by the functions of the telemetry room."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from pfprofile.errors import InputError, UsageError
from pfprofile.profile.importers import steps as steps_of
from pfprofile.profile.importers.base import Imported, ImportOptions
from pfprofile.profile.importers.facts import pairs, split_targets
from pfprofile.profile.importers.finish import finish, require
from pfprofile.profile.importers.measure import Measured, measure
from pfprofile.profile.importers.readings import GpuFacts, Log, Reading, nothing_left, skipped_notices
from pfprofile.profile.importers.window import Series, Window, as_series, choose_window, order
from pfprofile.telemetry import limited_by, plausibility

#: a GPU below this share of the busiest one's power may not have trained at all
IDLE_SHARE = 0.5


def trial_of(log: Log, paths: Sequence[Path], options: ImportOptions, hint: str) -> Imported:
    """Turn one run's readings into a profile of one trial.

    Args:
        log: what was read.
        paths: the files, for errors and notes.
        options: what the person said.
        hint: how to make a log that can be read, for the error where nothing is left.

    Raises:
        InputError: nothing could be read; GPUs that cannot be told apart; implausible values.
        UsageError: something the log does not hold was not given; the flag is named.
    """
    where = str(paths[0]) if len(paths) == 1 else f"{paths[0]} and {len(paths) - 1} more"
    if not log.readings:
        raise nothing_left(paths, log.skipped, "readings", hint)
    columns, facts = split_targets(pairs(options.constants, "--set", "n_gpus=1"))
    require(columns, ("workload", "local_batch"), where)
    lines = steps_of.read_log(options.log, options.log_regex)
    _choose_gpus(log, options.gpu_ids, where)
    ordered = order(log, options, where, columns.get("n_gpus") == 1)
    _drop_absurd(ordered, log, where)
    series = {gpu: as_series(gpu, readings) for gpu, readings in ordered.items()}
    window = choose_window(series, log, options, steps_of.span(lines), where)
    row, notices = _row(series, window, log, columns)
    n_gpus = int(row["n_gpus"])
    samples = n_gpus * columns["local_batch"] * (columns.get("accum_steps") or 1)
    timing = steps_of.timing(lines, (window.start_s, window.end_s), columns, options.steps, samples)
    row |= {"step_time_s": timing.step_time_s, "step_time_std_s": timing.step_time_std_s, "steps": timing.steps}
    row |= {k: v for k, v in columns.items() if k not in ("steps", "step_time_s", "step_time_std_s")}
    row["limited_by"] = columns.get("limited_by") or _limit(row, ordered, window)
    notes = [f"window {window.length_s:.3f} s", *_notes(log, window)]
    said = [*skipped_notices(log.skipped), *log.notices, *window.notices, *notices, *timing.notices]
    return finish([row], facts | _known(log), paths, where, notes, said)


def _choose_gpus(log: Log, wanted: str | None, where: str) -> None:
    """Keep the GPUs of `--gpu-ids`: an index, a UUID, or the beginning of one."""
    if wanted is None:
        return
    chosen: set[str] = set()
    for word in (w.strip() for w in wanted.split(",")):
        fits = [gpu for gpu, f in log.facts.items() if _is(word, gpu, f)]
        if len(fits) != 1:
            known = ", ".join(f"{f.index} {gpu}" if f.index and f.index != gpu else gpu for gpu, f in log.facts.items())
            found = "names several GPUs" if fits else "is no GPU"
            raise UsageError(f"--gpu-ids: {word!r} {found} of {where}", f"it has: {known or 'no ids'}")
        chosen.add(fits[0])
    places = np.cumsum([r.gpu in chosen for r in log.readings], dtype=np.int64)
    log.marks = [(int(places[p - 1]) if p else 0, text) for p, text in log.marks]
    log.readings = [r for r in log.readings if r.gpu in chosen]
    log.facts = {gpu: f for gpu, f in log.facts.items() if gpu in chosen}


def _is(word: str, gpu: str, facts: GpuFacts) -> bool:
    short = word.upper().startswith(("GPU-", "MIG-")) and len(word) > 6 and gpu.upper().startswith(word.upper())
    return bool(word) and (word in (gpu, facts.index, facts.uuid, facts.bus_id) or short)


def _drop_absurd(ordered: Mapping[str, list[Reading]], log: Log, where: str) -> None:
    """Single impossible readings become unknown; where most are, the unit is wrong and the log is refused."""
    for gpu, readings in ordered.items():
        limit = log.facts[gpu].power_limit_w
        told = [r for r in readings if r.power_w is not None]
        bad = [(r, d) for r in told if r.power_w and (d := plausibility.power(r.power_w, limit)) and r.power_w > 1]
        if bad and 2 * len(bad) > len(told):
            raise InputError(f"{where}: line {bad[0][0].line}: power is {bad[0][1]}", "convert it to watts first")
        for reading, _ in bad:
            reading.power_w = None
        if bad:
            log.notices.append(f"{where}: {len(bad)} impossible power readings left out (line {bad[0][0].line})")


def _row(
    series: Mapping[str, Series], window: Window, log: Log, columns: Mapping[str, Any]
) -> tuple[dict[str, Any], list[str]]:
    notices: list[str] = []
    measured = [measure(s, window, notices) for s in series.values()]
    n_gpus = columns.get("n_gpus") or len(series)
    if n_gpus < len(series):
        raise UsageError(f"the log holds {len(series)} GPUs, --set n_gpus={n_gpus}", "say which with --gpu-ids 0,1")
    powers = [m.power_w for m in measured if m.power_w is not None]
    known = len(powers) == len(measured)
    sources = sorted({m.source for m in measured if m.source is not None})
    notices += _idle(series, measured)
    seen_all = n_gpus == len(series)
    if not seen_all:
        notices.append(f"{n_gpus} GPUs trained and {len(series)} were logged: the energy of all is unknown")
    names = {f.name for f in log.facts.values() if f.name}
    if len(names) > 1:
        raise InputError(f"the log holds GPUs of {len(names)} kinds: {', '.join(sorted(names))}",
                         "choose those that trained with --gpu-ids")  # fmt: skip
    hosts = [f.host for f in log.facts.values()]
    per_host = [n for host, n in Counter(hosts).items() if host is not None]
    clocks = [m.clock_mhz for m in measured if m.clock_mhz is not None]
    row: dict[str, Any] = {
        "device_name": next(iter(names), None),
        "n_gpus": n_gpus,
        "power_w": float(np.mean(powers)) if known else None,
        "power_spread_w": float(max(powers) - min(powers)) if known and len(powers) > 1 else None,
        "energy_j": float(sum(powers)) * window.length_s if known and seen_all else None,
        "energy_source": "/".join(sources) if known else None,
        "achieved_clock_mhz": float(np.median(clocks)) if clocks else None,
        "temperature_c": max((m.temperature_c for m in measured if m.temperature_c is not None), default=None),
        "memory_peak_bytes": max((m.memory_bytes for m in measured if m.memory_bytes is not None), default=None),
        "power_limit_w": min((f.power_limit_w for f in log.facts.values() if f.power_limit_w), default=None),
        "error": next((m.short for m in measured if m.short), None),
        "started_at": datetime.fromtimestamp(window.start_s, UTC) if window.start_s > 1e8 else None,
    }
    if None not in hosts and seen_all:
        row |= {"n_nodes": len(per_host), "placement": "-".join(map(str, sorted(per_host, reverse=True)))}
    return row, notices


def _idle(series: Mapping[str, Series], measured: Sequence[Measured]) -> list[str]:
    """GPUs of the log that hardly drew power while others did: perhaps they did not train."""
    powers = {gpu: m.power_w for gpu, m in zip(series, measured, strict=True) if m.power_w is not None}
    most = max(powers.values(), default=0.0)
    idle = {gpu: p for gpu, p in powers.items() if p < IDLE_SHARE * most}
    return [
        f"GPU {gpu} drew {p:.0f} W where another drew {most:.0f} W: if it did not train, leave it out with --gpu-ids"
        for gpu, p in idle.items()
    ]


def _limit(row: Mapping[str, Any], ordered: Mapping[str, list[Reading]], window: Window) -> str:
    """What limited the clock; ``unknown`` where the log neither names a cause nor lies at the power limit."""
    looks = [
        r.limits
        for readings in ordered.values()
        for r in readings
        if r.limits is not None and window.start_s <= (r.time_s or 0.0) <= window.end_s
    ]
    counted = Counter(name for look in looks for name in look)
    seen = {name: n / len(looks) for name, n in counted.items()}
    found = limited_by(
        row.get("requested_clock_mhz"), row["achieved_clock_mhz"], row["power_w"], row["power_limit_w"], seen
    )
    named = max(seen, key=lambda name: seen[name], default="unknown")
    if found == "unknown" and seen.get(named, 0.0) >= 0.5:
        return named  # the driver says so, though the clock itself was not logged
    asked = looks or row.get("requested_clock_mhz")
    return found if asked or found == "power" else "unknown"


def _known(log: Log) -> dict[str, Any]:
    """Facts of the machine that the log itself holds."""
    drivers = {f.driver_version for f in log.facts.values() if f.driver_version}
    known: dict[str, Any] = {"gpu_uuids": tuple(f.uuid for f in log.facts.values() if f.uuid)}
    if len(drivers) == 1:
        known["driver_version"] = drivers.pop()
    return known


def _notes(log: Log, window: Window) -> list[str]:
    zone = ["times are the log's own, read as UTC where it names no zone"] if window.start_s > 1e8 else []
    return [*zone, *(["MIG was on: power is the whole GPU's"] if any(f.mig for f in log.facts.values()) else [])]
