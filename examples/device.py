"""A device of one's own: the CPU, with its power from a meter that writes watts into a text file.

    METER=meter.txt pfprofile sweep resnet18 --device examples/device.py:MeteredCpu --gpus 1 --batch-sizes 2

Only what differs from the CPU stands here. Another vendor's GPU would implement all of pfprofile.device.base.Device.
"""

import os
from pathlib import Path

from pfprofile.device.base import Reading
from pfprofile.device.cpu import CpuDevice


class MeteredCpu(CpuDevice):
    """The whole machine's power under device 0, where it is counted once; unknown where the meter says nothing."""

    def __init__(self) -> None:
        super().__init__()
        self.name = f"{self.name} (wall power)"
        self.meter = Path(os.environ.get("METER", "meter.txt"))

    def read(self, index: int) -> Reading:
        """One look at the meter."""
        if index > 0 or not self.meter.is_file():
            return Reading()
        text = self.meter.read_text(encoding="utf-8").strip()
        return Reading(power_w=float(text)) if text else Reading()
