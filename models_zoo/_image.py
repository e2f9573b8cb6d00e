"""What the image classifiers share: ImageNet-shaped random data, cross entropy, SGD with momentum."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, ClassVar

import torch
from torch import nn
from torch.nn import functional

from pfprofile.errors import UsageError
from pfprofile.train.workload import Facts, Settings


class ImageClassification:
    """ImageNet-1k classification: 1,281,167 training images of 1000 classes (Russakovsky et al., IJCV 2015)."""

    facts = Facts(
        sample_unit="image",
        samples_per_epoch=1_281_167,
        reference_local_batch=32,
        default_global_batch=256,
        source="ImageNet-1k train split; batch 256 over 8 GPUs: He et al., CVPR 2016, section 3.4",
    )
    defaults: ClassVar[Mapping[str, Any]] = {"image_size": 224, "width": 64, "classes": 1000, "channels_last": False}
    smallest_image: ClassVar[int] = 1
    #: Tensor cores read NHWC natively (PyTorch's channels-last tutorial); without them NCHW is as fast or faster.
    defaults_on: ClassVar[Mapping[str, Mapping[str, Any]]] = {"cuda": {"channels_last": True}}

    def build(self, settings: Settings) -> nn.Module:
        """The network; in channels_last memory format where asked for."""
        least = self.smallest_image
        if settings["image_size"] < least:
            raise UsageError(f"image_size {settings['image_size']} is too small", f"it takes at least {least} pixels")
        module = self.network(settings)
        if settings["channels_last"]:
            module = module.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
        return module

    def network(self, settings: Settings) -> nn.Module:
        """The plain network, made by each model's file."""
        raise TypeError(f"{type(self).__name__} has no network")

    def batch(
        self, local_batch: int, settings: Settings, device: torch.device, generator: torch.Generator
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Normal images (batch, 3, size, size) and uniform class labels (batch,)."""
        size = int(settings["image_size"])
        images = torch.randn(local_batch, 3, size, size, device=device, generator=generator)
        if settings["channels_last"]:
            images = images.contiguous(memory_format=torch.channels_last)
        labels = torch.randint(int(settings["classes"]), (local_batch,), device=device, generator=generator)
        return images, labels

    def loss(self, output: Any, targets: torch.Tensor) -> torch.Tensor:
        """Cross entropy."""
        return functional.cross_entropy(output, targets)

    def optimizer(self, parameters: Iterable[nn.Parameter]) -> torch.optim.Optimizer:
        """SGD, momentum 0.9, weight decay 1e-4 (He et al.), at a rate that keeps random data finite."""
        return torch.optim.SGD(parameters, lr=0.01, momentum=0.9, weight_decay=1e-4)
