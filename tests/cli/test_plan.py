"""``pfprofile plan`` as a person meets it: files in, schedule out, refusals in one line with the right code."""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess

import pytest

from tests.plan.double import Double
from tests.plan.fitted import save

Cli = Callable[..., CompletedProcess[str]]
JOBS = """
[[job]]
name = "big"
model = "resnet50"
epochs = 40
global_batch = 1024
max_gpus = 16
[[job]]
name = "small"
model = "resnet50"
samples = 400000
global_batch = 256
submit = "2min"
"""
CLUSTER = """
[[nodes]]
name = "n"
gpu = "NVIDIA A100-SXM4"
count = 2
gpus_per_node = 8
node_power_w = 500
gpu_idle_power_w = 55
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("plan")
    save(place / "models", Double())
    save(place / "models", Double("nopower"), power=False)
    (place / "jobs.toml").write_text(JOBS)
    (place / "cluster.toml").write_text(CLUSTER)
    return place


@pytest.fixture
def cli(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Cli:
    """The command line in this process: the same app, without a new interpreter each time."""
    from pfprofile.cli import app

    def run(*args: object, cwd: Path | None = None) -> CompletedProcess[str]:
        monkeypatch.chdir(cwd or tmp_path)
        capfd.readouterr()
        with pytest.raises(SystemExit) as done:
            app([str(a) for a in args])
        out, err = capfd.readouterr()
        return CompletedProcess(args, done.value.code or 0, out, err)  # type: ignore[arg-type]

    return run


def plan(cli: Cli, folder: Path, *args: str) -> CompletedProcess[str]:
    return cli("plan", "--jobs", "jobs.toml", "--cluster", "cluster.toml", *args, cwd=folder)


def test_the_schedule_follows_the_contract_and_adds_up(cli: Cli, folder: Path) -> None:
    done = plan(cli, folder, "--format", "json", "--budget", "1kWh")
    assert done.returncode == 0, done.stderr
    body = json.loads(done.stdout)
    assert json.loads((folder / "schedule.json").read_text()) == body
    assert {"segments", "jobs", "totals", "budget", "bound", "inputs"} <= set(body)
    assert set(body["segments"][0]) == {
        "job", "kind", "start_s", "end_s", "n_gpus", "gpus", "sm_clock_mhz", "throughput_per_s", "job_power_w",
        "energy_j",
    }  # fmt: skip
    totals = body["totals"]
    assert totals["gpu_energy_j"] == math.fsum(s["energy_j"] for s in body["segments"])
    assert totals["gpu_energy_j"] == pytest.approx(math.fsum(j["energy_j"] for j in body["jobs"]), rel=1e-12)
    parts = totals["gpu_energy_j"] + totals["idle_energy_j"] + totals["node_energy_j"]
    assert totals["energy_j"] == parts <= body["budget"]["energy_j"] == 3.6e6
    assert totals["avg_jct_s"] == sum(j["jct_s"] for j in body["jobs"]) / 2
    assert body["bound"]["kind"] == "preemptive" and body["bound"]["gap"] >= 0
    assert body["inputs"]["models"][0]["source"] == "synthetic" and len(body["inputs"]["jobs"]["digest"]) == 64
    names = {f"n-{i}:{k}" for i in range(2) for k in range(8)}
    assert all(set(s["gpus"]) <= names and len(s["gpus"]) == s["n_gpus"] for s in body["segments"])


def test_the_same_inputs_give_the_same_bytes(cli: Cli, folder: Path) -> None:
    files = []
    for name in ("one.json", "two.json"):
        assert plan(cli, folder, "--budget", "1kWh", "-o", name, "--force").returncode == 0
        files.append((folder / name).read_bytes())
    assert files[0] == files[1]


def test_the_table_fits_a_terminal_and_says_what_matters(cli: Cli, folder: Path) -> None:
    done = plan(cli, folder, "--budget", "1kWh", "--power-cap", "6kW")
    assert done.returncode == 0, done.stderr
    assert max(map(len, done.stdout.splitlines())) <= 80
    for words in ("big", "small", "budget 1.000 kWh", "power cap 6.000 kW", "average JCT", "preemptive bound"):
        assert words in done.stdout


def test_csv_is_the_segments(cli: Cli, folder: Path) -> None:
    done = plan(cli, folder, "--format", "csv")
    rows = list(csv.DictReader(io.StringIO(done.stdout)))
    assert {r["job"] for r in rows} == {"big", "small"}
    assert all(len(r["gpus"].split()) == int(r["n_gpus"]) for r in rows)


def test_a_budget_below_the_least_energy_is_refused_with_the_figures(cli: Cli, folder: Path) -> None:
    done = plan(cli, folder, "--budget", "1J")
    assert done.returncode == 5 and len(done.stderr.strip().splitlines()[-1:]) == 1
    line = done.stderr.strip().splitlines()[-1]
    assert "least_energy_j=" in line and "lower_bound_j=" in line
    least = line.split("least_energy_j=")[1].split()[0]
    again = plan(cli, folder, "--budget", f"{least}J")
    assert again.returncode == 0, again.stderr


@pytest.mark.parametrize(
    ("args", "code", "words"),
    [
        (["--budget", "20kW"], 2, ["a power", "--power-cap 20kW"]),
        (["--budget", "20"], 2, ["has no unit"]),
        (["--budget", "-1J"], 2, ["--budget", "above 0"]),
        (["--power-cap", "5kWh"], 2, ["--power-cap", "an energy, not a power"]),
        (["--policy", "fifi"], 2, ["did you mean 'fifo'"]),
        (["--power-cap", "10W"], 5, ["power cap", "needs alone"]),
        (["--power-cap", "1kW", "--nodes-always-on"], 5, ["idle power of the cluster"]),
        (["-o", "jobs.toml"], 2, ["jobs.toml exists", "--force"]),
    ],
)
def test_what_cannot_be_done_is_said_in_one_line(
    cli: Cli, folder: Path, args: list[str], code: int, words: list[str]
) -> None:
    done = plan(cli, folder, *args)
    assert done.returncode == code
    line = done.stderr.strip().splitlines()[-1]
    assert line.startswith("error: ") and "Traceback" not in done.stderr
    for word in words:
        assert word in line


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ('model = "resnet50"\nepochs', 'model = "resnet5"\nepochs', ["'big'", "key model", "did you mean"]),
        ('model = "resnet50"\nepochs', 'model = "nopower"\nepochs', ["'big'", "no power"]),
        ("max_gpus = 16", "min_gpus = 64", ["'big'", "key min_gpus"]),
    ],
)
def test_a_job_that_cannot_be_planned_is_named(
    cli: Cli, folder: Path, tmp_path: Path, old: str, new: str, words: list[str]
) -> None:
    wrong = tmp_path / "wrong.toml"
    wrong.write_text(JOBS.replace(old, new))
    done = cli("plan", "--jobs", wrong, "--cluster", "cluster.toml", cwd=folder)
    assert done.returncode == 3
    for word in ("wrong.toml", *words):
        assert word in done.stderr.strip().splitlines()[-1]


def test_a_gpu_type_nobody_profiled_is_refused(cli: Cli, folder: Path, tmp_path: Path) -> None:
    other = tmp_path / "cluster.toml"
    other.write_text(CLUSTER.replace("A100-SXM4", "A100-SXM9"))
    done = cli("plan", "--jobs", "jobs.toml", "--cluster", other, cwd=folder)
    assert done.returncode == 3
    assert "a100-sxm4" in done.stderr and "a100-sxm9" in done.stderr


def test_without_files_an_epoch_of_every_model_with_power_on_its_own_machine(cli: Cli, folder: Path) -> None:
    done = cli("plan", "--budget", "1kWh", "--format", "json", "-o", "own.json", cwd=folder)
    assert done.returncode == 0, done.stderr
    body = json.loads(done.stdout)
    assert [j["name"] for j in body["jobs"]] == ["a100-sxm4/resnet50"]
    assert "a100-sxm4/nopower is skipped: its profile has no power" in done.stderr
    nodes = {gpu.split(":")[0] for s in body["segments"] for gpu in s["gpus"]}
    assert nodes <= {"node-0", "node-1"}


def test_several_device_types_ask_for_a_cluster(cli: Cli, tmp_path: Path) -> None:
    save(tmp_path / "models", Double())
    save(tmp_path / "models", Double(device_name="Tesla T4"))
    done = cli("plan", cwd=tmp_path)
    assert done.returncode == 2 and "--cluster" in done.stderr


def test_derived_columns_and_who_sits_where(cli: Cli, folder: Path) -> None:
    done = plan(cli, folder, "--budget", "1kWh", "--pue", "1.5", "--price", "0.2", "--carbon", "400", "--placement")
    assert done.returncode == 0, done.stderr
    assert "placement at" in done.stdout and "n-0 [" in done.stdout and "cost " in done.stdout
    totals = json.loads((folder / "schedule.json").read_text())["totals"]
    assert totals["facility_energy_j"] == pytest.approx(1.5 * totals["energy_j"])
    assert totals["carbon_kg"] == pytest.approx(1.5 * totals["energy_j"] / 3.6e6 * 0.4)
    assert plan(cli, folder, "--pue", "0.5").returncode == 2


def test_confidence_is_kept_and_reported(cli: Cli, folder: Path) -> None:
    done = plan(cli, folder, "--budget", "500Wh", "--confidence", "95%", "--format", "json")
    assert done.returncode == 0, done.stderr
    body = json.loads(done.stdout)
    assert body["budget"]["probability"] >= 0.95
    assert all(j["jct_lo_s"] < j["jct_s"] < j["jct_hi_s"] for j in body["jobs"])
    assert plan(cli, folder, "--confidence", "0.9").returncode == 2
    assert plan(cli, folder, "--confidence", "95", "--budget", "1kWh").returncode == 2


def test_exact_is_for_jobs_that_arrive_together(cli: Cli, folder: Path, tmp_path: Path) -> None:
    assert plan(cli, folder, "--exact").returncode == 2
    together = tmp_path / "jobs.toml"
    together.write_text(JOBS.replace('submit = "2min"\n', ""))
    done = cli("plan", "--jobs", together, "--cluster", "cluster.toml", "--exact", "--format", "json", cwd=folder)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["bound"]["kind"] == "static"


def test_replanning_from_a_schedule(cli: Cli, folder: Path) -> None:
    first = plan(cli, folder, "--budget", "1kWh", "-o", "first.json", "--force", "--format", "json")
    finish = json.loads(first.stdout)["jobs"][0]["finish_s"]
    done = plan(
        cli, folder, "--budget", "1kWh", "--running", "first.json", "--now", f"{finish / 2}s", "--format", "json"
    )
    assert done.returncode == 0, done.stderr
    body = json.loads(done.stdout)
    assert min(s["start_s"] for s in body["segments"]) == pytest.approx(finish / 2)
    assert body["budget"]["energy_j"] < 3.6e6 and "are spent" in done.stderr
    assert plan(cli, folder, "--running", "first.json").returncode == 2


def test_a_deadline_that_cannot_be_met_is_refused_with_the_earliest_finish(
    cli: Cli, folder: Path, tmp_path: Path
) -> None:
    late = tmp_path / "late.toml"
    late.write_text(JOBS.replace("epochs = 40", 'epochs = 40\ndeadline = "10s"'))
    done = cli("plan", "--jobs", late, "--cluster", "cluster.toml", cwd=folder)
    assert done.returncode == 5 and "earliest finish" in done.stderr.splitlines()[-1]


def test_an_online_budget_needs_a_forecast_that_holds(cli: Cli, folder: Path) -> None:
    assert plan(cli, folder, "--expected-work", "400Wh").returncode == 2
    done = plan(cli, folder, "--expected-work", "300Wh", "--budget", "1kWh", "--format", "json")
    assert done.returncode == 0, done.stderr
    body = json.loads(done.stdout)
    assert body["inputs"]["policy"] == "pfprofile-online" and body["totals"]["energy_j"] <= 3.6e6
    assert plan(cli, folder, "--expected-work", "300Wh", "--budget", "1Wh").returncode == 5


def test_the_examples_plan_with_the_shipped_models(cli: Cli, tmp_path: Path) -> None:
    examples = Path(__file__).resolve().parents[2] / "examples"
    done = cli(
        "plan", "--jobs", examples / "jobs.toml", "--cluster", examples / "cluster.toml", "--budget", "6kWh",
        "--format", "json", cwd=tmp_path,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    totals = json.loads(done.stdout)["totals"]
    assert 5.0 * 3.6e6 < totals["energy_j"] <= 6.0 * 3.6e6
    assert "synthetic" in done.stderr
