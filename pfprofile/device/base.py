"""The Device Protocol: what the sweep needs of a machine. One file a vendor implements it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from pfprofile.errors import HardwareError


class RefusedError(HardwareError):
    """The driver refuses a change as such (permission, no such function): nothing was changed."""


@dataclass(frozen=True, slots=True)
class Reading:
    """One look at one device's sensors; ``None`` = this device cannot tell.

    Attributes:
        power_w: power now (or the driver's average), W.
        energy_j: a counter that only grows, J; its zero means nothing.
        sm_clock_mhz: SM clock now, MHz.
        temperature_c: °C.
        limits: what holds the clock down now, of ``power``, ``thermal``, ``hardware``; empty = nothing.
    """

    power_w: float | None = None
    energy_j: float | None = None
    sm_clock_mhz: float | None = None
    temperature_c: float | None = None
    limits: frozenset[str] | None = None


class Device(Protocol):
    """All devices of one kind in this machine that may be used.

    Attributes:
        kind: ``cpu`` or ``cuda``.
        name: as the driver names it (all devices are of this one name).
        uuids: one a device, in the order that ranks use them; empty where devices have none.
        count: how many there are.
        driver_version: None where there is no driver.
        supported_clocks_mhz: SM clocks that may be locked, ascending; empty = clocks cannot be chosen.
        default_clock_mhz: the clock of an unlocked device under load, where known.
        power_limit_w: enforced limit of one device, W.
        power_limit_range_w: least and greatest settable limit, W; empty = unknown.
        sensors_are_shared: another process that opens these devices reads the same sensors.
        opener: ``module:function`` that opens the devices with these UUIDs again, in another process; empty where
            clocks are never locked and sensors are not shared.
    """

    kind: str
    name: str
    uuids: tuple[str, ...]
    count: int
    driver_version: str | None
    supported_clocks_mhz: tuple[float, ...]
    default_clock_mhz: float | None
    power_limit_w: float | None
    power_limit_range_w: tuple[float, ...]
    sensors_are_shared: bool
    opener: str

    def read(self, index: int) -> Reading:
        """The sensors of one device."""

    def lock_trouble(self) -> str | None:
        """Why clocks cannot be locked here, in words; None = they can, as far as one may know without trying."""

    def lock_clock(self, index: int, clock_mhz: float) -> None:
        """Lock the SM clock of one device.

        Raises:
            RefusedError: no permission, not supported: nothing was locked.
            HardwareError: something else went wrong; it may be locked.
        """

    def reset_clock(self, index: int) -> None:
        """Take the lock away. Raises HardwareError where the driver refuses."""

    def others(self, index: int) -> list[str]:
        """Processes of others that compute on one device, in words."""

    def refusal(self, index: int) -> str | None:
        """Why one device must not be swept, in words; None = it may."""

    def rank_environment(self, n_gpus: int) -> dict[str, str]:
        """Variables that make n ranks see the first n devices, in this order."""

    def close(self) -> None:
        """Let go of the driver."""
