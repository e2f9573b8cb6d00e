"""`python -m pfprofile.train`: from checkpoint to checkpoint, alone and as ranks, and TERM."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import pytest
import torch

from pfprofile.errors import UsageError
from pfprofile.train.standalone import main, ranks_from

pytestmark = [pytest.mark.live, pytest.mark.xdist_group("live")]
SMALL = ["resnet18", "--local-batch", "2", "--device", "cpu", "--set", "image_size=32", "--set", "classes=10"]


def start(*words, **env):
    return subprocess.Popen(
        [sys.executable, "-m", "pfprofile.train", *map(str, words)], stderr=subprocess.PIPE, text=True,
        env={**os.environ, "OMP_NUM_THREADS": "1", **env},
    )  # fmt: skip


def test_who_is_who() -> None:
    assert ranks_from({}) == (0, 1, 0)
    assert ranks_from({"SLURM_PROCID": "3", "SLURM_NTASKS": "4", "SLURM_LOCALID": "1"}) == (3, 4, 1)
    assert ranks_from({"RANK": "1", "WORLD_SIZE": "2", "LOCAL_RANK": "1", "SLURM_NTASKS": "1"}) == (1, 2, 1)
    with pytest.raises(UsageError, match="rank 2 of 2"):
        ranks_from({"RANK": "2", "WORLD_SIZE": "2"})
    with pytest.raises(UsageError, match="no whole numbers"):
        ranks_from({"RANK": "x"})


def test_it_goes_on_from_its_checkpoint(tmp_path, capsys) -> None:
    path = tmp_path / "deep" / "c.pt"
    assert main([*SMALL, "--last-step", "2", "--checkpoint", str(path)]) == 0
    first = torch.load(path, weights_only=True)
    assert first["steps"] == 2
    assert main([*SMALL, "--last-step", "5", "--checkpoint", str(path)]) == 0
    second = torch.load(path, weights_only=True)
    assert second["steps"] == 5
    assert "5 of 5 steps are done" in capsys.readouterr().err
    assert any(not torch.equal(first["module"][k], second["module"][k]) for k in first["module"])
    assert main([*SMALL, "--last-step", "5", "--checkpoint", str(path)]) == 0  # nothing left to do
    path.write_bytes(b"no checkpoint")
    assert main([*SMALL, "--last-step", "5", "--checkpoint", str(path)]) == 3
    assert "not a checkpoint of this workload" in capsys.readouterr().err
    assert main(["resnet81", "--local-batch", "2", "--last-step", "1"]) == 2


def test_term_at_one_rank_stops_all_with_a_checkpoint(tmp_path) -> None:
    path = tmp_path / "c.pt"
    shared = {"WORLD_SIZE": "2", "MASTER_ADDR": "localhost", "MASTER_PORT": str(23000 + os.getpid() % 5000)}
    ranks = [
        start(*SMALL, "--last-step", 10**6, "--checkpoint", path, **shared, RANK=str(r), LOCAL_RANK=str(r),
              PFPROFILE_MARKS=str(tmp_path))
        for r in (0, 1)
    ]  # fmt: skip
    try:
        deadline = time.monotonic() + 120
        while not list(tmp_path.glob("rank0-*.marks")) and time.monotonic() < deadline:
            assert ranks[0].poll() is None, ranks[0].stderr.read()
            time.sleep(0.05)
        ranks[1].send_signal(signal.SIGTERM)
        assert [r.wait(timeout=60) for r in ranks] == [143, 143]
    finally:
        for rank in ranks:
            rank.kill()
            rank.communicate()
    assert torch.load(path, weights_only=True)["steps"] >= 1
