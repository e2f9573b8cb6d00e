"""A tiny workload whose batch size chooses how it fails."""

import os
import signal
import time
from typing import ClassVar

import torch
from torch import nn

HANG, KILLED, RAISES, TOO_LARGE = 3, 5, 6, 8


class Tiny:
    """One linear layer; computed on the CPU whatever device is measured."""

    torch_device = "cpu"
    defaults: ClassVar = {"width": 8}

    def build(self, settings):
        return nn.Linear(settings["width"], 4)

    def batch(self, local_batch, settings, device, generator):
        inputs = torch.randn(local_batch, settings["width"], device=device, generator=generator)
        return inputs, torch.randn(local_batch, 4, device=device, generator=generator)

    def loss(self, output, targets):
        return nn.functional.mse_loss(output, targets)

    def optimizer(self, parameters):
        return torch.optim.SGD(parameters, lr=0.01)


class Slow(Tiny):
    """Steps long enough for a signal to arrive in between."""

    def loss(self, output, targets):
        time.sleep(0.08)
        return super().loss(output, targets)


class Faulty(Tiny):
    """Fails in the third step of the last rank."""

    steps = 0

    def loss(self, output, targets):
        self.steps += 1
        rank = torch.distributed.get_rank() if torch.distributed.is_initialized() else 0
        last = torch.distributed.get_world_size() - 1 if torch.distributed.is_initialized() else 0
        if self.steps == 3 and rank == last:
            batch = len(output)
            if batch == HANG:
                time.sleep(3600)
            if batch == KILLED:
                os.kill(os.getpid(), signal.SIGKILL)
            if batch == RAISES:
                raise ValueError("the data is odd")
            if batch >= TOO_LARGE:
                raise torch.cuda.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB")
        return super().loss(output, targets)


class Overflowing(Tiny):
    """Trains on, with a loss that is no number."""

    def loss(self, output, targets):
        return super().loss(output, targets) * float("nan")


class Lacking:
    """No workload: it has no loss and a batch of the wrong shape."""

    def build(self, settings):
        return nn.Linear(1, 1)

    def batch(self, local_batch):
        return None

    def optimizer(self, parameters):
        return torch.optim.SGD(parameters, lr=0.01)
