"""BERT-base, uncased (Devlin et al., NAACL 2019): 109,482,240 parameters in embeddings, encoder and pooler.

On top of them a sentence classifier, 2 × 768 + 2 = 1,538 parameters more: 109,483,778. Classifying is what BERT is
trained for most often, fine-tuned on GLUE, and it uses the pooler, which a masked-language-model head would leave
without a gradient. Our weights are random: the time and power of a step do not depend on them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, ClassVar

import torch
from torch import nn
from torch.nn import functional

from models_zoo._transformer import Layer, initialise
from pfprofile.train.workload import Facts, Settings

#: Positions that the published network has embeddings for.
POSITIONS = 512
NORM_EPS = 1e-12
DROPOUT = 0.1


class Encoder(nn.Module):
    """Three summed embeddings, the layers, and the pooler on the first token."""

    def __init__(self, settings: Settings) -> None:
        super().__init__()
        width = settings["width"]
        self.tokens = nn.Embedding(settings["vocabulary"], width)
        self.positions = nn.Embedding(max(POSITIONS, settings["sequence_length"]), width)
        self.segments = nn.Embedding(2, width)
        self.norm = nn.Sequential(nn.LayerNorm(width, NORM_EPS), nn.Dropout(DROPOUT))
        self.layers = nn.Sequential(*[
            Layer(width, norm_first=False, causal=False, gelu="none", norm_eps=NORM_EPS, dropout=DROPOUT)
            for _ in range(settings["layers"])
        ])  # fmt: skip
        self.pooler = nn.Sequential(nn.Linear(width, width), nn.Tanh())

    def forward(self, tokens: torch.Tensor, segments: torch.Tensor) -> torch.Tensor:
        """Token and segment ids, both (batch, length), → (batch, width)."""
        places = torch.arange(tokens.shape[1], device=tokens.device)
        x = self.norm(self.tokens(tokens) + self.positions(places) + self.segments(segments))
        out: torch.Tensor = self.pooler(self.layers(x)[:, 0])
        return out


class Classifier(nn.Module):
    """The encoder under a linear layer."""

    def __init__(self, settings: Settings) -> None:
        super().__init__()
        self.encoder = Encoder(settings)
        self.head = nn.Sequential(nn.Dropout(DROPOUT), nn.Linear(settings["width"], settings["classes"]))
        initialise(self)

    def forward(self, tokens: torch.Tensor, segments: torch.Tensor) -> torch.Tensor:
        """Token and segment ids, both (batch, length), → logits (batch, classes)."""
        out: torch.Tensor = self.head(self.encoder(tokens, segments))
        return out


class Bert:
    """Sentence classification with full sequences of ``sequence_length`` tokens, as GLUE's CoLA: no padding.

    A sample is one sequence. ``layers``, ``width`` (a multiple of 64), ``vocabulary`` and ``sequence_length`` make it
    small.
    """

    facts = Facts(
        sample_unit="sequence",
        samples_per_epoch=8_551,
        reference_local_batch=32,
        default_global_batch=32,
        source="CoLA train split (Warstadt et al., TACL 2019); batch 32 for GLUE: Devlin et al., 2019, section 4.1",
    )
    defaults: ClassVar[Mapping[str, Any]] = {
        "sequence_length": 128, "layers": 12, "width": 768, "vocabulary": 30_522, "classes": 2,
    }  # fmt: skip

    def build(self, settings: Settings) -> nn.Module:
        """The network with its classifier."""
        return Classifier(settings)

    def batch(
        self, local_batch: int, settings: Settings, device: torch.device, generator: torch.Generator
    ) -> tuple[tuple[torch.Tensor, torch.Tensor], torch.Tensor]:
        """Tokens (never 0, the padding) and two segments, each (batch, length); labels (batch,)."""
        shape = (local_batch, settings["sequence_length"])
        tokens = torch.randint(1, settings["vocabulary"], shape, device=device, generator=generator)
        segments = torch.zeros(shape, dtype=torch.long, device=device)
        segments[:, shape[1] // 2 :] = 1
        labels = torch.randint(settings["classes"], (local_batch,), device=device, generator=generator)
        return (tokens, segments), labels

    def loss(self, output: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        """Cross entropy."""
        return functional.cross_entropy(output, targets)

    def optimizer(self, parameters: Iterable[nn.Parameter]) -> torch.optim.Optimizer:
        """Adam with decoupled decay 0.01 at 1e-4, the rate for weights that start from random (appendix A.2)."""
        return torch.optim.AdamW(parameters, lr=1e-4, betas=(0.9, 0.999), weight_decay=0.01)
