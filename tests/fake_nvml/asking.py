"""Asking the real pynvml something in a process of its own."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tests.fake_nvml.control import Fake

PREAMBLE = """
import json, os, sys, time
import pynvml as n
from tests.fake_nvml.worker import hold_context, kernel
n.nvmlInit()
gpus = [n.nvmlDeviceGetHandleByIndex(i) for i in range(n.nvmlDeviceGetCount())]
h = gpus[0]
def tell(value): print(json.dumps(value), flush=True)
def number(handle): return n.cast(handle, n.c_void_p).value
def attempt(call, *args):
    try:
        return call(*args)
    except n.NVMLError as error:
        return type(error).__name__
"""


def ask(fake: Fake, code: str, *args: str) -> Any:
    """What ``code`` tells, run after PREAMBLE in a process of its own."""
    return json.loads(fake.python(PREAMBLE + code, *args).stdout)
