"""The transformer layer (Vaswani et al., NIPS 2017, section 3) in the two orders that BERT and GPT-2 use."""

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional

from pfprofile.errors import UsageError

#: Channels of one attention head in every published size of BERT and GPT-2.
HEAD_WIDTH = 64


def heads_of(width: int) -> int:
    """How many attention heads a width gives. Raises UsageError where it gives no whole number."""
    if width % HEAD_WIDTH:
        raise UsageError(f"width {width} is no multiple of {HEAD_WIDTH}, the width of an attention head")
    return width // HEAD_WIDTH


class Attention(nn.Module):
    """Multi-head self-attention, through torch's fused kernels where there are any."""

    def __init__(self, width: int, causal: bool, dropout: float) -> None:
        super().__init__()
        self.heads = heads_of(width)
        self.causal = causal
        self.project_in = nn.Linear(width, 3 * width)
        self.project_out = nn.Linear(width, width)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """(batch, length, width) → the same shape."""
        batch, length, width = x.shape
        q, k, v = self.project_in(x).view(batch, length, 3, self.heads, HEAD_WIDTH).permute(2, 0, 3, 1, 4)
        dropped = self.dropout.p if self.dropout.training else 0.0
        mixed = functional.scaled_dot_product_attention(q, k, v, dropout_p=dropped, is_causal=self.causal)
        out: torch.Tensor = self.project_out(mixed.transpose(1, 2).reshape(batch, length, width))
        return out


class Layer(nn.Module):
    """Attention and a fourfold wider perceptron, each with a residual connection.

    Args:
        width: channels of a token.
        norm_first: layer norm before each part (GPT-2), not after the addition (BERT).
        causal: tokens see only those before them.
        gelu: ``none`` for the exact function, ``tanh`` for the approximation.
        norm_eps: epsilon of the layer norms.
        dropout: probability, of attention weights and of each part's output.
    """

    def __init__(
        self, width: int, *, norm_first: bool, causal: bool, gelu: str, norm_eps: float, dropout: float
    ) -> None:
        super().__init__()
        self.norm_first = norm_first
        self.attention = nn.Sequential(Attention(width, causal, dropout), nn.Dropout(dropout))
        self.perceptron = nn.Sequential(
            nn.Linear(width, 4 * width), nn.GELU(gelu), nn.Linear(4 * width, width), nn.Dropout(dropout)
        )
        self.norms = nn.ModuleList([nn.LayerNorm(width, norm_eps), nn.LayerNorm(width, norm_eps)])

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """(batch, length, width) → the same shape."""
        for norm, part in zip(self.norms, (self.attention, self.perceptron), strict=True):
            x = x + part(norm(x)) if self.norm_first else norm(x + part(x))
        return x


def initialise(module: nn.Module, spread: float = 0.02) -> None:
    """Normal weights with standard deviation ``spread``, zero biases: what both papers start from."""
    for layer in module.modules():
        if isinstance(layer, (nn.Linear, nn.Embedding)):
            nn.init.normal_(layer.weight, std=spread)
        if isinstance(layer, nn.Linear) and layer.bias is not None:
            nn.init.zeros_(layer.bias)
