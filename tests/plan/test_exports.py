"""Exports: schedules cut into stretches, no name can break a script, manifests are valid, folders are whole."""

from __future__ import annotations

import csv
import json
import shlex
import subprocess
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from pfprofile.cli import app
from pfprofile.errors import InputError, OutputError, UsageError
from pfprofile.placeholders import OF_A_POINT
from pfprofile.plan.exports import EXPORTERS, export
from pfprofile.plan.exports.base import JobFacts, parse_target, slug
from pfprofile.plan.exports.cutting import cut
from pfprofile.train.command import CommandTemplate

ROOT = Path(__file__).parents[2]


def segment(job, kind, start, end, gpus, clock, rate=100.0):
    return {
        "job": job, "kind": kind, "start_s": start, "end_s": end, "n_gpus": len(gpus), "gpus": gpus,
        "sm_clock_mhz": clock, "throughput_per_s": rate if kind == "run" else 0.0, "job_power_w": 1.0, "energy_j": 1.0,
    }  # fmt: skip


TWO = ["n1:0", "n1:1"]
#: a changes its clock, then grows; b takes what a left, later than it could; c runs unlocked over two nodes
SEGMENTS = [
    segment("a", "run", 0.0, 10.0, TWO, 1410.0),
    segment("c", "run", 0.0, 40.0, [f"{n}:{i}" for n in ("n3", "n4") for i in range(8)], None),
    segment("a", "run", 10.0, 20.0, TWO, 1200.0),
    segment("a", "rescale", 20.0, 24.0, ["n1:4", "n1:5", "n1:6", "n1:7"], 1200.0),
    segment("a", "run", 24.0, 30.5, ["n1:4", "n1:5", "n1:6", "n1:7"], 1200.0, 200.0),
    segment("b", "run", 50.0, 60.0, TWO, 900.0),
]


def facts(name, **changes):
    given = {"workload": "resnet50", "zoo": True, "precision": "bf16", "global_batch": 64, **changes}
    return JobFacts(name, **given)


def plan_of(segments=SEGMENTS, **jobs):
    names = list(dict.fromkeys(s["job"] for s in segments))
    known = {name: jobs.get(name, facts(name)) for name in names}
    ends = [{"name": name, "finish_s": 1.0} for name in names]
    return cut({"segments": segments, "jobs": ends}, [(32, 1)] * len(segments), known, 0.0)


