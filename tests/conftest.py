"""Fixtures shared by the rooms."""

from tests.fake_nvml.plugin import fake, fake_nvml_library, make_fake

__all__ = ["fake", "fake_nvml_library", "make_fake"]
