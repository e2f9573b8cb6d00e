"""A sweep that measures: device, host and journal around the one loop."""

from __future__ import annotations

import socket
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any

from pfprofile._version import __version__
from pfprofile.device import Device, open_device
from pfprofile.device.cpu import available_bytes
from pfprofile.device.restore import restore_clocks
from pfprofile.device.signals import interruptible
from pfprofile.errors import UsageError
from pfprofile.profile import Profile, ProfileMetadata
from pfprofile.profile.places import default_profile_path
from pfprofile.sweep.adaptive import Adaptive
from pfprofile.sweep.adaptive import describe as describe_adaptive
from pfprofile.sweep.chooser import BatchLimits, BatchSearch, Chooser, Grid, grid_order
from pfprofile.sweep.design import design
from pfprofile.sweep.engine import run_points
from pfprofile.sweep.estimate import Estimate, estimate
from pfprofile.sweep.journal import Journal, file_lock, open_journal, refuse_output
from pfprofile.sweep.live import LiveRunner, trial_seconds
from pfprofile.sweep.nodes import Follower
from pfprofile.sweep.outliers import outliers
from pfprofile.sweep.preflight import clocks_by_search, gpu_counts, refuse_company, try_lock, wanted_clocks
from pfprofile.sweep.request import Options, Outcome, Reporter, SweepRequest
from pfprofile.sweep.samples import SamplesFile
from pfprofile.sweep.space import Point, spread
from pfprofile.sweep.stop_rule import USUAL_POINTS
from pfprofile.sweep.subject import CPU_THREADS, Subject, own_command, own_workload
from pfprofile.sweep.surrogate import Machine
from pfprofile.train import Host, require_torch
from pfprofile.train.team import Place, follow, place_from
from pfprofile.units import counted

#: Least length of a measured window, s: a GPU's energy counter needs a second or more, a CPU has none to wait for.
WINDOW_S = {"cpu": 1.0, "cuda": 2.0}
#: What one trial costs beside its window (start, warm-up), s; only for the estimate of a dry run.
OVERHEAD_S = 3.0
#: More missed looks at the sensors than this part of those made are said.
MOST_MISSED = 0.1


