"""Public traces: both layouts are read, what is wrong is named by line; real ones where they lie."""

from __future__ import annotations

from pathlib import Path

import pytest

from pfprofile.cluster.traces import parse_mapping, read_trace
from pfprofile.errors import InputError, UsageError

ITP = "job_id,submission_time,duration,num_gpu\na,100,60,4\nb,160,30,1\n"
FIG10 = (
    "job_id,submit_time,iteration,model_name,ddl,batch_size,num_gpu,duration,best_effort\n0,5,70,bert,900,256,2,33,0\n"
)


def test_both_layouts(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text(ITP)
    first, second = read_trace(path)
    assert (first.submit_s, second.submit_s, second.duration_s, second.n_gpus) == (0.0, 60.0, 30.0, 1)
    path.write_text(FIG10)
    (job,) = read_trace(path)
    assert (job.model, job.global_batch, job.steps, job.deadline_s) == ("bert", 256, 70.0, 895.0)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (ITP.replace("num_gpu", "gpus"), ["no column 'num_gpu'"]),
        (ITP.replace("160,30", "90,30"), ["line 3", "before that of the line above"]),
        (ITP.replace("160,30", ",30"), ["line 3", "submission_time"]),
        (ITP.replace("160,30", "160,-30"), ["line 3", "duration"]),
        ("job_id,submission_time,duration,num_gpu\n", ["no jobs"]),
    ],
)
def test_wrong_traces_are_refused_by_line(tmp_path: Path, text: str, words: list[str]) -> None:
    path = tmp_path / "t.csv"
    path.write_text(text)
    with pytest.raises(InputError) as error:
        read_trace(path)
    for word in words:
        assert word in str(error.value)


def test_the_real_traces_are_read(data: Path) -> None:
    assert len(read_trace(data / "traces" / "itp" / "cluster03.csv")) == 3011
    assert len(read_trace(data / "traces" / "fig10" / "jobs.csv")) == 100


OTHER = "id,when,took,cards,net,due\nx,2020-04-01 00:00:10,60,4,bert,500\ny,2020-04-01T00:01:10,30,1,,\n"
MAP = ["submit=when", "duration=took", "gpus=cards", "name=id", "model=net", "deadline=due"]


def test_any_other_trace_by_its_columns(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text(OTHER)
    first, second = read_trace(path, parse_mapping(MAP))
    assert (first.name, first.submit_s, first.duration_s, first.n_gpus) == ("x", 0.0, 60.0, 4)
    assert (first.model, first.deadline_s) == ("bert", 500.0)
    assert (second.submit_s, second.model, second.deadline_s, second.global_batch) == (60.0, None, None, None)
    assert [job.name for job in read_trace(path, parse_mapping(MAP[:3]), first=1)] == ["job-0"]


@pytest.mark.parametrize(
    ("items", "words"),
    [
        (["submit"], "FIELD=COLUMN"),
        (["submitt=when"], "did you mean 'submit'"),
        (["submit=when", "gpus=cards"], "duration is not mapped"),
    ],
)
def test_wrong_mappings_are_refused(items: list[str], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        parse_mapping(items)


def test_a_column_that_is_not_there_is_named(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text(OTHER)
    with pytest.raises(InputError, match="no column 'card' for gpus; did you mean 'cards'"):
        read_trace(path, {"submit": "when", "duration": "took", "gpus": "card"})
    path.write_text(OTHER.replace("T00:01:10", "Tnoon"))
    with pytest.raises(InputError, match="line 3: column 'when'"):
        read_trace(path, parse_mapping(MAP))
