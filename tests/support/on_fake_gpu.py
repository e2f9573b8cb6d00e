"""A training command on the fake GPUs: each step is one kernel of known time and power. Usage: on_fake_gpu.py BATCH"""

import os
import sys

import pfprofile
from tests.fake_nvml.worker import kernel

COMPUTE_S, MEMORY_S = 0.0015, 0.0005


def main():
    batch, gpu = int(sys.argv[1]), os.environ["CUDA_VISIBLE_DEVICES"]
    while True:
        kernel(gpu, COMPUTE_S * batch, MEMORY_S * batch)
        pfprofile.step(samples=batch)


if __name__ == "__main__":
    main()
