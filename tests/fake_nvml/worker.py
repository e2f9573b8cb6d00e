"""What a process under test runs on the fake's GPUs. Needs the environment of `control.Fake.env`."""

from __future__ import annotations

import ctypes
from functools import cache
from typing import Any


@cache
def _library() -> Any:
    lib = ctypes.CDLL("libnvidia-ml.so.1")
    lib.fake_kernel.argtypes = [ctypes.c_int32, ctypes.c_double, ctypes.c_double]
    lib.fake_context.argtypes = [ctypes.c_int32]
    lib.fake_index_of.argtypes = [ctypes.c_char_p]
    return lib


def index_of(gpu: int | str) -> int:
    """The NVML index of a GPU given by index or by (the beginning of) its UUID."""
    if isinstance(gpu, int):
        return gpu
    index = int(_library().fake_index_of(gpu.encode()))
    if index < 0:
        raise ValueError(f"no single GPU {gpu!r}")
    return index


def hold_context(gpu: int | str) -> None:
    """Open a context: from now on the process shows on the GPU, and the GPU leaves its idle power."""
    _check(_library().fake_context(index_of(gpu)), gpu)


def kernel(gpu: int | str, compute_s: float, memory_s: float = 0.0) -> None:
    """Keep a GPU busy for ``compute_s`` x top clock / achieved clock + ``memory_s`` seconds.

    Raises:
        RuntimeError: the GPU was lost, or a fault was injected for "fake_kernel".
    """
    _check(_library().fake_kernel(index_of(gpu), compute_s, memory_s), gpu)


def _check(code: int, gpu: int | str) -> None:
    if code:
        raise RuntimeError(f"CUDA error on GPU {gpu}: NVML code {code}")
