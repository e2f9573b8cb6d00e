"""A workload of your own: ``pfprofile sweep examples/workload.py:Mlp --device cpu --gpus 1,2 --batch-sizes 8,32``.

Four methods are needed; ``facts`` and ``defaults`` may be left out.
"""

import torch
from torch import nn

from pfprofile.train.workload import Facts


class Mlp:
    """A small perceptron on random vectors."""

    facts = Facts(sample_unit="vector", samples_per_epoch=50_000, default_global_batch=256)
    # What --set KEY=VALUE may change, for example --set width=512.
    defaults = {"width": 256, "depth": 3}  # noqa: RUF012

    def build(self, settings):
        """The network, on the CPU; ranks move it to their device."""
        width = settings["width"]
        layers = [layer for _ in range(settings["depth"]) for layer in (nn.Linear(width, width), nn.ReLU())]
        return nn.Sequential(*layers, nn.Linear(width, 10))

    def batch(self, local_batch, settings, device, generator):
        """Random inputs, never zeros, and targets for one forward pass."""
        inputs = torch.randn(local_batch, settings["width"], device=device, generator=generator)
        return inputs, torch.randint(10, (local_batch,), device=device, generator=generator)

    def loss(self, output, targets):
        """A scalar to differentiate."""
        return nn.functional.cross_entropy(output, targets)

    def optimizer(self, parameters):
        """Any torch optimizer."""
        return torch.optim.AdamW(parameters, lr=1e-3)
