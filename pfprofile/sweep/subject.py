"""What a sweep trains: a workload by ranks of ours, or a command of one's own."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, fields
from typing import Any

from pfprofile.device import Device
from pfprofile.errors import HardwareError, UsageError, nearest
from pfprofile.profile import WorkloadFacts
from pfprofile.sweep.nodes import TeamRanks
from pfprofile.sweep.request import Reporter, SweepRequest
from pfprofile.sweep.sources import Command, Job, Ranks, TrialSource
from pfprofile.train import Host, describe, parse_workload, require_torch
from pfprofile.train.command import CommandTemplate
from pfprofile.train.team import Leader, Place

#: One rank computes on one core, as a rank on a GPU machine computes on one GPU.
CPU_THREADS = 1


@dataclass(frozen=True, slots=True)
class Subject:
    """What is swept: where its trials come from, and what the profile says of it."""

    source: TrialSource
    settings: dict[str, Any]
    facts: WorkloadFacts
    torch_version: str | None = None
    cuda_version: str | None = None


Opening = Callable[[Device], AbstractContextManager[Subject]]


def own_workload(request: SweepRequest, reporter: Reporter, place: Place | None) -> Opening:
    """A zoo model or a class of one's own, trained by ranks of ours."""
    assert request.workload is not None
    spec = parse_workload(request.workload)

    @contextmanager
    def subject(device: Device) -> Iterator[Subject]:
        require_torch()
        # Importing torch and building the network takes seconds to tens of seconds.
        reporter.notice(f"starting {spec.name} on {device.name}")
        with Host(CPU_THREADS if device.kind == "cpu" else 0) as host:
            told = describe(host, spec, request.settings, device.kind)
            if device.kind == "cuda" and host.cuda_version is None and told["torch_device"] is None:
                raise HardwareError(
                    f"torch {host.torch_version} is a build without CUDA", "install one with CUDA, or use --device cpu"
                )
            job = Job(spec, spec.name, told["settings"], request.precision or "fp32", request.seed)
            threads = {"threads_per_rank": CPU_THREADS} if device.kind == "cpu" else {}
            team = nullcontext(None) if place is None else Leader(place)
            with team as leader:
                ranks = Ranks(device, host, job) if leader is None else TeamRanks(device, host, job, leader)
                yield Subject(
                ranks, {**job.settings, **threads}, WorkloadFacts(**told["facts"]),
                host.torch_version, host.cuda_version,
            )  # fmt: skip

    return subject


def own_command(request: SweepRequest, reporter: Reporter) -> Opening:
    """A command of one's own. Raises UsageError before any device is touched."""
    assert request.command is not None
    template = CommandTemplate.parse(request.command, request.throughput_regex)
    batches = request.batch_sizes
    if not template.uses("local_batch") and not template.uses("global_batch") and (batches is None or len(batches) > 1):
        raise UsageError("--command does not use {local_batch}: all batch sizes would be the same run",
                         "put {local_batch} into the command, or give one --batch-sizes")  # fmt: skip
    facts = WorkloadFacts(**_command_facts(request.settings))
    settings: dict[str, Any] = {"command": request.command}
    if request.throughput_regex is not None:
        settings["throughput_regex"] = request.throughput_regex

    @contextmanager
    def subject(device: Device) -> Iterator[Subject]:
        name = request.workload or template.name
        yield Subject(Command(device, template, name, request.precision or "fp32", reporter.notice), settings, facts)

    return subject


def _command_facts(given: dict[str, str]) -> dict[str, Any]:
    """What --set says of a command's workload. Raises UsageError: not such a fact, or not a whole number."""
    facts: dict[str, Any] = {}
    known = [f.name for f in fields(WorkloadFacts)]
    for key, text in given.items():
        if key not in known:
            raise UsageError(f"--set {key}: with --command only facts can be set{nearest(key, known)}",
                             f"one of {', '.join(known)}")  # fmt: skip
        if key != "sample_unit" and not (text.isdigit() and int(text)):
            raise UsageError(f"--set {key}={text}: expected a whole number from 1 on")
        facts[key] = text if key == "sample_unit" else int(text)
    return facts
