"""What a workload's methods return, checked: a wrong kind would fail later, in words that name nobody."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import nn

from pfprofile.errors import InputError


def network_of(workload: Any, settings: dict[str, Any]) -> nn.Module:
    """The network, on the CPU. Raises InputError: it is no torch module."""
    module: nn.Module = _returned(workload, "build", workload.build(settings), nn.Module, "a torch.nn.Module")
    return module


def optimizer_of(workload: Any, module: nn.Module) -> torch.optim.Optimizer:
    """The optimizer over the network's parameters. Raises InputError: it is no torch optimizer."""
    made = workload.optimizer(module.parameters())
    optimizer: torch.optim.Optimizer = _returned(
        workload, "optimizer", made, torch.optim.Optimizer, "a torch.optim.Optimizer"
    )
    return optimizer


def batch_of(
    workload: Any, local_batch: int, settings: dict[str, Any], device: torch.device, generator: torch.Generator
) -> tuple[tuple[Any, ...], Any]:
    """Inputs (always a tuple) and targets of one forward pass. Raises InputError: they are no pair."""
    pair = workload.batch(local_batch, settings, device, generator)
    if not isinstance(pair, (tuple, list)) or len(pair) != 2:
        raise InputError(_words(workload, "batch", pair, "a pair (inputs, targets)"))
    inputs, targets = pair
    return inputs if isinstance(inputs, tuple) else (inputs,), targets


def checked_loss(workload: Any) -> Callable[[Any, Any], torch.Tensor]:
    """The workload's loss; what it returns is checked. Raises InputError, when called: it is no scalar tensor."""

    def loss(output: Any, targets: Any) -> torch.Tensor:
        value = workload.loss(output, targets)
        if not isinstance(value, torch.Tensor) or value.numel() != 1:
            shape = f"a tensor of shape {tuple(value.shape)}" if isinstance(value, torch.Tensor) else None
            raise InputError(_words(workload, "loss", value, "a tensor of one element", shape))
        return value

    return loss


def _returned(workload: Any, method: str, value: Any, kind: type, wanted: str) -> Any:
    if not isinstance(value, kind):
        raise InputError(_words(workload, method, value, wanted))
    return value


def _words(workload: Any, method: str, value: Any, wanted: str, got: str | None = None) -> str:
    got = got or ("nothing" if value is None else f"a {type(value).__name__}")
    return f"{type(workload).__name__}.{method} returned {got}, not {wanted}"
