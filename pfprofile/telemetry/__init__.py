"""Numpy on sensor samples: window energy, mean power, clocks, what limited them; plausibility of single values."""

from pfprofile.telemetry.window import Samples, WindowPower, limited_by, sensor_warnings, window_power

__all__ = ["Samples", "WindowPower", "limited_by", "sensor_warnings", "window_power"]
