"""Several nodes: two process groups on the loopback train together; node 0 writes, faults are rows on both."""

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from pfprofile.errors import UsageError
from pfprofile.profile import read_profile
from pfprofile.sweep.nodes import raise_worst
from pfprofile.train import WorkerError
from pfprofile.train.team import Place, place_from

ROOT = Path(__file__).parent.parent.parent
FAULTY = ROOT / "tests" / "support" / "faulty.py"


def node(rank, port, folder, *words):
    launched = {"RANK": str(rank), "WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
    line = [sys.executable, "-m", "pfprofile", "sweep", *words, "--device", "cpu", "-o", "p.parquet"]
    return subprocess.Popen(line, cwd=folder, env={**os.environ, **launched, "PYTHONPATH": str(ROOT)},
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)  # fmt: skip


def two_nodes(tmp_path, *words):
    with socket.create_server(("", 0)) as server:
        port = server.getsockname()[1]
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
    both = [node(rank, port, tmp_path / name, *words) for rank, name in ((0, "a"), (1, "b"))]
    try:
        said = [p.communicate(timeout=240) for p in both]
    finally:
        for process in both:
            process.kill()
            process.wait()
    return [p.returncode for p in both], said


@pytest.mark.live
@pytest.mark.xdist_group("live")
def test_two_nodes_train_together_and_a_fault_is_one_row(tmp_path):
    codes, said = two_nodes(tmp_path, f"{FAULTY}:Faulty", "--gpus", "2,4", "--batch-sizes", "2,6,8", "--steps", "5")
    assert codes == [7, 0], said
    assert not (tmp_path / "b" / "p.parquet").exists()
    assert "node 1 measured 2 windows" in said[1][1]
    profile = read_profile(tmp_path / "a" / "p.parquet")
    rows = {(r["n_gpus"], r["local_batch"]): r for r in profile.rows()}
    assert {k: r["status"] for k, r in rows.items()} == {
        (2, 2): "ok", (4, 2): "ok", (2, 6): "failed", (4, 6): "failed", (2, 8): "oom", (4, 8): "oom"
    }  # fmt: skip
    assert {(r["n_nodes"], r["placement"]) for r in rows.values()} == {(2, "1-1"), (2, "2-2")}
    assert "the data is odd" in rows[2, 6]["error"]
    assert all(r["step_time_s"] > 0 for r in rows.values() if r["status"] == "ok")
    assert "Traceback" not in said[0][1] + said[1][1]


VARIABLES = {"RANK": "5", "WORLD_SIZE": "8", "MASTER_ADDR": "host", "MASTER_PORT": "100"}


@pytest.mark.parametrize(
    ("changes", "place"),
    [
        ({}, Place(5, 8, "host", 101, False)),
        ({"LOCAL_WORLD_SIZE": "4"}, Place(1, 2, "host", 101, True)),
        ({"LOCAL_WORLD_SIZE": "4", "RANK": "4"}, Place(1, 2, "host", 101, False)),
        ({"WORLD_SIZE": "1", "RANK": "0"}, None),
        ({"LOCAL_WORLD_SIZE": "8"}, Place(0, 1, "host", 101, True)),
    ],
)
def test_the_launcher_says_who_is_who(changes, place):
    assert place_from({**VARIABLES, **changes}) == place


def test_without_a_launcher_there_is_one_node():
    assert place_from({"RANK": "1"}) is None


@pytest.mark.parametrize("changes", [{"RANK": "x"}, {"RANK": "8"}, {"LOCAL_WORLD_SIZE": "3"}, {"MASTER_PORT": ""}])
def test_nonsense_from_a_launcher_is_refused(changes):
    with pytest.raises(UsageError, match="RANK"):
        place_from({**VARIABLES, **changes})


def test_the_cause_is_told_from_what_follows_from_it():
    mine = WorkerError("failed", "rank 0: Connection closed by peer")
    with pytest.raises(WorkerError, match="node 1: rank 3") as caught:
        raise_worst([{"node": 1, "status": "oom", "reason": "rank 3: out of memory"}, {"node": 2}], mine)
    assert caught.value.status == "oom"
    raise_worst([{"node": 1}])
