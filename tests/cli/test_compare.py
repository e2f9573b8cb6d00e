"""``pfprofile compare`` as a person meets it: tables, JSON, CSV, files, notices, refusals in one line."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess

import pytest

from pfprofile.plan.compare.contract import columns

REPO = Path(__file__).resolve().parents[2]
TRACE = REPO / "examples" / "trace.csv"
Cli = Callable[..., CompletedProcess[str]]
SMALL = (
    "--trace",
    TRACE,
    "--first",
    8,
    "--policies",
    "tiresias,afs,pfprofile",
    "--knob",
    "pfprofile.energy_price=0,5e-4",
)


@pytest.fixture
def cli(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Cli:
    """The command line in this process."""
    from pfprofile.cli import app

    def run(*args: object) -> CompletedProcess[str]:
        monkeypatch.chdir(tmp_path)
        monkeypatch.setenv("COLUMNS", "120")
        capfd.readouterr()
        with pytest.raises(SystemExit) as done:
            app([str(a) for a in args])
        out, err = capfd.readouterr()
        return CompletedProcess(args, done.value.code or 0, out, err)  # type: ignore[arg-type]

    return run


def test_the_table_says_what_was_assumed(cli: Cli) -> None:
    done = cli("compare", *SMALL)
    assert done.returncode == 0, done.stderr
    assert "no --cluster: 16 nodes of 8 a100-sxm4" in done.stderr
    assert "synthetic, not measured: the models of bert" in done.stderr
    assert "8 jobs on 128 GPUs, offered load" in done.stderr
    assert "average JCT of the baseline ÷ the policy's at the same energy" in done.stdout
    assert [line.split()[0] for line in done.stdout.splitlines() if line.startswith(("tiresias", "afs", "pfp"))] == [
        "tiresias", "afs", "pfprofile", "pfprofile", "tiresias", "afs",
    ]  # fmt: skip


def test_json_csv_and_file_hold_the_same_runs(cli: Cli, tmp_path: Path) -> None:
    done = cli("compare", *SMALL, "--format", "json", "-o", "c.parquet")
    body = json.loads(done.stdout)
    assert list(body) == ["runs", "equal_energy", "inputs"]
    assert list(body["runs"][0]) == columns("runs")
    assert {m["source"] for m in body["inputs"]["models"]} == {"synthetic"}
    rows = list(csv.DictReader(io.StringIO(cli("compare", *SMALL, "--format", "csv").stdout)))
    assert [float(row["avg_jct_s"]) for row in rows] == [run["avg_jct_s"] for run in body["runs"]]
    assert (tmp_path / "c.parquet").read_bytes()[:4] == b"PAR1"
    assert cli("compare", *SMALL, "-o", "c.parquet").returncode == 2


@pytest.mark.parametrize(
    ("args", "code", "words"),
    [
        (("--trace", "nowhere.csv"), 3, "nowhere.csv: no such file"),
        (("--trace", TRACE, "--policies", "tiresia"), 2, "did you mean 'tiresias'"),
        (("--trace", TRACE, "--policies", "nowhere.py:Mine"), 3, "nowhere.py: no such file"),
        (("--trace", REPO / "pyproject.toml"), 3, "not a known trace"),
        (("--trace", TRACE, "--cluster", "nowhere.toml"), 3, "nowhere.toml: no such file"),
        (("--trace", TRACE, "--map", "submit=a"), 2, "duration is not mapped"),
        (("--trace", TRACE, "-o", "c.txt"), 2, "suffix '.txt'"),
        ((), 2, "--trace"),
    ],
)
def test_what_is_wrong_is_said_in_one_line(cli: Cli, args: tuple[object, ...], code: int, words: str) -> None:
    done = cli("compare", *args)
    assert (done.returncode, done.stdout) == (code, "")
    assert words in done.stderr
    assert len([line for line in done.stderr.splitlines() if not line.startswith("note:")]) == 1


def test_a_row_that_cannot_be_read_is_named_by_its_line(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("a,b,c\n0,60,4\n1,sixty,4\n")
    done = cli("compare", "--trace", "t.csv", "--map", "submit=a", "--map", "duration=b", "--map", "gpus=c")
    assert (done.returncode, "t.csv: line 3: column 'b' is 'sixty'" in done.stderr) == (3, True)


def test_the_schema_of_a_comparison(cli: Cli) -> None:
    schema = json.loads(cli("schema", "comparison", "--format", "json").stdout)
    assert schema["required"] == ["runs", "equal_energy"]
    assert "runs[].avg_jct_s" in cli("schema", "comparison").stdout
