"""ResNet-50 (He et al., CVPR 2016, table 1): 25,557,032 parameters at 1000 classes."""

from __future__ import annotations

from torch import nn

from models_zoo._image import ImageClassification
from models_zoo._residual import residual_network
from pfprofile.train.workload import Settings


class ResNet50(ImageClassification):
    """Stages of 3, 4, 6, 3 bottleneck blocks."""

    def network(self, settings: Settings) -> nn.Module:
        """The plain network."""
        return residual_network((3, 4, 6, 3), bottleneck=True, settings=settings)
