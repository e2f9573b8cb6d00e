"""A training script that nobody may edit: it only prints its speed now and then.

    pfprofile sweep --command "python examples/train_log.py --batch {local_batch}" \\
        --throughput-regex '([0-9.]+) samples/s' --device cpu --gpus 1 --batch-sizes 8,16
"""

import argparse
import random
import time

WIDTH = 24
EVERY = 20


def main() -> None:
    """Fit a line by stochastic gradient descent and log the speed every few steps."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--batch", type=int, required=True)
    batch = parser.parse_args().batch
    draw = random.Random(0)
    rows = [[draw.gauss(0, 1) for _ in range(WIDTH)] for _ in range(batch)]
    weights = [0.0] * WIDTH
    step, since = 0, time.perf_counter()
    while True:
        for row in rows:
            error = sum(w * x for w, x in zip(weights, row, strict=True)) - sum(row)
            weights = [w - 0.01 * error * x for w, x in zip(weights, row, strict=True)]
        step += 1
        if step % EVERY == 0:
            now = time.perf_counter()
            print(f"step {step}: error {error:.3g}, {EVERY * batch / (now - since):.1f} samples/s")
            since = now


if __name__ == "__main__":
    main()
