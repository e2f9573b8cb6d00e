"""Batch norm that can also train where a batch holds one value a channel."""

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional


class ForgivingBatchNorm2d(nn.BatchNorm2d):
    """One value a channel has no variance, and torch refuses it: here the running statistics normalise it.

    So that a sweep can begin at a local batch of one where a feature map has shrunk to a single pixel.
    """

    def forward(self, input: torch.Tensor) -> torch.Tensor:
        """(batch, channels, h, w), normalised."""
        if self.training and input.numel() == input.shape[1]:
            return functional.batch_norm(
                input, self.running_mean, self.running_var, self.weight, self.bias, False, 0.0, self.eps
            )
        return super().forward(input)
