"""Train a workload for a number of steps, from checkpoint to checkpoint: what an exported schedule starts.

One process a rank, started by srun or torchrun; ranks find each other by RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT,
or by Slurm's variables. TERM writes the checkpoint and ends with 143.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
from collections.abc import Mapping, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

from pfprofile.errors import HardwareError, InputError, PfprofileError, UsageError
from pfprofile.hook import step as mark_step

TERMINATED = 143


def ranks_from(environment: Mapping[str, str]) -> tuple[int, int, int]:
    """(rank, world size, rank on this node) from torchrun's variables, else Slurm's.

    Raises:
        UsageError: they are no whole numbers or contradict each other.
    """
    names = (
        ("RANK", "SLURM_PROCID"),
        ("WORLD_SIZE", "SLURM_NTASKS"),
        ("LOCAL_RANK", "SLURM_LOCALID"),
    )
    try:
        rank, world, local = (
            int(next((environment[n] for n in group if n in environment), default))
            for group, default in zip(names, ("0", "1", "0"), strict=True)
        )
    except ValueError as error:
        raise UsageError(f"the rank's variables are no whole numbers: {error}") from None
    if not 0 <= rank < world:
        raise UsageError(f"rank {rank} of {world} cannot be", "unset RANK, or start all ranks by srun or torchrun")
    return rank, world, local


def _arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser("python -m pfprofile.train", description=__doc__.split("\n")[0] if __doc__ else "")
    parser.add_argument("workload", help="a zoo name, module:Class or file.py:Class")
    parser.add_argument("--first-step", type=int, default=0, help="steps done before, without a checkpoint")
    parser.add_argument("--last-step", type=int, required=True, help="train until so many steps are done")
    parser.add_argument("--local-batch", type=int, required=True)
    parser.add_argument("--accum-steps", type=int, default=1)
    parser.add_argument("--precision", choices=("fp32", "bf16"), default="fp32")
    parser.add_argument("--device", choices=("auto", "cuda", "cpu"), default="auto")
    parser.add_argument("--checkpoint", type=Path, help="read where it exists, written at the end and on TERM")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="a workload setting")
    parser.add_argument("--seed", type=int, default=0)
    return parser.parse_args(argv)


def main(argv: Sequence[str] | None = None) -> int:
    """Train; returns the exit code."""
    try:
        return _train(_arguments(argv), os.environ)
    except PfprofileError as error:
        sys.stderr.write(f"error: {error}\n")
        return error.exit_code


def _train(asked: argparse.Namespace, environment: Mapping[str, str]) -> int:
    import torch
    import torch.distributed as dist

    from pfprofile.train.resolve import load_workload, parse_workload
    from pfprofile.train.worker import Trainer
    from pfprofile.train.workload import describe, merged_settings

    rank, world, local = ranks_from(environment)
    device = asked.device
    if device == "auto":
        device = "cuda" if torch.cuda.is_available() else "cpu"
    elif device == "cuda" and not torch.cuda.is_available():
        raise HardwareError("--device cuda: torch sees no GPU here", "leave it out, or use --device cpu")
    workload = load_workload(parse_workload(asked.workload))
    given = dict(pair.partition("=")[::2] for pair in asked.set)
    settings = merged_settings(describe(workload, device).defaults, given)
    if world > 1:
        where = f"{environment.get('MASTER_ADDR', 'localhost')}:{environment.get('MASTER_PORT', '29500')}"
        dist.init_process_group(
            "nccl" if device == "cuda" else "gloo", rank=rank, world_size=world, timeout=timedelta(seconds=600),
            init_method=f"tcp://{where}",
        )  # fmt: skip
    stop: list[int] = []
    signal.signal(signal.SIGTERM, lambda number, _: stop.append(number))
    job = {
        "world_size": world, "accum_steps": asked.accum_steps, "device": device, "precision": asked.precision,
        "seed": asked.seed, "rank_offset": rank - local, "settings": settings, "local_batch": asked.local_batch,
    }  # fmt: skip
    trainer = Trainer(workload, job, local)
    done = max(asked.first_step, _load(trainer, asked.checkpoint))
    ended = False
    while done < asked.last_step and not ended:
        trainer.step()
        done += 1
        mark_step(samples=asked.local_batch * asked.accum_steps)
        # One rank's signal stops all, at the same step: else the others would wait for its gradients.
        ended = trainer.slowest([float(bool(stop))])[0] > 0
    trainer.wait()
    if rank == 0 and asked.checkpoint is not None:
        _save(trainer, asked.checkpoint, done)
    if world > 1:
        dist.destroy_process_group()
    sys.stderr.write(f"rank {rank} of {world}: {done} of {asked.last_step} steps are done\n")
    return TERMINATED if ended and done < asked.last_step else 0


def _module(trainer: Any) -> Any:
    return getattr(trainer.module, "module", trainer.module)


def _load(trainer: Any, path: Path | None) -> int:
    """Go on from a checkpoint; the steps that are done, 0 without one. Raises InputError: it does not fit."""
    import torch

    if path is None or not path.exists():
        return 0
    try:
        state = torch.load(path, map_location=trainer.device, weights_only=True)
        _module(trainer).load_state_dict(state["module"])
        trainer.optimizer.load_state_dict(state["optimizer"])
        return int(state["steps"])
    except (KeyError, RuntimeError, ValueError, TypeError) as error:
        first = str(error).strip().splitlines()[0]
        raise InputError(f"{path}: not a checkpoint of this workload: {first}", "move it away to start over") from None


def _save(trainer: Any, path: Path, steps: int) -> None:
    import torch

    path.parent.mkdir(parents=True, exist_ok=True)
    fresh = path.with_name(path.name + ".new")
    state = {"module": _module(trainer).state_dict(), "optimizer": trainer.optimizer.state_dict(), "steps": steps}
    torch.save(state, fresh)
    fresh.replace(path)
