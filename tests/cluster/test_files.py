"""Jobs and cluster files: what is read, and how what is wrong is named."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from pfprofile.cluster.jobs import ceil_power_of_two, floor_power_of_two, read_jobs
from pfprofile.cluster.nodes import expand_hostlist, make_cluster, read_cluster
from pfprofile.errors import InputError

JOB = '[[job]]\nname = "a"\nmodel = "m"\nsteps = 10\n'
NODES = '[[nodes]]\nname = "n"\ngpu = "NVIDIA A100-SXM4"\ncount = 2\ngpus_per_node = 8\n'


def write(folder: Path, text: str, name: str = "jobs.toml") -> Path:
    path = folder / name
    path.write_text(text)
    return path


def test_the_three_formats_say_the_same(tmp_path: Path) -> None:
    toml = write(tmp_path, '[[job]]\nname="a"\nmodel="m"\nsteps=10\nsubmit="1h30m"\ndeadline="2h"\nmax_gpus=8\n')
    text = write(tmp_path, "name,model,steps,submit,deadline,max_gpus,account\na,m,10,5400,2h,8,\n", "jobs.csv")
    body = {"job": [{"name": "a", "model": "m", "steps": 10, "submit": 5400, "deadline": 7200, "max_gpus": 8}]}
    both = write(tmp_path, json.dumps(body), "jobs.json")
    assert read_jobs(toml) == read_jobs(text) == read_jobs(both)
    assert read_jobs(toml)[0].submit_s == 5400 and read_jobs(toml)[0].deadline_s == 7200


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", ["no jobs"]),
        ("[[job", ["not valid TOML"]),
        (JOB + 'modle = "x"\n', ["'a'", "unknown key 'modle'", "did you mean 'model'"]),
        (JOB + "samples = 5\n", ["'a'", "exactly one", "samples and steps"]),
        ('[[job]]\nname = "a"\nmodel = "m"\n', ["'a'", "exactly one", "found none"]),
        ('[[job]]\nname = "a"\nmodel = "m"\nsteps = -3\n', ["'a'", "key steps", "-3"]),
        ('[[job]]\nname = "a"\nmodel = "m"\nsteps = nan\n', ["'a'", "key steps"]),
        ('[[job]]\nname = "a"\nsteps = 3\n', ["'a'", "key model: missing"]),
        ('[[job]]\nmodel = "m"\nsteps = 3\n', ["entry 1", "key name: missing"]),
        (JOB + JOB, ["'a'", "entry 2", "already used by entry 1"]),
        (JOB + "min_gpus = 0\n", ["key min_gpus"]),
        (JOB + "min_gpus = 8\nmax_gpus = 4\n", ["key max_gpus", "below min_gpus"]),
        (JOB + "min_gpus = 5\nmax_gpus = 7\n", ["key max_gpus", "no power of two"]),
        (JOB + 'submit = "5kW"\n', ["key submit", "a power, not a duration"]),
        (JOB + "submit = -1\n", ["key submit"]),
        (JOB + "submit = 9\n" + JOB.replace('"a"', '"b"') + "submit = 3\n", ["'b'", "key submit", "sort"]),
        (JOB + "[other]\n", ["unknown table 'other'"]),
        (JOB + "max_gpus = true\n", ["key max_gpus: expected a number (found True)"]),
        (JOB + "max_gpus = 2.5\n", ["key max_gpus: expected a whole number (found 2.5)"]),
        (JOB + "deadline = 1979-05-27\n", ["key deadline: expected a number (found 1979-05-27)"]),
        (JOB + "command = 3\n", ["key command: expected text (found 3)"]),
        (JOB + "global_batch = 1e30\n", ["key global_batch: too large a number"]),
    ],
)
def test_a_wrong_jobs_file_is_refused_in_one_line(tmp_path: Path, text: str, words: list[str]) -> None:
    path = write(tmp_path, text)
    with pytest.raises(InputError) as error:
        read_jobs(path)
    message = str(error.value)
    assert str(path) in message and "\n" not in message
    for word in words:
        assert word in message


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("name,model,steps,submit\na,m,1,0\nb,m,1,\n", ["line 3", "'b'", "key submit: missing"]),
        ("name,model,steps,submit\na,m,1,5\nb,m,1,3\n", ["'b'", "sort the jobs"]),
        ("name,model,steps\na,m,1,4\n", ["line 2", "do not match the header"]),
        ("name,model,steps\na,m,many\n", ["'a'", "key steps"]),
    ],
)
def test_a_wrong_csv_names_the_row(tmp_path: Path, text: str, words: list[str]) -> None:
    with pytest.raises(InputError) as error:
        read_jobs(write(tmp_path, text, "jobs.csv"))
    for word in words:
        assert word in str(error.value)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", ["no nodes"]),
        (NODES.replace("count = 2", "count = 0"), ["'n'", "key count"]),
        (NODES.replace("gpus_per_node = 8", "gpus = 8"), ["'n'", "key gpus_per_node: missing"]),
        (NODES + "watts = 4\n", ["unknown key 'watts'"]),
        (NODES + "node_power_w = -4\n", ["key node_power_w"]),
        (NODES + NODES, ["'n'", "used twice"]),
        ("[[node]]\n", ["unknown table 'node'"]),
        ("nodes = 3\n", ["expected a list"]),
    ],
)
def test_a_wrong_cluster_file_is_refused_in_one_line(tmp_path: Path, text: str, words: list[str]) -> None:
    path = write(tmp_path, text, "cluster.toml")
    with pytest.raises(InputError) as error:
        read_cluster(path)
    assert str(path) in str(error.value) and "\n" not in str(error.value)
    for word in words:
        assert word in str(error.value)


def test_groups_of_one_kind_become_one_pool_in_rack_order(tmp_path: Path) -> None:
    rack = 'rack = "r{}"\nnode_power_w = 500\ngpu_idle_power_w = 50\n'
    text = (
        NODES + rack.format(2) + NODES.replace('"n"', '"m"').replace("count = 2", "count = 1") + rack.format(1)
        + NODES.replace('"n"', '"t4s"').replace("NVIDIA A100-SXM4", "Tesla T4")
    )  # fmt: skip
    cluster = make_cluster(read_cluster(write(tmp_path, text, "cluster.toml")), {"tesla-t4": 10.0})
    big, small = cluster.pools
    assert big.node_names == ("m", "n-0", "n-1") and big.racks == ("r1", "r2", "r2")
    assert big.n_gpus == 24 and big.max_job_gpus == 16 and big.nodes_for(16) == 2
    assert (small.gpu, small.idle_w, small.node_w) == ("tesla-t4", 10.0, 0.0)
    assert cluster.unknown == ("t4s: node_power_w",)


def test_powers_of_two() -> None:
    assert [ceil_power_of_two(n) for n in (1, 2, 3, 8, 9)] == [1, 2, 4, 8, 16]
    assert [floor_power_of_two(n) for n in (1, 2, 3, 8, 9)] == [1, 2, 2, 8, 8]


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    for read in (read_jobs, read_cluster):
        with pytest.raises(InputError, match="no such file"):
            read(tmp_path / "none.toml")


def test_nodes_are_called_as_slurm_lists_them(tmp_path: Path) -> None:
    path = tmp_path / "c.toml"
    path.write_text('[[nodes]]\nname = "dgx[08-10,3]-ib"\ngpu = "a100-sxm4"\ncount = 4\ngpus_per_node = 8\n')
    (group,) = read_cluster(path)
    assert group.node_names() == ["dgx08-ib", "dgx09-ib", "dgx10-ib", "dgx3-ib"]
    assert expand_hostlist("n[1]") == ["n1"]


@pytest.mark.parametrize(
    ("name", "count", "words"),
    [
        ("gpu[01-04]", 5, "count: is 5, but the name is a list of 4 nodes (gpu01 to gpu04: write count = 4)"),
        ("gpu[4-1]", 1, "'4-1' is neither a number nor a range"),
        ("gpu[1-2][1-2]", 4, "expected one pair of brackets"),
        ("gpu[", 1, "expected one pair of brackets"),
        ("gpu[1-]", 1, "'1-' is neither a number nor a range"),
        ("gpu[0-9999999]", 1, "more than 1000000 nodes"),
        ("gpu[1,1]", 2, "two nodes are called 'gpu1'"),
    ],
)
def test_a_wrong_list_of_nodes_is_one_line(tmp_path: Path, name: str, count: int, words: str) -> None:
    path = tmp_path / "c.toml"
    path.write_text(f'[[nodes]]\nname = "{name}"\ngpu = "a100-sxm4"\ncount = {count}\ngpus_per_node = 8\n')
    with pytest.raises(InputError) as error:
        read_cluster(path)
    assert words in str(error.value)
