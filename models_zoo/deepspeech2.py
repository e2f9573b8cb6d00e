"""Deep Speech 2 (Amodei et al., ICML 2016): two 2-D convolutions, five bidirectional GRU layers of 800, CTC.

The paper tries many depths, at 38 million parameters each (its table 1), and publishes no single one. This is the
variant that MLPerf Training v0.5 fixed as its reference (mlcommons/training, speech_recognition): 32 channels of
41 × 11 and 21 × 11 without padding, the two directions summed, batch norm over batch and time between the layers, 29
characters. By its shapes 38,115,968 parameters:

    convolutions (41·11·1 + 1)·32 + (21·11·32 + 1)·32 and two norms 2·32    =    251,168
    first GRU    2·3·800·(672 + 800 + 2)                                    =  7,075,200
    four GRUs    4·(2·3·800·(800 + 800 + 2) + a norm 2·800)                 = 30,764,800
    classifier   a norm 2·800 and 800·29                                    =     24,800
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, ClassVar

import torch
from torch import nn
from torch.nn import functional

from pfprofile.errors import UsageError
from pfprofile.train.workload import Facts, Settings

#: Bins of a spectrogram with windows of 20 ms at 16 kHz, and its frames a second (a window each 10 ms).
BINS, FRAMES_PER_S = 161, 100
#: a–z, space, apostrophe, and the blank, which is number 0.
CHARACTERS = 29
#: Assumed: 2.5 words a second of read speech, five letters and a space each. It only sets the length of CTC's targets.
CHARACTERS_PER_S = 15
CHANNELS = 32
#: (height, width), stride of both convolutions, over (frequency, time).
CONVOLUTIONS = (((41, 11), (2, 2)), ((21, 11), (2, 1)))


def convolved(bins: int, frames: int) -> tuple[int, int]:
    """Size of the spectrogram after both convolutions, which pad nothing."""
    for (high, wide), (down, along) in CONVOLUTIONS:
        bins, frames = (bins - high) // down + 1, (frames - wide) // along + 1
    return bins, frames


class SequenceNorm(nn.Module):
    """Batch norm of each channel over batch and time (section 3.2)."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm = nn.BatchNorm1d(width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """(time, batch, width) → the same shape."""
        out: torch.Tensor = self.norm(x.flatten(0, 1)).view_as(x)
        return out


class Recurrent(nn.Module):
    """A bidirectional GRU whose two directions are summed (section 3.1)."""

    def __init__(self, inside: int, width: int) -> None:
        super().__init__()
        self.gru = nn.GRU(inside, width, bidirectional=True)
        self.width = width

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """(time, batch, inside) → (time, batch, width)."""
        both: torch.Tensor = self.gru(x)[0]
        return both[..., : self.width] + both[..., self.width :]


class Network(nn.Module):
    """Spectrogram in, a log probability of each character at each time out."""

    def __init__(self, settings: Settings) -> None:
        super().__init__()
        front: list[nn.Module] = []
        channels = 1
        for kernel, stride in CONVOLUTIONS:
            front += [nn.Conv2d(channels, CHANNELS, kernel, stride), nn.BatchNorm2d(CHANNELS), nn.Hardtanh(0, 20)]
            channels = CHANNELS
        self.front = nn.Sequential(*front)
        width = settings["width"]
        layers: list[nn.Module] = [Recurrent(CHANNELS * convolved(BINS, FRAMES_PER_S)[0], width)]
        for _ in range(settings["layers"] - 1):
            layers += [SequenceNorm(width), Recurrent(width, width)]
        self.back = nn.Sequential(*layers, SequenceNorm(width), nn.Linear(width, CHARACTERS, bias=False))

    def forward(self, spectrograms: torch.Tensor) -> torch.Tensor:
        """(batch, 1, bins, frames) → (time, batch, characters), in single precision as CTC wants it."""
        x = self.front(spectrograms).flatten(1, 2).permute(2, 0, 1).contiguous()
        return functional.log_softmax(self.back(x).float(), -1)


class DeepSpeech2:
    """Speech recognition. A sample is one utterance of ``seconds``, LibriSpeech's mean length by default.

    ``layers``, ``width`` (of the GRUs) and ``seconds`` (from 0.4) make it small. All utterances are as long: none is
    padded, as in batches sorted by length.
    """

    facts = Facts(
        sample_unit="utterance",
        samples_per_epoch=281_241,
        reference_local_batch=32,
        default_global_batch=512,
        source="LibriSpeech's 960 hours (Panayotov et al., ICASSP 2015); batch 512: Amodei et al., ICML 2016; "
        "local batch: the same over 16 GPUs",
    )
    defaults: ClassVar[Mapping[str, Any]] = {"seconds": 12.3, "layers": 5, "width": 800}

    def build(self, settings: Settings) -> nn.Module:
        """The network."""
        return Network(settings)

    def batch(
        self, local_batch: int, settings: Settings, device: torch.device, generator: torch.Generator
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Normal spectrograms (batch, 1, bins, frames) and characters (batch, length), never the blank."""
        frames = round(settings["seconds"] * FRAMES_PER_S)
        _, times = convolved(BINS, frames)
        if times < 1:
            raise UsageError(
                f"seconds {settings['seconds']} is too short for the convolutions", "it takes at least 0.4"
            )
        spectrograms = torch.randn(local_batch, 1, BINS, frames, device=device, generator=generator)
        # CTC needs a blank between equal neighbours: no more than half as many characters as times always fit.
        length = min(round(settings["seconds"] * CHARACTERS_PER_S), (times + 1) // 2)
        text = torch.randint(1, CHARACTERS, (local_batch, length), device=device, generator=generator)
        return spectrograms, text

    def loss(self, output: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        """Connectionist temporal classification, a character (Graves et al., ICML 2006)."""
        times, samples = output.shape[:2]
        lengths = [torch.full((samples,), n, dtype=torch.long) for n in (times, targets.shape[1])]
        return functional.ctc_loss(output, targets, lengths[0], lengths[1])

    def optimizer(self, parameters: Iterable[nn.Parameter]) -> torch.optim.Optimizer:
        """SGD with Nesterov's momentum at 3e-4, MLPerf's; the paper takes 1e-4 to 6e-4 and momentum 0.99."""
        return torch.optim.SGD(parameters, lr=3e-4, momentum=0.99, nesterov=True)
