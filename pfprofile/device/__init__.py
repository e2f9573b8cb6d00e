"""The machine: identity, clocks and sensors behind one Protocol."""

from pfprofile.device.base import Device, Reading
from pfprofile.device.find import open_device
from pfprofile.device.guard import ClockGuard
from pfprofile.device.sampler import Sampler

__all__ = ["ClockGuard", "Device", "Reading", "Sampler", "open_device"]
