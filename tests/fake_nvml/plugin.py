"""Fixtures of the fake driver, for all rooms' tests (imported by tests/conftest.py)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.fake_nvml.build import build, compiler
from tests.fake_nvml.control import Fake

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from tests.fake_nvml.devices import Device


@pytest.fixture(scope="session")
def fake_nvml_library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder with the compiled fake, built once a test process."""
    if compiler() is None:
        pytest.skip("no C compiler to build the fake libnvidia-ml.so.1 with (install gcc)")
    return build(tmp_path_factory.mktemp("fake_nvml"))


@pytest.fixture
def make_fake(fake_nvml_library: Path, tmp_path: Path) -> Iterator[Callable[..., Fake]]:
    """A function that makes fakes: ``make_fake("A100", "V100", driver="...")``, names or `Device` objects."""
    made: list[Fake] = []

    def make(*devices: Device | str, driver: str = "580.95.05", cuda: int = 13000) -> Fake:
        fake = Fake(tmp_path / f"fake{len(made)}", fake_nvml_library, devices or ("A100",), driver, cuda)
        made.append(fake)
        return fake

    yield make
    for fake in made:
        fake.close()


@pytest.fixture
def fake(make_fake: Callable[..., Fake]) -> Fake:
    """A fake driver with one A100."""
    return make_fake()
