"""Residual networks of He et al., *Deep Residual Learning for Image Recognition*, CVPR 2016, table 1."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import nn

from pfprofile.train.workload import Settings


def conv_norm(inside: int, outside: int, kernel: int, stride: int = 1) -> list[nn.Module]:
    """A convolution that keeps the size (divided by stride), without bias, and its batch norm."""
    return [
        nn.Conv2d(inside, outside, kernel, stride=stride, padding=kernel // 2, bias=False),
        nn.BatchNorm2d(outside),
    ]


class Residual(nn.Module):
    """relu(body(x) + shortcut(x)); the shortcut is a projection where the shape changes (option B)."""

    def __init__(self, body: Sequence[nn.Module], inside: int, outside: int, stride: int) -> None:
        super().__init__()
        self.body = nn.Sequential(*body)
        same = inside == outside and stride == 1
        self.shortcut = nn.Identity() if same else nn.Sequential(*conv_norm(inside, outside, 1, stride))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """(batch, inside, h, w) → (batch, outside, h / stride, w / stride)."""
        return torch.relu(self.body(x) + self.shortcut(x))


def basic_block(inside: int, width: int, stride: int) -> Residual:
    """Two 3 × 3 convolutions (figure 5, left)."""
    body = [*conv_norm(inside, width, 3, stride), nn.ReLU(inplace=True), *conv_norm(width, width, 3)]
    return Residual(body, inside, width, stride)


def bottleneck_block(inside: int, width: int, stride: int) -> Residual:
    """1 × 1, 3 × 3, 1 × 1 with a fourfold widening (figure 5, right); the stride sits in the 3 × 3, as in v1.5."""
    body = [
        *conv_norm(inside, width, 1), nn.ReLU(inplace=True),
        *conv_norm(width, width, 3, stride), nn.ReLU(inplace=True),
        *conv_norm(width, 4 * width, 1),
    ]  # fmt: skip
    return Residual(body, inside, 4 * width, stride)


def residual_network(depths: Sequence[int], bottleneck: bool, settings: Settings) -> nn.Sequential:
    """Stem, four stages of ``depths`` blocks, average pool, linear classifier.

    ``width`` (64 as published) is the first stage's; it doubles with each of the other three. The stem's max pool is
    left out for images under 64 pixels: they would reach the last stage as a single pixel, and batch norm cannot train
    on one value a channel.
    """
    channels = settings["width"]
    layers: list[nn.Module] = [*conv_norm(3, channels, 7, 2), nn.ReLU(inplace=True)]
    if settings["image_size"] >= 64:
        layers.append(nn.MaxPool2d(3, 2, 1))
    for stage, depth in enumerate(depths):
        width = settings["width"] * 2**stage
        for block in range(depth):
            stride = 2 if block == 0 and stage > 0 else 1
            layers.append((bottleneck_block if bottleneck else basic_block)(channels, width, stride))
            channels = width * (4 if bottleneck else 1)
    layers += [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(channels, settings["classes"])]
    return nn.Sequential(*layers)
