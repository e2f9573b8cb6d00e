"""The machine: identity, clocks and sensors behind one Protocol.

The sampler needs numpy; it is fetched when asked for, so that the watchdog starts without it.
"""

from typing import TYPE_CHECKING, Any

from pfprofile.device.base import Device, Reading
from pfprofile.device.find import open_device
from pfprofile.device.guard import ClockGuard

if TYPE_CHECKING:
    from pfprofile.device.sampler import Sampler

__all__ = ["ClockGuard", "Device", "Reading", "Sampler", "open_device"]


def __getattr__(name: str) -> Any:
    if name == "Sampler":
        from pfprofile.device.sampler import Sampler

        return Sampler
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
