"""GPT-2 small (Radford et al., *Language Models are Unsupervised Multitask Learners*, 2019): 124,439,808 parameters.

The head shares the token embedding's weights, so they count once. Layers and widths are those of the smallest size in
table 2; its published count, 117 M, was corrected to 124 M by the authors' repository (openai/gpt-2).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any, ClassVar

import torch
from torch import nn
from torch.nn import functional

from models_zoo._transformer import Layer, initialise
from pfprofile.train.workload import Facts, Settings

#: What cross entropy leaves out.
IGNORED = -100
DROPOUT = 0.1
#: Tokens in OpenWebText's train split under GPT-2's own encoding, as counted by karpathy/nanoGPT.
OPENWEBTEXT_TOKENS = 9_035_582_198
SEQUENCE_LENGTH = 1024


class Network(nn.Module):
    """Token and position embeddings, layers with the norm first, a last norm, the tied head."""

    def __init__(self, settings: Settings) -> None:
        super().__init__()
        width = settings["width"]
        self.tokens = nn.Embedding(settings["vocabulary"], width)
        self.positions = nn.Embedding(settings["sequence_length"], width)
        self.dropout = nn.Dropout(DROPOUT)
        self.layers = nn.Sequential(*[
            Layer(width, norm_first=True, causal=True, gelu="tanh", norm_eps=1e-5, dropout=DROPOUT)
            for _ in range(settings["layers"])
        ])  # fmt: skip
        self.norm = nn.LayerNorm(width)
        initialise(self)
        # What is added to the residual path starts smaller the deeper the network is (section 2.3).
        for name, weight in self.layers.named_parameters():
            if name.endswith(("attention.0.project_out.weight", "perceptron.2.weight")):
                nn.init.normal_(weight, std=0.02 / math.sqrt(2 * settings["layers"]))

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        """Token ids (batch, length) → logits (batch, length, vocabulary)."""
        places = torch.arange(tokens.shape[1], device=tokens.device)
        x = self.dropout(self.tokens(tokens) + self.positions(places))
        return functional.linear(self.norm(self.layers(x)), self.tokens.weight)


class Gpt2:
    """Next-token prediction. A sample is one sequence of ``sequence_length`` tokens, at most 1024 as published.

    ``samples_per_epoch`` holds for the default length; `Gpt2Tokens` counts tokens, whatever their length.
    ``layers``, ``width`` (a multiple of 64), ``vocabulary`` and ``sequence_length`` make it small.
    """

    facts = Facts(
        sample_unit="sequence",
        samples_per_epoch=OPENWEBTEXT_TOKENS // SEQUENCE_LENGTH,
        reference_local_batch=12,
        default_global_batch=512,
        source="OpenWebText in place of the unpublished WebText, local batch 12: karpathy/nanoGPT; "
        "batch 512: Radford et al., 2019, section 2.3",
    )
    defaults: ClassVar[Mapping[str, Any]] = {
        "sequence_length": SEQUENCE_LENGTH, "layers": 12, "width": 768, "vocabulary": 50_257,
    }  # fmt: skip

    def build(self, settings: Settings) -> nn.Module:
        """The network."""
        return Network(settings)

    def batch(
        self, local_batch: int, settings: Settings, device: torch.device, generator: torch.Generator
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Tokens (batch, length), never 0, and each one's successor, (batch, length)."""
        shape = (local_batch, settings["sequence_length"] + 1)
        text = torch.randint(1, settings["vocabulary"], shape, device=device, generator=generator)
        return text[:, :-1].contiguous(), text[:, 1:].contiguous()

    def loss(self, output: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        """Cross entropy of each next token."""
        return functional.cross_entropy(output.flatten(0, 1), targets.flatten(), ignore_index=IGNORED)

    def optimizer(self, parameters: Iterable[nn.Parameter]) -> torch.optim.Optimizer:
        """AdamW at nanoGPT's rate and decay for this size; the paper gives neither."""
        return torch.optim.AdamW(parameters, lr=6e-4, betas=(0.9, 0.95), weight_decay=0.1)


class Gpt2Tokens(Gpt2):
    """The same network with the token as sample: throughput is tokens/s, a local batch is a number of tokens.

    ``local_batch`` tokens fill ceil(local_batch / sequence_length) sequences of equal length, so that any number can
    be asked for; the fewer than one token a sequence that rounding adds are computed but left out of the loss.
    """

    facts = Facts(
        sample_unit="token",
        samples_per_epoch=OPENWEBTEXT_TOKENS,
        reference_local_batch=12 * SEQUENCE_LENGTH,
        default_global_batch=512 * SEQUENCE_LENGTH,
        source=Gpt2.facts.source,
    )

    def batch(
        self, local_batch: int, settings: Settings, device: torch.device, generator: torch.Generator
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Tokens and successors, (sequences, length) with exactly ``local_batch`` successors that count."""
        sequences = math.ceil(local_batch / settings["sequence_length"])
        length = math.ceil(local_batch / sequences)
        inputs, targets = super().batch(sequences, {**settings, "sequence_length": length}, device, generator)
        targets.view(-1)[local_batch:] = IGNORED
        return inputs, targets
