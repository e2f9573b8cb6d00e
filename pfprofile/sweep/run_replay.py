"""A sweep answered from a recording: same flags, same file, no device."""

from __future__ import annotations

from pathlib import Path

from pfprofile._version import __version__
from pfprofile.errors import InputError, UsageError
from pfprofile.profile import Profile, ProfileMetadata, read_profile
from pfprofile.profile.places import default_profile_path, find_profile, shipped
from pfprofile.sweep.adaptive import Adaptive
from pfprofile.sweep.estimate import Estimate
from pfprofile.sweep.journal import file_lock, open_journal
from pfprofile.sweep.replay import ReplayRunner, choose_recorded
from pfprofile.sweep.request import Options, Outcome, Reporter, SweepRequest
from pfprofile.sweep.space import Point, Row
from pfprofile.sweep.surrogate import Machine
from pfprofile.units import counted, format_duration


def sweep_replay(request: SweepRequest, reporter: Reporter) -> Outcome:
    """Answer a request from a recording. Raises: see `run.sweep`."""
    assert request.replay is not None
    _refuse_live_flags(request)
    path = find_profile(request.replay)
    recording = read_profile(path)
    name = next((n for n, p in shipped(".parquet").items() if p.resolve() == path.resolve()), path.name)
    _check_subject(recording, request, name)
    runner = ReplayRunner(recording, name)
    points = choose_recorded(runner, request, recording.metadata.default_clock_mhz)
    order = _order(points, runner, request)
    answers = _answers(points, order, recording, runner, request, reporter)
    order = [Point.of_row(row) for row in answers]
    if request.dry_run:
        return Outcome(None, None, planned=tuple(order), estimate=_recorded_cost(answers))
    workload, device = _only(recording, "workload"), _only(recording, "device_name")
    output = request.output or default_profile_path(device, workload)
    if output.exists() and output.samefile(path):
        reporter.notice(f"{output} is the recording itself and stays as it is; give -o for a copy of what was asked")
        return Outcome(output, recording, finished=True)
    metadata = _metadata(recording, request, name, order)
    with file_lock(output):
        journal = open_journal(
            output, metadata, explicit=request.output is not None, fresh=request.fresh, force=request.force
        )
        held = {row["trial_id"] for row in journal.rows}
        new = [row for row in answers if row["trial_id"] not in held]
        if journal.kept and not new:
            return Outcome(output, Profile.from_rows(journal.rows, journal.metadata), finished=True)
        journal.rows += new
        profile = journal.write(finished=True)
    for words in journal.notices:
        reporter.notice(words)
    failed = sum(row["status"] != "ok" for row in journal.rows)
    if failed:
        reporter.notice(f"kept, though not ended well when measured: {counted(failed, 'recorded trial')}")
    return Outcome(output, profile, new=len(new), finished=True)


def _refuse_live_flags(request: SweepRequest) -> None:
    given = {
        "--steps": request.steps is not None,
        "--require-clocks": request.require_clocks,
        "--shared": request.shared,
        "--retry-failed": request.retry_failed,
        "--command": request.command is not None,
        "--throughput-regex": request.throughput_regex is not None,
        "--set": bool(request.settings),
    }
    wrong = [flag for flag, is_given in given.items() if is_given]
    if wrong:
        raise UsageError(f"{wrong[0]} means nothing with --replay: nothing is measured", f"leave {wrong[0]} out")


def _only(recording: Profile, column: str) -> str:
    values = recording.unique(column)
    if len(values) != 1:
        raise InputError(
            f"the recording holds {len(values)} different values of {column}: {', '.join(map(str, values)) or 'none'}",
            "replay a profile of one",
        )
    return str(values[0])


def _check_subject(recording: Profile, request: SweepRequest, name: str) -> None:
    workload = _only(recording, "workload")
    if request.workload is not None and request.workload != workload:
        raise InputError(f"{name} is a recording of {workload}, not of {request.workload}", f"sweep {workload}")
    precisions = recording.unique("precision")
    if request.precision is not None and precisions != [request.precision]:
        raise InputError(f"{name} was recorded in {', '.join(precisions)}, not in {request.precision}")


