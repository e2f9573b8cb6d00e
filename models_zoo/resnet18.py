"""ResNet-18 (He et al., CVPR 2016, table 1): 11,689,512 parameters at 1000 classes."""

from __future__ import annotations

from torch import nn

from models_zoo._image import ImageClassification
from models_zoo._residual import residual_network
from pfprofile.train.workload import Settings


class ResNet18(ImageClassification):
    """Stages of 2, 2, 2, 2 basic blocks."""

    def network(self, settings: Settings) -> nn.Module:
        """The plain network."""
        return residual_network((2, 2, 2, 2), bottleneck=False, settings=settings)
