"""Shared fixtures: small profiles made by our own code, and the command line as a person meets it."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

from pfprofile.profile import Profile, ProfileMetadata, WorkloadFacts
from tests.fake_nvml.plugin import fake, fake_nvml_library, make_fake
from tests.support.zygote import call

__all__ = ["cli", "data", "fake", "fake_nvml_library", "make_fake", "make_profile", "state_folder"]

# Machines differ and share their cores: no test may fail for being slow.
settings.register_profile("pfprofile", deadline=None)
settings.register_profile("fuzz", deadline=None, max_examples=10_000)
settings.load_profile(os.environ.get("PFPROFILE_HYPOTHESIS", "pfprofile"))

REPO = Path(__file__).resolve().parent.parent


@pytest.fixture(autouse=True)
def state_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Journals of clock locks go to the test's own folder, never to this machine's."""
    folder = tmp_path / "state"
    monkeypatch.setenv("PFPROFILE_STATE_DIR", str(folder))
    return folder


@pytest.fixture
def make_profile() -> Callable[..., Profile]:
    """A profile of a made-up job: step time and power by a plain law, so that every number can be checked."""

    def make(
        gpus: tuple[int, ...] = (1, 2), batches: tuple[int, ...] = (8, 16), clocks: tuple[float | None, ...] = (None,),
        **changes: Any,
    ) -> Profile:  # fmt: skip
        rows = [
            {
                "workload": "toy", "device_name": "NVIDIA Toy", "n_gpus": n, "local_batch": b, "requested_clock_mhz": f,
                "achieved_clock_mhz": f, "steps": 10, "step_time_s": 0.01 + 0.001 * b, "power_w": 100.0 + b,
            }
            for n in gpus for b in batches for f in clocks
        ]  # fmt: skip
        facts = WorkloadFacts("image", 1000, 16, 32)
        metadata = ProfileMetadata(source="measured", gpu_name="NVIDIA Toy", gpus_per_node=8, workload=facts)
        return Profile.from_rows(rows, metadata.with_(**changes))

    return make


@pytest.fixture(scope="session")
def zygote(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Socket of a server that starts commands quickly; see `tests.support.zygote`."""
    path = tmp_path_factory.mktemp("zygote") / "socket"
    server = subprocess.Popen(
        [sys.executable, str(REPO / "tests" / "support" / "zygote.py"), "--serve", str(path)], stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": str(REPO), "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"},
    )  # fmt: skip
    assert server.stdout is not None and server.stdout.readline() == b"ready\n"
    yield path
    server.kill()
    server.wait()
    server.stdout.close()


@pytest.fixture
def cli(tmp_path: Path, zygote: Path) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Run ``python -m pfprofile`` in an empty folder, as a person would; returns exit code, stdout, stderr."""

    def run(*args: str, cwd: Path | None = None, **env: str) -> subprocess.CompletedProcess[str]:
        clean = {k: v for k, v in os.environ.items() if not k.startswith("PFPROFILE_")}
        words = list(map(str, args))
        with Path(os.devnull).open() as nothing, tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
            code = call(
                zygote, words, [nothing.fileno(), out.fileno(), err.fileno()], cwd=cwd or tmp_path,
                env={**clean, "PYTHONPATH": str(REPO), "COLUMNS": "80", **env},
            )  # fmt: skip
            said = []
            for stream in (out, err):
                stream.seek(0)
                said.append(stream.read().decode())
        return subprocess.CompletedProcess(words, code, *said)

    return run


@pytest.fixture(scope="session")
def data() -> Path:
    """The folder of real measurements (PFPROFILE_DATA, or ../shared/data); tests that need it skip without it."""
    folder = Path(os.environ.get("PFPROFILE_DATA") or REPO.parent / "shared" / "data")
    if not folder.is_dir():
        pytest.skip("no real measurements here: set PFPROFILE_DATA (see benchmarks/DATA.md)")
    return folder


@pytest.fixture(scope="session")
def training_host() -> Iterator[Any]:
    """One host process for all tests that train: importing torch costs seconds."""
    from pfprofile.train import Host

    with Host(threads=1) as host:
        yield host
