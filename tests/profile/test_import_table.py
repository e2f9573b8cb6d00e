from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pfprofile.errors import InputError, PfprofileError, UsageError
from pfprofile.profile.importers import IMPORTERS, ImportOptions, importer


def load(
    path: Path, *mapping: str, set_: tuple[str, ...] = (), where: tuple[str, ...] = (), unpivot: str | None = None
):
    return importer("table").read([path], ImportOptions(mapping, set_, where, unpivot))


@pytest.fixture
def runs(tmp_path) -> Path:
    path = tmp_path / "runs.csv"
    path.write_text("gpus,batch,time,energy,gpu\n1,8,0.5,100,A40\n2,8,0.6,130,A40\n\n1,16,[N/A],1,A40\n")
    return path


def test_units_come_from_arithmetic_and_unknown_stays_null(runs):
    done = load(runs, "step_time_s=time", "power_w=energy/time", "n_gpus=gpus", "local_batch=batch", "device_name=gpu")
    (profile,) = done.profiles
    rows = profile.rows()
    assert [r["step_time_s"] for r in rows] == [0.5, 0.6]
    assert [r["power_w"] for r in rows] == pytest.approx([200, 130 / 0.6])
    assert rows[0]["energy_j"] is None
    assert rows[0]["workload"] == "runs"
    assert profile.metadata.source == "imported"
    assert any("1 rows without a step time skipped (the first in line 5)" in n for n in done.notices)


def test_what_is_assumed_is_said(runs):
    done = load(runs, "step_time_s=time")
    text = " ".join(done.notices)
    for name in ("n_gpus", "local_batch", "device_name"):
        assert f"{name} is not given" in text
    assert any("device_name assumed" in note for note in done.profiles[0].metadata.notes)


@pytest.mark.parametrize(
    ("mapping", "set_", "error", "words"),
    [
        (
            ("step_time_s=time", "power_w=energy*1000"),
            (),
            InputError,
            "line 2: power_w is 100,000 W for one GPU: milliwatts",
        ),
        (("step_time_s=time*1e7",), (), InputError, "milliseconds or microseconds"),
        (("step_time_s=0-time",), (), InputError, "a step time of -0.5 s"),
        (("step_time_s=time", "local_batch=batch/16"), (), InputError, "local_batch is 0.5"),
        (("step_time_s=time", "n_gpus=gpus*1e300"), (), InputError, "column n_gpus"),
        (("step_time_s=gpu",), (), InputError, "line 2: gpu is 'A40', expected a number"),
        (("step_time_s=tme",), (), UsageError, "no numeric column 'tme'; did you mean 'time'"),
        (("step_time_s=time", "device_name=gpo"), (), UsageError, "no column 'gpo'; did you mean 'gpu'"),
        (("steptime_s=time",), (), UsageError, "no profile column 'steptime_s'; did you mean 'step_time_s'"),
        (("power_w=energy",), (), UsageError, "step_time_s is not mapped"),
        (("step_time_s",), (), UsageError, "is not TARGET=VALUE"),
        (("step_time_s=time",), ("n_gpus=two",), UsageError, "expected a number"),
        (("step_time_s=time",), ("gpus_per_nod=8",), UsageError, "did you mean 'gpus_per_node'"),
        (("step_time_s=time",), ("step_time_s=1",), UsageError, "both --map and --set"),
        (("step_time_s=time",), ("limited_by=magic",), UsageError, "expected one of none, power"),
    ],
)
def test_mistakes_are_named(runs, mapping, set_, error, words):
    with pytest.raises(error) as caught:
        load(runs, *mapping, set_=set_)
    assert words in str(caught.value)


def test_facts_reach_the_metadata(runs):
    facts = ("gpus_per_node=8", "samples_per_epoch=1000", "supported_clocks_mhz=1410,210", "sample_unit=token")
    metadata = load(runs, "step_time_s=time", set_=facts).profiles[0].metadata
    assert metadata.gpus_per_node == 8
    assert metadata.supported_clocks_mhz == (210.0, 1410.0)
    assert (metadata.workload.samples_per_epoch, metadata.workload.sample_unit) == (1000, "token")


@pytest.mark.parametrize(
    ("placement", "n", "k", "shown"), [("22", 4, 2, "2-2"), ("4", 4, 1, "4"), ("8-8", 16, 2, "8-8")]
)
def test_placement_gives_gpus_and_nodes(tmp_path, placement, n, k, shown):
    path = tmp_path / "p.csv"
    path.write_text(f"placement,t\n{placement},0.5\n")
    row = load(path, "placement=placement", "step_time_s=t").profiles[0].rows()[0]
    assert (row["n_gpus"], row["n_nodes"], row["placement"]) == (n, k, shown)