def sweep_live(request: SweepRequest, reporter: Reporter) -> Outcome:
    """Measure a request's points. Raises: see `run.sweep`."""
    place = place_from()
    if place is not None and place.idle:
        return Outcome(None, None, role="another process speaks for this node")
    if place is not None and request.command is not None:
        raise UsageError(
            "--command is started once, not by a launcher of its own (RANK is set)", "let the command use {n_nodes}"
        )
    if request.command is not None:
        subject_of = own_command(request, reporter)
    else:
        subject_of = own_workload(request, reporter, place)
    with _opened(request) as device, interruptible():
        if device.kind != "cpu":
            for words in restore_clocks(insist=False):
                reporter.notice(words)
        if place is not None and place.node:
            return _follow(request, reporter, device, place)
        gpus = gpu_counts(request, device, reporter, place.n_nodes if place else 1)
        clocks = wanted_clocks(request, device, reporter)
        refuse_company(request, device, max(gpus) // (place.n_nodes if place else 1))
        if request.output is not None and not request.dry_run:
            refuse_output(request.output, force=request.force)
        with subject_of(device) as subject:
            output = request.output or default_profile_path(device.name, subject.source.name)
            if request.dry_run:
                return _dry_run(request, device, subject.source.name, gpus, clocks)
            with LiveRunner(device, subject.source) as runner, file_lock(output):
                clocks = try_lock(request, runner, clocks, reporter)
                chooser = _chooser(request, device, gpus, clocks)
                metadata = _metadata(request, device, subject, max(gpus), chooser, clocks)
                journal = open_journal(
                    output, metadata, explicit=request.output is not None, fresh=request.fresh, force=request.force,
                    retry_failed=request.retry_failed, allow_mixed=request.allow_mixed,
                )  # fmt: skip
                return _measure(request, reporter, device, chooser, runner, journal)


@contextmanager
def _opened(request: SweepRequest) -> Iterator[Device]:
    device = open_device(request.device)
    try:
        yield device
    finally:
        device.close()


def _follow(request: SweepRequest, reporter: Reporter, device: Device, place: Place) -> Outcome:
    """What a node other than the first does: train its share and tell what its devices drew."""
    require_torch()
    line = follow(place)
    try:
        with Host(CPU_THREADS if device.kind == "cpu" else 0) as host:
            measured = Follower(place, device, host, line).run()
    finally:
        line.close()
    return Outcome(None, None, role=f"node {place.node} measured {measured} windows; node 0 wrote the profile")


def _chooser(request: SweepRequest, device: Device, gpus: Sequence[int], clocks: Sequence[float | None]) -> Chooser:
    repeats, accum = request.repeats or 1, request.accum_steps or (1,)
    place = place_from()
    nodes = place.n_nodes if place else 1
    space: list[Point] | BatchSearch
    if request.batch_sizes is None:
        limits = BatchLimits()
        if device.kind == "cpu":
            # Filling a machine's memory would take others' with it.
            limits = BatchLimits(most_step_s=5.0, most_bytes=0.5 * available_bytes())
        space = BatchSearch(gpus, clocks, accum, repeats=repeats, seed=request.seed, limits=limits, n_nodes=nodes)
    else:
        space = [Point(n, b, c, a, nodes) for n in gpus for b in request.batch_sizes for a in accum for c in clocks]
    choose = clocks_by_search(request) and len(clocks) > 1
    if not choose and request.max_points is None:
        return space if isinstance(space, BatchSearch) else Grid(grid_order(space, repeats=repeats, seed=request.seed))
    machine = Machine(device.name, device.default_clock_mhz, device.supported_clocks_mhz, device.power_limit_w)
    return Adaptive(
        space, machine, choose_clocks=choose, budget=request.max_points, repeats=lambda _: repeats, seed=request.seed
    )


def _dry_run(
    request: SweepRequest, device: Device, name: str, gpus: Sequence[int], clocks: Sequence[float | None]
) -> Outcome:
    known = [c for c in clocks if c is not None]
    if clocks_by_search(request) and known:
        clocks = [*spread(known)]  # as many as auto measures at most; which ones, only the rows will tell
    batches = request.batch_sizes or (1,)
    order = [Point(n, b, c, a) for n in gpus for b in batches for a in request.accum_steps or (1,) for c in clocks]
    if request.max_points is not None:
        order = design(order, USUAL_POINTS if request.max_points == "auto" else request.max_points, request.seed)
    order = [p for p, _ in grid_order(order, repeats=request.repeats or 1, seed=request.seed)]
    return Outcome(None, None, planned=tuple(order), estimate=_estimate(request, device, name, order))


def _estimate(request: SweepRequest, device: Device, name: str, order: Sequence[Point]) -> Estimate:
    window_s = request.window_s or WINDOW_S[device.kind]
    if request.batch_sizes is None:
        time_s = len(order) * (window_s + OVERHEAD_S)
        return Estimate(time_s, None, "for one batch each; energy unknown: the batches are found on the way")
    return estimate(order, name, device.name, window_s, request.steps, OVERHEAD_S)


def _metadata(
    request: SweepRequest, device: Device, subject: Subject, most: int, chooser: Chooser,
    clocks: Sequence[float | None],
) -> ProfileMetadata:  # fmt: skip
    settings, source = subject.settings, subject.source
    place = place_from()
    nodes = place.n_nodes if place else 1
    identity = {
        "kind": "live", "device_name": device.name, "workload": source.name, "precision": source.precision,
        "settings": settings, "driver_version": device.driver_version, "torch_version": subject.torch_version,
    }  # fmt: skip
    requested: Any = "batch sizes by search"
    if isinstance(chooser, Grid):
        requested = [[p.n_gpus, p.local_batch, p.accum_steps, p.sm_clock_mhz] for p in chooser.points]
    elif isinstance(chooser, Adaptive):
        requested = describe_adaptive(request.max_points, clocks)
    return ProfileMetadata(
        source="measured", tool_version=__version__, argv=request.argv, seed=request.seed,
        started_at=datetime.now(UTC).isoformat(timespec="seconds"), host=socket.gethostname(),
        driver_version=device.driver_version, torch_version=subject.torch_version, cuda_version=subject.cuda_version,
        gpu_name=device.name, gpu_uuids=device.uuids, power_limit_w=device.power_limit_w,
        power_limit_range_w=device.power_limit_range_w, supported_clocks_mhz=device.supported_clocks_mhz,
        default_clock_mhz=device.default_clock_mhz, gpus_per_node=max(device.count, most // nodes),
        workload=subject.facts, settings=settings,
        sweep={"identity": identity, "requested": requested, "repeats": request.repeats or 1, "finished": False,
               "window": {"steps": request.steps, "window_s": request.window_s or WINDOW_S[device.kind]}},
    )  # fmt: skip


def _measure(
    request: SweepRequest, reporter: Reporter, device: Device, chooser: Chooser, runner: LiveRunner, journal: Journal
) -> Outcome:
    options = Options(request.steps, request.window_s or WINDOW_S[device.kind], request.timeout_s)
    finished, said = True, len(journal.notices)
    for words in journal.notices:
        reporter.notice(words)
    if chooser.next_point(journal.rows) is not None:
        if journal.kept:
            there = counted(journal.kept, "trial")
            reporter.notice(f"{journal.working}: {there} from before {'is' if journal.kept == 1 else 'are'} kept")
            pace = trial_seconds(journal.rows)
            if pace is not None:
                reporter.notice(f"about {chooser.left(journal.rows) * pace:.0f} s are left")
        file = SamplesFile(journal.path, {r["trial_id"] for r in journal.rows}) if request.samples else None

        def keep(trial_id: str) -> None:
            if file is not None:
                file.add(trial_id, runner.samples)

        finished = run_points(chooser, runner, journal, options, reporter, request.max_time_s, keep)
    skipped = chooser.skipped(journal.rows)
    if skipped:
        reporter.notice(f"{counted(skipped, 'trial')} left out: a smaller batch on as many GPUs ran out of memory")
    for words in chooser.reasons(journal.rows) if finished else ():
        reporter.notice(words)
    journal.mark(_marked(journal, reporter))
    _tell_sampling(runner, journal, reporter)
    new = len(journal.rows) - journal.kept
    if new or not (journal.metadata.sweep or {}).get("finished"):
        profile = journal.write(finished=finished)
    else:
        profile = Profile.from_rows(journal.rows, journal.metadata)
    for words in journal.notices[said:]:
        reporter.notice(words)
    by_search = isinstance(chooser, BatchSearch) or (isinstance(chooser, Adaptive) and chooser.searches_batches)
    expected = {"ok", "oom"} if by_search else {"ok"}
    failed = sum(row["status"] not in expected for row in journal.rows)
    # An unfinished sweep over an older result stays beside it.
    asked = set(chooser.points) if isinstance(chooser, Grid) else None
    of_request = None if asked is None else sum(Point.of_row(row) in asked for row in journal.rows)
    return Outcome(
        journal.working, profile, new=new, failed=failed, finished=finished, of_request=of_request
    )  # fmt: skip


def _tell_sampling(runner: LiveRunner, journal: Journal, reporter: Reporter) -> None:
    """How sampling went goes into the metadata; what is wrong with it is said."""
    found = runner.sampling
    if found:
        journal.note(sampling=found)
    if runner.sampling_trouble:
        reporter.notice(f"{runner.sampling_trouble}: sensors were read by a thread, which is less punctual")
    if found and found["missed"] > MOST_MISSED * found["looks"]:
        share = found["missed"] / (found["missed"] + found["looks"])
        reporter.notice(f"{share:.0%} of the looks at the sensors came too late and were left out: a busy machine?")


def _marked(journal: Journal, reporter: Reporter) -> list[dict[str, Any]]:
    """Repeats that disagree with the others of their point; each is said."""
    found = outliers(journal.rows)
    for mark in found:
        reporter.notice(
            f"trial {mark['trial_id']}: its {mark['column']} is {mark['deviation']:+.0%} off the median of "
            "its repeats; it is kept and marked"
        )
    return found