def _order(points: list[Point], runner: ReplayRunner, request: SweepRequest) -> list[Point]:
    if request.repeats is not None:
        short = [p for p in points if runner.repeats(p) < (request.repeats or 0)]
        if short:
            raise InputError(
                f"{runner.name} has fewer than {request.repeats} trials of {len(short)} points, first {short[0]}",
                f"it holds {runner.repeats(short[0])} of it: leave --repeats out for all that are recorded",
            )
    return [p for p in points for _ in range(request.repeats or runner.repeats(p))]


def _answers(
    points: list[Point], order: list[Point], recording: Profile, runner: ReplayRunner, request: SweepRequest,
    reporter: Reporter,
) -> list[Row]:  # fmt: skip
    """The recorded trials that a request means: all of them, or those that an adaptive sweep picks on the way."""
    options = Options(steps=None, window_s=0.0, timeout_s=0.0)
    clocks = {p.sm_clock_mhz for p in points if p.sm_clock_mhz is not None}
    choose = (request.freqs or "").strip().lower() == "auto" and len(clocks) > 1
    if not choose and request.max_points is None:
        return [runner.run(point, options) for point in order]
    about = recording.metadata
    device, clocks_there = _only(recording, "device_name"), about.supported_clocks_mhz
    chooser = Adaptive(
        list(dict.fromkeys(points)), Machine(device, about.default_clock_mhz, clocks_there, about.power_limit_w),
        choose_clocks=choose, budget=request.max_points,
        repeats=lambda p: request.repeats or runner.repeats(p), seed=request.seed,
    )  # fmt: skip
    rows: list[Row] = []
    while ahead := chooser.ahead(rows):
        rows += [runner.run(point, options) for point in ahead]
    for words in chooser.reasons(rows):
        reporter.notice(words)
    there = len(set(points))
    picked = len({Point.of_row(row) for row in rows})
    reporter.notice(
        f"{picked} of the {there} recorded points are used: {there - picked} ({1 - picked / there:.0%}) need not be "
        "measured" + _saved(recording, rows, set(points))
    )
    return rows


def _recorded_cost(rows: list[Row]) -> Estimate:
    """What the trials that answer cost when they were measured."""
    good = [r for r in rows if r["status"] == "ok"]
    known = all(r["energy_j"] is not None for r in good)
    basis = "is what their windows took when they were measured" if known else "energy unknown: it is not recorded"
    return Estimate(0.0, sum(r["energy_j"] for r in good) if known else None, basis)


def _saved(recording: Profile, rows: list[Row], points: set[Point]) -> str:
    """What the windows that are left out took, where the recording tells."""
    meant = [r for r in recording.rows() if Point.of_row(r) in points]

    def window_s(some: list[Row]) -> float | None:
        known = [r["steps"] * r["step_time_s"] for r in some if r["steps"] and r["step_time_s"]]
        return sum(known) if len(known) == len(some) else None

    whole, used = window_s(meant), window_s(rows)
    if whole is None or used is None:
        return ""
    return f", {format_duration(whole - used)} of measured windows"


def _metadata(recording: Profile, request: SweepRequest, name: str, order: list[Point]) -> ProfileMetadata:
    digest = recording.digest()
    identity = {"kind": "replay", "recording": digest}
    sweep = {"identity": identity, "requested": [list(_key(p)) for p in dict.fromkeys(order)], "finished": False}
    return recording.metadata.with_(
        replayed_from={"name": Path(name).name if name.endswith(".parquet") else name, "digest": digest},
        argv=request.argv, tool_version=__version__, sweep=sweep,
    )  # fmt: skip


def _key(point: Point) -> tuple[object, ...]:
    return point.n_gpus, point.local_batch, point.accum_steps, point.sm_clock_mhz
