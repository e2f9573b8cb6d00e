"""Inception-v3 (Szegedy et al., *Rethinking the Inception Architecture for Computer Vision*, CVPR 2016, table 1).

27,161,264 parameters with the auxiliary classifier, 23,834,568 without it, at 1000 classes. The widths are those of the
authors' released network (TensorFlow models, slim/nets/inception_v3), which the paper's figures leave open.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, ClassVar

import torch
from torch import nn
from torch.nn import functional

from models_zoo._image import ImageClassification
from models_zoo._norm import ForgivingBatchNorm2d
from pfprofile.train.workload import Facts, Settings

#: The auxiliary classifier's part in the loss, as in the authors' released training script.
AUXILIARY_WEIGHT = 0.4
#: Side of the feature map from which the auxiliary classifier's own pooling leaves the 5 × 5 that it was made for.
AUXILIARY_SIDE = 17


class Conv(nn.Sequential):
    """Convolution without bias, batch norm, ReLU; ``kernel`` may be (height, width)."""

    def __init__(self, inside: int, outside: int, kernel: Any = 1, stride: int = 1, padding: Any = 0) -> None:
        super().__init__(
            nn.Conv2d(inside, outside, kernel, stride, padding, bias=False),
            ForgivingBatchNorm2d(outside, eps=0.001),
            nn.ReLU(inplace=True),
        )


class Branches(nn.Module):
    """Runs its branches on the same input and joins their channels."""

    def __init__(self, *branches: nn.Module) -> None:
        super().__init__()
        self.branches = nn.ModuleList(branches)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """(batch, inside, h, w) → (batch, the branches' channels together, h', w')."""
        return torch.cat([branch(x) for branch in self.branches], 1)


class Auxiliary(nn.Module):
    """The classifier on the side (figure 8): pool to 5 × 5, 1 × 1 and 5 × 5 convolutions, linear."""

    def __init__(self, inside: int, widths: tuple[int, int], classes: int) -> None:
        super().__init__()
        self.convolutions = nn.Sequential(Conv(inside, widths[0]), Conv(widths[0], widths[1], 5))
        self.classifier = nn.Linear(widths[1], classes)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """(batch, inside, h, w) → (batch, classes)."""
        large = min(x.shape[2:]) >= AUXILIARY_SIDE
        x = functional.avg_pool2d(x, 5, 3) if large else functional.adaptive_avg_pool2d(x, 5)
        x = self.convolutions(x).mean((2, 3))
        out: torch.Tensor = self.classifier(x)
        return out


def _pool(inside: int, outside: int) -> nn.Sequential:
    return nn.Sequential(nn.AvgPool2d(3, 1, 1), Conv(inside, outside))


def _chain(inside: int, *layers: tuple[int, Any, Any]) -> nn.Sequential:
    """Convolutions in a row, each (channels, kernel, padding)."""
    made = []
    for outside, kernel, padding in layers:
        made.append(Conv(inside, outside, kernel, padding=padding))
        inside = outside
    return nn.Sequential(*made)


def _figure_5(inside: int, pooled: int, w: Any) -> Branches:
    """Each 5 × 5 made of smaller ones; the released network keeps one 5 × 5."""
    return Branches(
        Conv(inside, w(64)),
        _chain(inside, (w(48), 1, 0), (w(64), 5, 2)),
        _chain(inside, (w(64), 1, 0), (w(96), 3, 1), (w(96), 3, 1)),
        _pool(inside, w(pooled)),
    )


def _figure_6(inside: int, c: int, w: Any) -> Branches:
    """n × n convolutions as 1 × n and n × 1, here with n = 7."""
    row, column = ((1, 7), (0, 3)), ((7, 1), (3, 0))
    return Branches(
        Conv(inside, w(192)),
        _chain(inside, (c, 1, 0), (c, *row), (w(192), *column)),
        _chain(inside, (c, 1, 0), (c, *column), (c, *row), (c, *column), (w(192), *row)),
        _pool(inside, w(192)),
    )


def _figure_7(inside: int, w: Any) -> Branches:
    """3 × 3 convolutions widened into 1 × 3 beside 3 × 1."""

    def fork() -> Branches:
        return Branches(
            Conv(w(384), w(384), (1, 3), padding=(0, 1)),
            Conv(w(384), w(384), (3, 1), padding=(1, 0)),
        )

    return Branches(
        Conv(inside, w(320)),
        nn.Sequential(Conv(inside, w(384)), fork()),
        nn.Sequential(_chain(inside, (w(448), 1, 0), (w(384), 3, 1)), fork()),
        _pool(inside, w(192)),
    )


class Network(nn.Module):
    """Stem, three kinds of inception modules, two reductions, classifier; ``width`` scales every layer (32 = 1)."""

    def __init__(self, settings: Settings) -> None:
        super().__init__()

        def w(channels: int) -> int:
            return max(1, channels * int(settings["width"]) // 32)

        stem = [Conv(3, w(32), 3, 2), Conv(w(32), w(32), 3), Conv(w(32), w(64), 3, padding=1), nn.MaxPool2d(3, 2)]
        stem += [Conv(w(64), w(80)), Conv(w(80), w(192), 3), nn.MaxPool2d(3, 2)]
        first = 2 * w(64) + w(96)
        second = first + w(64)
        middle = second + w(384) + w(96)
        last = w(320) + 4 * w(384) + w(192)
        halved = Branches(
            Conv(second, w(384), 3, 2),
            nn.Sequential(_chain(second, (w(64), 1, 0), (w(96), 3, 1)), Conv(w(96), w(96), 3, 2)),
            nn.MaxPool2d(3, 2),
        )
        sevens = [_figure_6(4 * w(192) if i else middle, w(c), w) for i, c in enumerate((128, 160, 160, 192))]
        self.front = nn.Sequential(
            *stem, _figure_5(w(192), 32, w), _figure_5(first + w(32), 64, w), _figure_5(second, 64, w), halved, *sevens
        )
        inside = 4 * w(192)
        self.auxiliary = Auxiliary(inside, (w(128), w(768)), settings["classes"]) if settings["auxiliary"] else None
        row, column = ((1, 7), (0, 3)), ((7, 1), (3, 0))
        quartered = Branches(
            nn.Sequential(Conv(inside, w(192)), Conv(w(192), w(320), 3, 2)),
            nn.Sequential(
                _chain(inside, (w(192), 1, 0), (w(192), *row), (w(192), *column)), Conv(w(192), w(192), 3, 2)
            ),
            nn.MaxPool2d(3, 2),
        )
        self.back = nn.Sequential(
            quartered, _figure_7(w(320) + w(192) + inside, w), _figure_7(last, w),
            nn.AdaptiveAvgPool2d(1), nn.Dropout(0.5), nn.Flatten(), nn.Linear(last, settings["classes"]),
        )  # fmt: skip

    def forward(self, images: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor | None]:
        """(batch, 3, h, w) → the logits (batch, classes) and the auxiliary ones, None without that classifier."""
        x = self.front(images)
        return self.back(x), None if self.auxiliary is None else self.auxiliary(x)


class InceptionV3(ImageClassification):
    """With the auxiliary classifier, as it is trained; ``auxiliary=false`` leaves it out. From 75 pixels."""

    facts = Facts(
        sample_unit="image",
        samples_per_epoch=1_281_167,
        reference_local_batch=32,
        default_global_batch=1600,
        source="ImageNet-1k train split; 50 replicas with a batch of 32 each: Szegedy et al., CVPR 2016, section 8",
    )
    defaults: ClassVar[Mapping[str, Any]] = {
        **ImageClassification.defaults, "image_size": 299, "width": 32, "auxiliary": True, "channels_last": True,
    }  # fmt: skip
    # On a CPU too: its many small convolutions took a quarter less time so (one EPYC core, fp32).
    smallest_image = 75

    def network(self, settings: Settings) -> nn.Module:
        """The plain network."""
        return Network(settings)

    def loss(self, output: Any, targets: torch.Tensor) -> torch.Tensor:
        """Cross entropy, and the auxiliary classifier's in part."""
        logits, auxiliary = output
        loss = functional.cross_entropy(logits, targets)
        return loss if auxiliary is None else loss + AUXILIARY_WEIGHT * functional.cross_entropy(auxiliary, targets)

    def optimizer(self, parameters: Iterable[nn.Parameter]) -> torch.optim.Optimizer:
        """RMSProp, decay 0.9, epsilon 1.0, rate 0.045 (section 8)."""
        return torch.optim.RMSprop(parameters, lr=0.045, alpha=0.9, eps=1.0)
