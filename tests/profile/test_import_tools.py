"""Zeus, codecarbon, MLPerf and sacct; and what all importers share on the command line."""

from __future__ import annotations

import csv
import importlib.util
import tomllib
from pathlib import Path

import pytest
from typer.testing import CliRunner

from pfprofile.cli import app
from pfprofile.cluster.jobs import read_jobs
from pfprofile.errors import InputError, UsageError
from pfprofile.model.points import Points
from pfprofile.model.store import load_model
from pfprofile.profile import read_profile
from pfprofile.profile.importers import IMPORTERS, ImportOptions, importer
from pfprofile.profile.importers.sacct import elapsed_s

FIXTURES = Path(__file__).parents[1] / "fixtures" / "imports"


def load(form, path, *constants, **options):
    return importer(form).read([path], ImportOptions(constants=constants, **options))


def rows_of(done):
    return [row for profile in done.profiles for row in profile.rows()]


def run(*args):
    return CliRunner().invoke(app, list(map(str, args)))


def edited(tmp_path, name, *changes):
    text = (FIXTURES / name).read_text()
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    path = tmp_path / name
    path.write_text(text)
    return path


def test_fixtures_are_what_their_script_makes():
    spec = importlib.util.spec_from_file_location("make_imports", FIXTURES.parent / "make_imports.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    for name, make in module.FILES.items():
        assert (FIXTURES / name).read_text() == make(), name


def test_every_window_of_zeus_is_a_trial():
    rows = rows_of(load("zeus", FIXTURES / "zeus.csv", "workload=toy", "local_batch=8", steps=40))
    assert [r["power_limit_w"] for r in rows] == [300, 250, 200]
    assert [r["energy_j"] for r in rows] == [5700, 5100, 4500]
    assert [r["power_w"] for r in rows] == [285, 255, 225]
    assert {(r["n_gpus"], r["step_time_s"], r["steps"], r["power_spread_w"]) for r in rows} == {(2, 0.25, 40, 10)}
    assert rows[0]["started_at"] is None  # Zeus' monotonic clock is no date


def test_a_zeus_window_without_a_gpus_energy_stays_unknown(tmp_path):
    path = edited(tmp_path, "zeus.csv", ("10.0,2800.0,", "10.0,,"), ("10.0,2500.0", "10.0,0.0"), ("10.0,2200", "0.0,1"))
    done = load("zeus", path, "workload=toy", "local_batch=8")
    assert [(r["power_w"], r["energy_j"]) for r in rows_of(done)] == [(None, None), (None, None)]
    assert any("line 2: no energy of 1 GPUs" in n for n in done.notices)
    assert any("1 line was not read (line 4): elapsed_time is '0.0'" in n for n in done.notices)


def test_zeus_logs_of_two_ranks_count_once(tmp_path):
    (tmp_path / "rank1.csv").write_text((FIXTURES / "zeus.csv").read_text())
    options = ImportOptions(constants=("workload=toy", "local_batch=8"))
    done = importer("zeus").read([FIXTURES / "zeus.csv", tmp_path / "rank1.csv"], options)
    assert len(rows_of(done)) == 3
    assert any("3 rows repeat a window" in n for n in done.notices)


def test_the_zeus_trace_needs_the_size_of_its_data_set(tmp_path):
    with pytest.raises(UsageError, match="--set samples_per_epoch=COUNT"):
        load("zeus", FIXTURES / "zeus-trace.csv")
    rows = rows_of(load("zeus", FIXTURES / "zeus-trace.csv", "samples_per_epoch=50000"))
    epoch_s = 2000 / 64 + 4000 / 150
    assert rows[0]["step_time_s"] == pytest.approx(epoch_s * 64 / 50000)
    assert (rows[0]["workload"], rows[0]["local_batch"], rows[0]["power_limit_w"]) == ("toy", 64, 150)
    assert rows[0]["energy_j"] == pytest.approx(135 * epoch_s)
    two = edited(tmp_path, "zeus-trace.csv", ("cifar100,toy,128", "imagenet,toy,128"))
    with pytest.raises(InputError, match="--where dataset=cifar100"):
        load("zeus", two, "samples_per_epoch=50000")
    assert len(rows_of(load("zeus", two, "samples_per_epoch=50000", where=("dataset=imagenet",)))) == 2
    several = edited(tmp_path, "zeus-trace.csv", ("toy,128,adam", "toy,128,sgd"))
    done = load("zeus", several, "samples_per_epoch=50000")
    assert [p.unique("workload") for p in done.profiles] == [["toy-adam"], ["toy-sgd"]]


def test_codecarbon_counts_gpu_energy_and_the_last_row_of_a_run():
    done = load("codecarbon", FIXTURES / "codecarbon.csv", "local_batch=8", steps=1000)
    rows = rows_of(done)
    assert [r["energy_j"] for r in rows] == pytest.approx([0.1 * 3.6e6, 0.06 * 3.6e6])
    assert [r["power_w"] for r in rows] == pytest.approx([300, 300])
    assert [r["step_time_s"] for r in rows] == [0.6, 0.36]
    assert {(r["workload"], r["device_name"], r["n_gpus"]) for r in rows} == {("resnet", "NVIDIA A100-SXM4-40GB", 2)}
    assert rows[0]["started_at"].isoformat() == "2024-05-06T10:05:00+00:00"
    assert any("1 earlier rows of the same runs left out" in n for n in done.notices)


def test_codecarbon_without_gpus_names_or_with_two_kinds(tmp_path):
    unnamed = edited(tmp_path, "codecarbon.csv", (",resnet,", ",codecarbon,"))
    with pytest.raises(UsageError, match="--set workload=NAME"):
        load("codecarbon", unnamed, "local_batch=8")
    mixed = edited(tmp_path, "codecarbon.csv", ("2 x NVIDIA A100-SXM4-40GB", "4 x NVIDIA A401 x NVIDIA A100 80GB PCIe"))
    with pytest.raises(InputError, match="GPUs of 2 kinds"):
        load("codecarbon", mixed, "local_batch=8")
    off = edited(tmp_path, "codecarbon.csv", (",0.05,", ",0.0,"), (",0.1,", ",0,"), (",0.06,", ",,"))
    assert {(r["power_w"], r["energy_j"]) for r in rows_of(load("codecarbon", off, "local_batch=8"))} == {(None, None)}
    odd = edited(tmp_path, "codecarbon.csv", ("Linux,2,2 x", "Linux,2,4 x"))
    with pytest.raises(UsageError, match="--set n_gpus=COUNT"):
        load("codecarbon", odd, "local_batch=8")


def test_codecarbon_in_watt_hours_is_refused(tmp_path):
    path = edited(tmp_path, "codecarbon.csv", (",0.06,", ",60.0,"), (",0.1,", ",100.0,"))
    with pytest.raises(InputError, match="line 3: power_w is 300,000 W for one GPU: milliwatts"):
        load("codecarbon", path, "local_batch=8")


def test_mlperf_counts_samples_between_its_marks():
    done = load("mlperf", FIXTURES / "mlperf.log")
    (row,) = rows_of(done)
    assert (row["workload"], row["n_gpus"], row["local_batch"]) == ("bert", 8, 32)
    assert row["step_time_s"] == pytest.approx(256 / 3200)
    assert (row["power_w"], row["energy_j"]) == (None, None)
    assert done.profiles[0].metadata.workload.samples_per_epoch == 100_000
    assert any("no power of GPUs" in n for n in done.notices)


def test_mlperf_throughput_ranks_runs_and_damage(tmp_path):
    text = (FIXTURES / "mlperf.log").read_text()
    stats = ':::MLLOG {"time_ms": 1700000060000, "key": "tracked_stats", "value": {"throughput": 1600.0}}\n'
    path = tmp_path / "m.log"
    path.write_text("".join(f"{rank}:{line[2:]}\n" for line in text.splitlines() for rank in range(2)) + stats)
    done = load("mlperf", path)
    (row,) = rows_of(done)
    assert row["step_time_s"] == pytest.approx(0.08)
    assert any("logged as 1600/s and counted as 3200" in n for n in done.notices)
    only = "\n".join(line for line in text.splitlines() if "block_" not in line) + "\n" + stats + ":::MLLOG {broken\n"
    path.write_text(only)
    done = load("mlperf", path)
    assert rows_of(done)[0]["step_time_s"] == pytest.approx(256 / 1600)
    assert any("1 line was not read" in n and "no JSON" in n for n in done.notices)
    path.write_text(text + text.replace("17000000", "17000001"))
    assert len(rows_of(load("mlperf", path))) == 2
    path.write_text(text.replace("accelerators_per_node", "x").replace('"success"', '"aborted"'))
    with pytest.raises(UsageError, match="--set n_gpus=COUNT"):
        load("mlperf", path)
    assert any("ended as 'aborted'" in n for n in load("mlperf", path, "n_gpus=4").notices)
    path.write_text("no such lines\n")
    with pytest.raises(InputError, match="no lines beginning with :::MLLOG"):
        load("mlperf", path)


def test_sacct_keeps_finished_gpu_jobs_and_says_what_it_left_out():
    done = load("sacct", FIXTURES / "sacct.txt", "model=x")
    jobs = done.jobs
    assert [(j.name, j.submit_s, j.duration_s, j.n_gpus) for j in jobs] == [
        ("train-a-101", 0, 3600, 4), ("array-102_1", 300, 1800, 2),
    ]  # fmt: skip
    assert (jobs[0].partition, jobs[0].account) == ("gpu", "ml")
    said = " ".join(done.notices)
    for words in ("steps of jobs", "job arrays' summaries", "state CANCELLED", "state TIMEOUT", "jobs without GPUs"):
        assert words in said
    assert [j.name for j in load("sacct", FIXTURES / "sacct.txt", where=("State=TIMEOUT",)).jobs] == ["late-105"]
    with pytest.raises(InputError, match="no RUNNING job with GPUs"):
        load("sacct", FIXTURES / "sacct.txt", where=("State=RUNNING",))


def test_sacct_reads_older_columns_and_trailing_bars(tmp_path):
    path = tmp_path / "s.txt"
    path.write_text(
        "JobID|JobName|State|Submit|Start|End|Elapsed|AllocGRES|NNodes|\n"
        "7|a|COMPLETED|2024-05-06T10:00:00|x|x|1-02:03:04|gpu:a100:4|2|\n"
        "8|b|COMPLETED|2024-05-06T09:00:00|2024-05-06T09:00:00|2024-05-06T09:10:00||gpu:2|1|\n"
        "9|c|COMPLETED|Unknown|x|x|10:00|gpu:2|1|\n"
    )
    done = load("sacct", path)
    assert [(j.name, j.submit_s, j.duration_s, j.n_gpus) for j in done.jobs] == [
        ("b-8", 0, 600, 2), ("a-7", 3600, 93784, 8),
    ]  # fmt: skip
    assert any("line 4): Submit is 'Unknown'" in n for n in done.notices)
    path.write_text("       JobID    JobName  State\n------------ ---------- ------\n7 a COMPLETED\n")
    with pytest.raises(InputError, match="no header of sacct -P found"):
        load("sacct", path)
    path.write_text("JobID|State\n7|COMPLETED\n")
    with pytest.raises(InputError, match="no column Submit and no ElapsedRaw and no AllocTRES"):
        load("sacct", path)


@pytest.mark.parametrize(("text", "seconds"), [("1-00:00:01", 86401), ("02:03:04", 7384), ("03:04", 184), ("3", None)])
def test_slurms_elapsed_times(text, seconds):
    assert elapsed_s(text) == seconds


def test_sacct_becomes_a_jobs_file_of_work(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert run("import", "sacct", FIXTURES / "sacct.txt").exit_code == 2
    done = run("import", "sacct", FIXTURES / "sacct.txt", "--set", "model=a100-sxm4/resnet50")
    assert done.exit_code == 0, done.output
    model = load_model("a100-sxm4/resnet50")
    batch = model.facts.default_global_batch
    rate = float(model.predict(Points.of(4, -(-batch // 4))).throughput_per_s[0])
    first, second = read_jobs(Path("jobs.toml"))
    assert first.samples == pytest.approx(rate * 3600, rel=1e-5)
    assert (second.name, second.submit_s, second.max_gpus) == ("array-102_1", 300, 2)
    assert (
        run("import", "sacct", FIXTURES / "sacct.txt", "--set", "model=a100-sxm4/resnet50", "-o", "j.csv").exit_code
        == 0
    )
    assert [j.name for j in read_jobs(Path("j.csv"))] == [first.name, second.name]
    assert len(list(csv.DictReader(Path("j.csv").read_text().splitlines()))) == 2
    flags = ("--set", "model=a100-sxm4/resnet50", "--set", "global_batch=64", "-o", "small.toml")
    assert run("import", "sacct", FIXTURES / "sacct.txt", *flags).exit_code == 0
    assert {job.global_batch for job in read_jobs(Path("small.toml"))} == {64}
    for said, words in (("global_batch=x", "expected a whole number"), ("n_gpus=1", "means nothing to import sacct")):
        done = run("import", "sacct", FIXTURES / "sacct.txt", "--set", "model=a100-sxm4/resnet50", "--set", said)
        assert done.exit_code == 2
        assert words in done.output
    assert len(tomllib.loads(Path("jobs.toml").read_text())["job"]) == 2


def test_options_that_mean_nothing_to_a_format_are_refused():
    done = run("import", "zeus", FIXTURES / "zeus.csv", "--trim")
    assert done.exit_code == 2
    assert "--trim means nothing to import zeus (it takes --set --where --steps)" in done.output
    assert set(IMPORTERS) == {
        "table", "nvidia-smi", "nvidia-smi-dmon", "dcgmi-dmon", "dcgm-exporter", "zeus", "codecarbon", "mlperf",
        "sacct",
    }  # fmt: skip
    assert all(name in run("import", "--help").output for name in ("nvidia-smi-dmon", "dcgm-exporter", "codecarbon"))


def test_imported_logs_of_several_clocks_merge_and_fit(tmp_path, monkeypatch):
    """One log a point: three clocks by two batches; the joined profile is checked, shown and fitted."""
    monkeypatch.chdir(tmp_path)
    names = []
    for clock in (810, 1110, 1410):
        for batch in (32, 64):
            names.append(f"{clock}-{batch}.parquet")
            watts = f"{100 + clock / 7:.2f} W"
            changes = (("1410 MHz", f"{clock} MHz"), ("300.00 W", watts), ("320.00 W", watts))
            path = edited(tmp_path, "nvidia-smi.csv", *changes)
            step_time_s = 0.01 + batch * 1e-3 * (0.3 + 0.7 * 1410 / clock)
            said = {"step_time_s": step_time_s, "workload": "toy", "local_batch": batch, "requested_clock_mhz": clock}
            flags = [word for item in said.items() for word in ("--set", "{}={}".format(*item))]
            done = run("import", "nvidia-smi", path, "--trim", *flags, "-o", names[-1])
            assert done.exit_code == 0, done.output
    assert run("merge", *names, "-o", "all.parquet").exit_code == 0
    assert read_profile(Path("all.parquet")).metadata.source == "imported"
    assert run("check", "all.parquet").exit_code == 0
    assert "1410 MHz" in run("show", "all.parquet").output
    fitted = run("fit", "all.parquet")
    assert fitted.exit_code == 0, fitted.output
    model = load_model("toy")
    assert (model.source, model.has_power) == ("imported", True)
