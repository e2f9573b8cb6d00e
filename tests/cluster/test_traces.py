"""Public traces: both layouts are read, what is wrong is named by line; real ones where they lie."""

from __future__ import annotations

from pathlib import Path

import pytest

from pfprofile.cluster.traces import read_trace
from pfprofile.errors import InputError

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