def test_stretches_are_a_jobs_time_on_the_same_gpus() -> None:
    plan = plan_of()
    told = [(s.slug, s.start_s, s.end_s, s.clocks, s.after, s.begin_s, s.last) for s in plan.stretches]
    assert told == [
        ("001-a-s1", 0.0, 20.0, ((0.0, 1410.0), (10.0, 1200.0)), (), None, False),
        ("002-c-s1", 0.0, 40.0, ((0.0, None),), (), None, True),
        ("003-a-s2", 20.0, 30.5, ((0.0, 1200.0),), (1,), None, True),
        ("004-b-s1", 50.0, 60.0, ((0.0, 900.0),), (1,), 50.0, True),
    ]
    first, second = plan.stretches[0], plan.stretches[2]
    assert (first.first_step, first.last_step) == (0, round(2000 / 64))
    assert (second.first_step, second.last_step) == (first.last_step, -(-3300 // 64))
    assert plan.stretches[1].gpus == {"n3": tuple(range(8)), "n4": tuple(range(8))}


def test_scripts_say_what_the_schedule_says() -> None:
    command = "train --batch {local_batch} --gpus {n_gpus} --steps {steps} '{{x}}'"
    files = EXPORTERS["slurm"].files(plan_of(a=facts("a", command=command, partition="p q", account="acc")), {
        "qos": "high", "gpu": "a100"})  # fmt: skip
    script = files["001-a-s1.sbatch"]
    for line in ("--nodes=1", "--nodelist=n1", "--gres=gpu:a100:2", '--partition="p q"', "--account=acc", "--qos=high",
                 "--comment=pfprofile:clock=1410", "--ntasks-per-node=1", "--time=0-00:06:00"):  # fmt: skip
        assert f"#SBATCH {line}\n" in script
    assert "clocks=(0:1410 10:1200)\n" in script and "end_after_s=0\n" in script
    assert shlex.split(script.partition("command=")[2].splitlines()[0]) == [
        "train --batch 32 --gpus 2 --steps 31 '{x}'"
    ]
    zoo = files["002-c-s1.sbatch"]
    assert "clocks=()\n" in zoo and "--nodelist=n3,n4\n" in zoo and "--ntasks-per-node=8\n" in zoo
    assert "python -m pfprofile.train resnet50 --first-step 0 --last-step 63 --local-batch 32" in zoo
    assert "--precision bf16" in zoo
    assert "submit 4 --dependency=afterany:${id[1]} --begin=now+50 004-b-s1.sbatch" in files["submit.sh"]


def test_a_command_that_knows_no_end_is_ended_at_the_planned_time() -> None:
    files = EXPORTERS["slurm"].files(plan_of(a=facts("a", command="train")), EXPORTERS["slurm"].options)
    assert "end_after_s=20\n" in files["001-a-s1.sbatch"]
    assert "end_after_s=0\n" in files["003-a-s2.sbatch"]  # its last part ends by itself
    kube = EXPORTERS["kubernetes"].files(plan_of(a=facts("a", command="train")), EXPORTERS["kubernetes"].options)
    env = {e["name"]: e["value"] for e in container(kube, "pf-001-a-s1.json")["env"]}
    assert env["END_AFTER_S"] == "20" and env["CLOCKS"] == "0:1410 10:1200" and env["COMMAND"] == "train"


def container(files, name):
    return json.loads(files[name])["items"][-1]["spec"]["template"]["spec"]["containers"][0]


def test_nothing_says_how_to_start_it() -> None:
    with pytest.raises(InputError, match=r"job 'a': nothing says how to start it.*'mine' is not in the zoo"):
        EXPORTERS["slurm"].files(plan_of(a=facts("a", workload="mine", zoo=False)), EXPORTERS["slurm"].options)
    with pytest.raises(InputError, match=r"unknown placeholder {locl_batch}; did you mean 'local_batch'"):
        EXPORTERS["slurm"].files(plan_of(a=facts("a", command="x {locl_batch}")), EXPORTERS["slurm"].options)


NASTY = st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1, max_size=40) | st.sampled_from(
    [
        "'; touch hurt; '",
        "$(touch hurt)",
        "a\n#SBATCH --uid=0\ntouch hurt",
        '"',
        "`touch hurt`",
        "--wrap",
        "../../x",
        "ä",
    ]
)


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(NASTY, NASTY)
def test_no_name_breaks_a_script(tmp_path, name, account) -> None:
    """What comes before the training runs in bash: nothing else happens, and the names arrive."""
    job = facts(name, account=account, partition=name, command="true")
    rows = [{**row, "job": name} for row in SEGMENTS[:1]]
    files = EXPORTERS["slurm"].files(plan_of(rows, **{name: job}), EXPORTERS["slurm"].options)
    (script,) = [text for path, text in files.items() if path.endswith(".sbatch")]
    head, _, body = script.partition("\nset -u\n")
    assert [line for line in head.splitlines() if line.startswith("#SBATCH --job-name")] == [
        f"#SBATCH --job-name=001-{slug(name)}-s1"
    ]
    first = head.split("\nexport ")[0].split("\n")
    assert all(line.startswith("#") for line in first)
    assert sum("=" in line and line.startswith("#SBATCH") for line in first) <= 12
    done = subprocess.run(
        ["bash", "-c", head + '\nprintf %s "$PFPROFILE_JOB"'], capture_output=True, check=True, cwd=tmp_path
    )
    assert done.stdout.decode() == name and not list(tmp_path.iterdir())
    subprocess.run(["bash", "-n"], input=body, text=True, check=True)
    assert all(part not in ("", ".", "..") and "/" not in part for part in [slug(name)])
    kube = EXPORTERS["kubernetes"].files(plan_of(rows, **{name: job}), EXPORTERS["kubernetes"].options)
    subprocess.run(["bash", "-n"], input=kube["apply.sh"], text=True, check=True)


@pytest.mark.parametrize("version", ["1.29", "1.33"])
def test_manifests_are_valid(version) -> None:
    validate = pytest.importorskip("kubernetes_validate", reason="needs the official schemas").validate
    files = EXPORTERS["kubernetes"].files(plan_of(), {**EXPORTERS["kubernetes"].options, "claim": "work"})
    manifests = [item for name in files if name.endswith(".json") for item in json.loads(files[name])["items"]]
    assert sorted(m["kind"] for m in manifests) == ["Job"] * 4 + ["Service"]
    for manifest in manifests:
        validate(manifest, version, strict=True)
    jobs = {m["metadata"]["name"]: m["spec"] for m in manifests if m["kind"] == "Job"}
    both = jobs["pf-002-c-s1"]
    assert (both["completions"], both["parallelism"], both["completionMode"]) == (2, 2, "Indexed")
    assert all(spec["suspend"] for spec in jobs.values())
    pod = both["template"]["spec"]
    where = pod["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    assert where["nodeSelectorTerms"][0]["matchExpressions"][0]["values"] == ["n3", "n4"]
    assert pod["containers"][0]["resources"] == {"limits": {"nvidia.com/gpu": "8"}}
    assert "securityContext" not in pod["containers"][0]  # no clock to lock
    locked = jobs["pf-001-a-s1"]["template"]["spec"]["containers"][0]
    assert locked["securityContext"] == {"privileged": True}
    bare = EXPORTERS["kubernetes"].files(plan_of(), {**EXPORTERS["kubernetes"].options, "privileged": "no"})
    assert "securityContext" not in container(bare, "pf-001-a-s1.json")


def test_tables_hold_the_contracts_columns(tmp_path) -> None:
    export(plan_of(), f"csv:{tmp_path / 'c'}")
    with (tmp_path / "c" / "segments.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert list(rows[0]) == list(SEGMENTS[0]) and len(rows) == len(SEGMENTS)
    assert rows[0]["gpus"] == "n1:0 n1:1" and rows[1]["sm_clock_mhz"] == ""


@pytest.mark.parametrize(
    ("target", "words"),
    [
        ("slrm:x", "unknown target 'slrm'; did you mean 'slurm'"),
        ("slurm", "no folder"),
        ("slurm:", "no folder"),
        ("slurm:x,qs=a", "unknown option 'qs=a'; did you mean 'qos'"),
        ("csv:x,a=b", "csv takes none"),
    ],
)
def test_wrong_targets_are_refused(target, words) -> None:
    with pytest.raises(UsageError) as error:
        parse_target(target, EXPORTERS)
    assert words in str(error.value)


def test_kubernetes_leaves_every_dollar_as_it_is() -> None:
    files = EXPORTERS["kubernetes"].files(plan_of(a=facts("a", command="echo $$ $(date) ${{HOME}}")), {
        **EXPORTERS["kubernetes"].options})  # fmt: skip
    env = {e["name"]: e["value"] for e in container(files, "pf-001-a-s1.json")["env"]}
    assert env["COMMAND"] == "echo $$$$ $$(date) $${HOME}"
    script = container(files, "pf-001-a-s1.json")["command"][2]
    assert "$(" not in script.replace("$$", "")


def test_unequal_shares_of_nodes_are_refused_before_anything_is_written(tmp_path) -> None:
    rows = [segment("a", "run", 0.0, 10.0, ["n1:0", "n1:1", "n2:0"], 1410.0)]
    for target in ("slurm", "kubernetes"):
        with pytest.raises(InputError, match=r"job 'a': part 1 has unequal shares of its nodes: 2 on n1, 1 on n2"):
            export(plan_of(rows), f"{target}:{tmp_path / target}")
    assert not list(tmp_path.iterdir())
    export(plan_of(rows), f"csv:{tmp_path / 'c'}")


@pytest.mark.parametrize(("target", "script"), [("slurm", "submit.sh"), ("kubernetes", "apply.sh"), ("csv", None)])
def test_an_empty_schedule_is_exported_as_one(tmp_path, target, script) -> None:
    export(plan_of([]), f"{target}:{tmp_path / 'x'}")
    if script is None:
        assert (tmp_path / "x" / "segments.csv").read_text() == ",".join(SEGMENTS[0]) + "\n"
        assert (tmp_path / "x" / "jobs.csv").read_text().startswith("name,submit_s,")
    else:
        done = subprocess.run([tmp_path / "x" / script], capture_output=True, text=True, check=True)
        assert "the schedule is empty" in done.stderr


def test_what_was_swept_can_be_scheduled() -> None:
    words = " ".join(f"{{{name}}}" for name in OF_A_POINT)
    CommandTemplate.parse(words)
    files = EXPORTERS["slurm"].files(plan_of(a=facts("a", command=words)), EXPORTERS["slurm"].options)
    assert "command='2 1 2 32 1 64 1410 1410'\n" in files["001-a-s1.sbatch"]
    free = EXPORTERS["slurm"].files(plan_of(c=facts("c", command="{sm_clock_mhz}")), EXPORTERS["slurm"].options)
    assert "command=default\n" in free["002-c-s1.sbatch"]


def test_an_export_of_ones_own(tmp_path) -> None:
    own = ROOT / "examples" / "export.py"
    export(plan_of(), f"{own}:Markdown:{tmp_path / 'm'},title=Night")
    text = (tmp_path / "m" / "plan.md").read_text()
    assert text.startswith("# Night\n") and "| c | 0 s | 40 s | 16 | n3, n4 | default |" in text
    with pytest.raises(InputError, match="did you mean 'Markdown'"):
        parse_target(f"{own}:Markdwn:x", EXPORTERS)
    with pytest.raises(UsageError, match="no folder"):
        parse_target(f"{own}:Markdown", EXPORTERS)


def test_folders_are_kept_or_replaced_whole(tmp_path) -> None:
    ask = ["plan", "--jobs", str(ROOT / "examples/jobs.toml"), "--cluster", str(ROOT / "examples/cluster.toml"), "-o",
           str(tmp_path / "s.json"), "--force"]  # fmt: skip
    mine = tmp_path / "mine"
    mine.mkdir()
    (mine / "notes.txt").write_text("mine")
    for force in ([], ["--force"]):
        kept = CliRunner().invoke(app, [*ask[:-1], *force, "--export", f"slurm:{mine}"])
        assert kept.exit_code == 2 and "holds notes.txt, which no export wrote" in kept.output
    assert [p.name for p in mine.iterdir()] == ["notes.txt"] and not (tmp_path / "s.json").exists()
    (mine / "notes.txt").unlink()
    both = ["--export", f"slurm:{mine}", "--export", f"csv:{tmp_path / 'c'}"]
    done = CliRunner().invoke(app, [*ask, *both])
    assert done.exit_code == 0, done.output
    again = CliRunner().invoke(app, [*ask[:-2], str(tmp_path / "t.json"), *both])
    assert again.exit_code == 2 and "is not empty" in again.output
    done = CliRunner().invoke(app, [*ask, *both])
    assert done.exit_code == 0, done.output
    manifest = json.loads((mine / "manifest.json").read_text())
    assert {s["script"] for s in manifest["stretches"]} == {p.name for p in mine.glob("*.sbatch")}
    assert sorted(p.name for p in tmp_path.iterdir()) == ["c", "mine", "s.json"]
    (mine / "checkpoints").mkdir()  # a run of it has left something
    kept = CliRunner().invoke(app, [*ask, *both])
    assert kept.exit_code == 2 and "checkpoints" in kept.output
    blocked = CliRunner().invoke(app, [*ask, "--export", f"csv:{tmp_path / 's.json' / 'x'}"])
    assert blocked.exit_code == 4 and "cannot be written" in blocked.output


def test_a_folder_that_cannot_be_put_in_place_leaves_the_old_one(tmp_path, monkeypatch) -> None:
    export(plan_of(), f"csv:{tmp_path / 'c'}")
    before = (tmp_path / "c" / "segments.csv").read_text()
    replace = Path.replace

    def failing(self: Path, target: Path) -> Path:
        if Path(target) == tmp_path / "c" and self.name != "old":
            raise OSError(28, "No space left on device")
        return replace(self, target)

    monkeypatch.setattr(Path, "replace", failing)
    with pytest.raises(OutputError, match="No space left"):
        export(plan_of(SEGMENTS[:1]), f"csv:{tmp_path / 'c'}")
    assert (tmp_path / "c" / "segments.csv").read_text() == before
    assert [p.name for p in tmp_path.iterdir()] == ["c"]
