"""VGG-16 (Simonyan and Zisserman, ICLR 2015, table 1, configuration D): 138,357,544 parameters at 1000 classes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, ClassVar

import torch
from torch import nn

from models_zoo._image import ImageClassification
from pfprofile.train.workload import Facts, Settings

#: Groups of 3 × 3 convolutions, as (how many, times the first group's channels); a 2 × 2 max pool follows each.
GROUPS = ((2, 1), (2, 2), (3, 4), (3, 8), (3, 8))


class Vgg16(ImageClassification):
    """13 convolutions without batch norm and three fully connected layers with dropout 0.5.

    Nine tenths of the parameters are in the fully connected layers: ``hidden`` (4096 as published), ``width`` (64) and
    ``image_size`` (from 32 pixels) make it small.
    """

    facts = Facts(
        sample_unit="image",
        samples_per_epoch=1_281_167,
        reference_local_batch=64,
        default_global_batch=256,
        source="ImageNet-1k train split; batch 256 over 4 GPUs: Simonyan and Zisserman, 2015, sections 3.1, 3.3",
    )
    defaults: ClassVar[Mapping[str, Any]] = {**ImageClassification.defaults, "hidden": 4096}
    smallest_image = 32

    def network(self, settings: Settings) -> nn.Module:
        """The plain network; weights keep the signal's height (He et al., ICCV 2015), the last layer's are small."""
        layers: list[nn.Module] = []
        channels = 3
        for depth, factor in GROUPS:
            width = settings["width"] * factor
            for _ in range(depth):
                layers += [nn.Conv2d(channels, width, 3, padding=1), nn.ReLU(inplace=True)]
                channels = width
            layers.append(nn.MaxPool2d(2))
        features = channels * (settings["image_size"] // 2 ** len(GROUPS)) ** 2
        hidden = settings["hidden"]
        layers += [
            nn.Flatten(),
            nn.Linear(features, hidden), nn.ReLU(inplace=True), nn.Dropout(0.5),
            nn.Linear(hidden, hidden), nn.ReLU(inplace=True), nn.Dropout(0.5),
            nn.Linear(hidden, settings["classes"]),
        ]  # fmt: skip
        module = nn.Sequential(*layers)
        for layer in module:
            if isinstance(layer, (nn.Conv2d, nn.Linear)):
                nn.init.kaiming_normal_(layer.weight, nonlinearity="relu")
                assert layer.bias is not None
                nn.init.zeros_(layer.bias)
        nn.init.normal_(module[-1].weight, std=0.01)  # type: ignore[arg-type]
        return module

    def optimizer(self, parameters: Iterable[nn.Parameter]) -> torch.optim.Optimizer:
        """SGD, momentum 0.9, weight decay 5e-4 (section 3.1), at a tenth of its rate: finite on random data."""
        return torch.optim.SGD(parameters, lr=0.001, momentum=0.9, weight_decay=5e-4)
