"""A training script of one's own with pfprofile's hook: one import and one line in the loop.

    pfprofile sweep --command "python examples/train_hook.py {local_batch}" --device cpu --gpus 1 --batch-sizes 8,16

Run by itself it trains all the same: the hook does nothing then. Plain Python stands in for a framework here; with
torch the line stands behind ``optimizer.step()``.
"""

import random
import sys

import pfprofile

WIDTH = 24


def gradient(weights: list[float], inputs: list[list[float]], targets: list[float]) -> list[float]:
    """Gradient of half the mean squared error of a linear model."""
    total = [0.0] * len(weights)
    for row, target in zip(inputs, targets, strict=True):
        error = sum(w * x for w, x in zip(weights, row, strict=True)) - target
        total = [g + error * x for g, x in zip(total, row, strict=True)]
    return [g / len(inputs) for g in total]


def main() -> None:
    """Train until somebody stops it, or for the given number of steps."""
    batch, most = int(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 10**9
    draw = random.Random(0)
    inputs = [[draw.gauss(0, 1) for _ in range(WIDTH)] for _ in range(batch)]
    targets = [sum(row) for row in inputs]
    weights = [0.0] * WIDTH
    for _ in range(most):
        slope = gradient(weights, inputs, targets)
        weights = [w - 0.05 * g for w, g in zip(weights, slope, strict=True)]
        pfprofile.step(samples=batch)


if __name__ == "__main__":
    main()