def test_wide_tables_unpivot_and_zero_rates_mean_not_measured(tmp_path):
    path = tmp_path / "wide.csv"
    path.write_text("batch,1,2,16\n64,2.0,4.0,0\n128,1.0,,8.0\n")
    done = load(
        path, "n_gpus=n", "step_time_s=1/rate", "local_batch=batch/n", unpivot="n=rate", set_=("gpus_per_node=8",)
    )
    rows = done.profiles[0].rows()
    assert [(r["n_gpus"], r["n_nodes"], r["local_batch"], r["step_time_s"]) for r in rows] == [
        (1, 1, 64, 0.5), (2, 1, 32, 0.25), (1, 1, 128, 1.0), (16, 2, 8, 0.125),
    ]  # fmt: skip
    assert "2 rows without a step time skipped" in done.notices[0]


def test_a_sentence_in_brackets_is_no_value(tmp_path):
    path = tmp_path / "x.csv"
    path.write_text("t,p\n0.5,[Requested functionality has been deprecated]\n0.6,100\n")
    rows = load(path, "step_time_s=t", "power_w=p").profiles[0].rows()
    assert [r["power_w"] for r in rows] == [None, 100.0]


def test_where_and_several_workloads(tmp_path):
    path = tmp_path / "many.csv"
    path.write_text("net,stage,t\na,0,0.1\nb,0,0.2\na,1,0.3\n")
    assert len(load(path, "step_time_s=t", "workload=net").profiles) == 2
    done = load(path, "step_time_s=t", where=("net=a", "stage=1.0"))
    assert [r["step_time_s"] for r in done.profiles[0].rows()] == [0.3]
    with pytest.raises(InputError, match="no row has net = c"):
        load(path, "step_time_s=t", where=("net=c",))


def test_parquet_reads_like_csv(tmp_path):
    pd.DataFrame({"t": [0.5, None], "p": [100.0, 1.0]}).to_parquet(tmp_path / "x.parquet")
    rows = load(tmp_path / "x.parquet", "step_time_s=t", "power_w=p").profiles[0].rows()
    assert [(r["step_time_s"], r["power_w"]) for r in rows] == [(0.5, 100.0)]


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "empty"), (b"a,b\n", "no rows"), (b"a,b\n1\n", "line 2: 1 fields, expected 2"),
        (b"a,a\n1,2\n", "two columns"),
        (b"t,b\n1,2\nb,t\n3,4\n", "line 3 has another header: 'b,t', the file began with 't,b'"),
        (b"t,b\n1,2\nt,b,c\n3,4,5\n", "line 3 has another header: 't,b,c'"),
        (b"\xff\xfe\x00", "not a text file"), (b"t\n[N/A]\n", "no row has a step time"),
    ],
)  # fmt: skip
def test_damaged_files(tmp_path, content, words):
    path = tmp_path / "x.csv"
    path.write_bytes(content)
    with pytest.raises(PfprofileError) as caught:
        load(path, "step_time_s=t")
    assert words in str(caught.value)


def test_every_format_is_registered_under_its_own_name():
    assert all(name == imp.name and imp.summary for name, imp in IMPORTERS.items())
    with pytest.raises(UsageError, match="did you mean 'table'"):
        importer("tabel")


def test_real_tables(data):
    perseus = load(
        data / "clock" / "perseus_gpt3_a40.csv", "step_time_s=time", "power_w=energy/time",
        "requested_clock_mhz=frequency", where=("stage=0", "instruction=forward"), set_=("device_name=NVIDIA A40",),
    ).profiles[0]  # fmt: skip
    assert max(perseus.unique("requested_clock_mhz")) == 1740
    assert perseus.rows()[0]["power_w"] == pytest.approx(298.665, abs=0.01)
    pollux = load(
        data / "scaling" / "pollux_t4" / "bert" / "placements.csv", "placement=placement", "step_time_s=step_time",
        "sync_time_s=sync_time", "local_batch=local_bsz", set_=("device_name=Tesla T4",),
    ).profiles[0]  # fmt: skip
    assert pollux.metadata.gpus_per_node == 4


_WHOLE = b"gpus,batch,time,energy,gpu\n1,8,0.5,100,A40\n2,8,0.6,130,A40\n4,16,0.7,200,A40\n"
_EDITS = st.lists(st.tuples(st.integers(0, len(_WHOLE)), st.integers(0, 6), st.binary(max_size=6)), max_size=6)


@settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=max(300, settings.default.max_examples)
)
@given(_EDITS)
def test_mangled_files_are_refused_or_become_a_profile(tmp_path, edits):
    content = _WHOLE
    for at, cut, new in edits:
        content = content[:at] + new + content[at + cut :]
    path = tmp_path / "mangled.csv"
    path.write_bytes(content)
    mapping = ("step_time_s=time", "power_w=energy/time", "n_gpus=gpus", "local_batch=batch", "device_name=gpu")
    try:
        done = load(path, *mapping)
    except PfprofileError as error:
        assert "\n" not in str(error)
        return
    for profile in done.profiles:
        assert all(row["step_time_s"] > 0 and row["n_gpus"] >= 1 for row in profile.rows())
