"""One rank: builds the workload, then measures whenever it is told to. Runs in a process forked by the host."""

from __future__ import annotations

import contextlib
import os
import resource
import sys
import traceback
from dataclasses import asdict
from datetime import timedelta
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

from pfprofile.errors import PfprofileError
from pfprofile.train import timing
from pfprofile.train.build import batch_of, checked_loss, network_of, optimizer_of
from pfprofile.train.oom import is_out_of_memory
from pfprofile.train.process import LineReader, send
from pfprofile.train.resolve import WorkloadSpec, load_workload
from pfprofile.train.user_errors import error_words
from pfprofile.train.workload import describe, merged_settings

NOT_FINITE = "the loss is not finite: numbers that overflow may be computed at another power and speed"
DTYPES = {"fp32": None, "bf16": torch.bfloat16}


class Trainer:
    """A training loop over one fixed random batch; a `timing.Stepper`."""

    def __init__(self, workload: Any, job: dict[str, Any], rank: int) -> None:
        self.n_ranks = int(job["world_size"])
        self.accum_steps = int(job["accum_steps"])
        self.device = _device(getattr(workload, "torch_device", job["device"]), rank)
        self.dtype = DTYPES[job["precision"]]
        torch.manual_seed(job["seed"])
        generator = torch.Generator(self.device).manual_seed(job["seed"] + 1 + rank + job["rank_offset"])
        settings = job["settings"]
        module = network_of(workload, settings).to(self.device).train()
        self.module: Any = module
        if self.n_ranks > 1:
            ids = [self.device.index] if self.device.type == "cuda" else None
            self.module = DistributedDataParallel(module, device_ids=ids)
        self.optimizer = optimizer_of(workload, module)
        self.loss = checked_loss(workload)
        self._last_loss: torch.Tensor | None = None
        self.inputs, self.targets = batch_of(workload, int(job["local_batch"]), settings, self.device, generator)
        reset_peak(self.device)

    def step(self, synchronise: bool = True) -> None:
        """One optimizer step: gradients are synchronised in the last backward pass only."""
        for pass_ in range(self.accum_steps):
            local = self.n_ranks > 1 and (pass_ < self.accum_steps - 1 or not synchronise)
            with self.module.no_sync() if local else contextlib.nullcontext():
                with torch.autocast(self.device.type, self.dtype, enabled=self.dtype is not None):
                    loss: Any = self.loss(self.module(*self.inputs), self.targets)
                (loss / self.accum_steps).backward()
        self._last_loss = loss.detach()
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)

    def loss_is_finite(self) -> bool:
        """Whether the last step's loss is a number; not asked for in the window, where it would stall a device."""
        return self._last_loss is None or bool(torch.isfinite(self._last_loss).all())

    def wait(self) -> None:
        """Return when the device has done everything it was given."""
        if self.device.type == "cuda":
            torch.cuda.synchronize(self.device)

    def barrier(self) -> None:
        """Return when all ranks have come here (and their devices have)."""
        if self.n_ranks > 1:
            self.slowest([0.0])

    def agree(self, value: float) -> float:
        """Rank 0's value, on every rank."""
        if self.n_ranks == 1:
            return value
        shared = torch.tensor([value], dtype=torch.float64, device=self.device)
        dist.broadcast(shared, src=0)
        return float(shared.item())

    def slowest(self, values: list[float]) -> list[float]:
        """Elementwise maximum over the ranks."""
        if self.n_ranks == 1:
            return values
        shared = torch.tensor(values, dtype=torch.float64, device=self.device)
        dist.all_reduce(shared, op=dist.ReduceOp.MAX)
        return [float(v) for v in shared.tolist()]


def _device(kind: str, rank: int) -> torch.device:
    if kind != "cuda":
        return torch.device("cpu")
    torch.cuda.set_device(rank)
    return torch.device("cuda", rank)


def reset_peak(device: torch.device) -> None:
    """Forget the memory peak so far: what the import of torch took is not the workload's."""
    if device.type == "cuda":
        torch.cuda.reset_peak_memory_stats(device)
        return
    with contextlib.suppress(OSError):  # not allowed in some containers: then the peak is the process's whole life's
        Path("/proc/self/clear_refs").write_text("5", encoding="ascii")


def peak_bytes(device: torch.device) -> int:
    """Peak device memory; on a CPU the peak resident memory of this process."""
    if device.type == "cuda":
        return int(torch.cuda.max_memory_allocated(device))
    for line in Path("/proc/self/status").read_text(encoding="ascii").splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def run_rank(inlet: int, events: int, rank: int, store: str, job: dict[str, Any]) -> int:
    """Build, say "ready", then answer commands until the pipe closes. Returns the exit code."""
    number = job["set"]

    def tell(event: str, **body: Any) -> None:
        send(events, {"event": event, "set": number, "rank": rank + job["rank_offset"], **body})

    try:
        if job["threads"]:
            torch.set_num_threads(job["threads"])
        os.environ.update(job["environment"])
        workload = load_workload(WorkloadSpec(**job["workload"]))
        if job["describe"]:
            described = asdict(describe(workload, job["device"]))
            settings = merged_settings(described["defaults"], job["settings"])
            tell("described", **{**described, "settings": settings})
            return 0
        _join(job, rank, store, getattr(workload, "torch_device", job["device"]))
        trainer = Trainer(workload, job, rank)
        tell("ready")
        commands = LineReader(inlet)
        while (messages := commands.read()) is not None:
            for message in messages:
                _answer(trainer, message, tell)
    except PfprofileError as error:
        tell("error", kind="user", exit_code=error.exit_code, error=error.message, hint=error.hint)
        return 1
    except Exception as error:  # noqa: BLE001 (whatever a workload raises becomes a failed row)
        # A rank that runs out of memory frees nothing that could be used: the whole set ends here.
        kind = "oom" if is_out_of_memory(error) else "failed"
        sys.stderr.write(traceback.format_exc())
        tell("error", kind=kind, error=error_words(error, _own_file(job["workload"])))
        return 1
    return 0


def _own_file(workload: dict[str, str]) -> str | None:
    module = sys.modules.get(workload["target"])
    return workload["target"] if module is None else getattr(module, "__file__", None)


def _join(job: dict[str, Any], rank: int, store: str, device: str) -> None:
    if job["world_size"] == 1:
        return
    dist.init_process_group(
        "nccl" if device == "cuda" else "gloo",
        init_method=job["init_method"] or f"file://{store}",
        rank=rank + job["rank_offset"],
        world_size=job["world_size"],
        timeout=timedelta(seconds=job["deadline_s"]),
    )


def _answer(trainer: Trainer, message: dict[str, Any], tell: Any) -> None:
    result = timing.measure(
        trainer, window_s=message["window_s"], steps=message["steps"], distributed=trainer.n_ranks > 1
    )
    peak = trainer.slowest([float(peak_bytes(trainer.device))])[0]
    doubts = [] if trainer.loss_is_finite() else [NOT_FINITE]
    tell("result", **timing.as_message(result, memory_peak_bytes=int(peak), doubts=doubts))
