from __future__ import annotations

import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pfprofile.errors import InputError, OutputError
from pfprofile.profile import Profile, read_profile, write_profile
from pfprofile.profile.metadata import KEYS, to_json
from pfprofile.profile.schema import COLUMN_NAMES, METADATA_KEY, arrow_schema


def test_round_trip_keeps_rows_metadata_and_digest(make_profile, tmp_path):
    profile = make_profile(clocks=(None, 1410.0), argv=("pfprofile", "sweep"), supported_clocks_mhz=(210.0, 1410.0))
    write_profile(profile, tmp_path / "p.parquet")
    back = read_profile(tmp_path / "p.parquet")
    assert back.rows() == profile.rows()
    assert back.metadata == profile.metadata
    assert back.digest() == profile.digest()


def test_every_column_has_a_description_and_numbers_have_a_unit(make_profile, tmp_path):
    write_profile(make_profile(), tmp_path / "p.parquet")
    schema = pq.read_schema(tmp_path / "p.parquet")
    assert tuple(schema.names) == COLUMN_NAMES
    for field in schema:
        assert field.metadata[b"description"]
        unit = field.metadata[b"unit"].decode()
        for suffix, expected in (("_s", "s"), ("_w", "W"), ("_j", "J"), ("_mhz", "MHz"), ("_bytes", "B"), ("_c", "°C")):
            if field.name.endswith(suffix):
                assert unit == expected


def test_metadata_table_lists_exactly_the_blob(make_profile):
    assert set(json.loads(to_json(make_profile().metadata))) == set(KEYS)


def test_unknown_is_null_never_zero(make_profile, tmp_path):
    write_profile(make_profile(), tmp_path / "p.parquet")
    table = pq.read_table(tmp_path / "p.parquet")
    assert table["energy_j"].null_count == table.num_rows


def test_file_is_whole_or_absent_and_no_temp_is_left(make_profile, tmp_path):
    target = tmp_path / "deep" / "p.parquet"
    write_profile(make_profile(), target)
    before = target.read_bytes()
    broken = Profile(make_profile().table.drop_columns(["steps"]), make_profile().metadata)
    with pytest.raises(ValueError, match="schema"):
        write_profile(broken, target)
    assert target.read_bytes() == before
    assert [p.name for p in target.parent.iterdir()] == ["p.parquet"]


def test_folder_that_cannot_be_written_is_one_line(make_profile, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(OutputError, match="cannot write"):
        write_profile(make_profile(), tmp_path / "file" / "p.parquet")


def _write(table: pa.Table, blob: dict | str | None, path):
    text = blob if isinstance(blob, str) or blob is None else json.dumps(blob)
    metadata = {} if text is None else {METADATA_KEY: text.encode()}
    pq.write_table(table.replace_schema_metadata(metadata), path)
    return path


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda t, m: (t, {**m, "format_version": 99}), "format version 99 is newer"),
        (lambda t, m: (t, {**m, "format_version": None}), "no usable format_version"),
        (lambda t, m: (t, {**m, "source": "guessed"}), "measured, synthetic, imported"),
        (lambda t, m: (t, {**m, "sourse": "x"}), "unknown metadata key 'sourse'; did you mean 'source'"),
        (lambda t, m: (t, {**m, "gpu_uuids": "GPU-1"}), "expected a list of strings"),
        (lambda t, m: (t, {**m, "workload": {"samples": 1}}), "metadata workload"),
        (lambda t, m: (t, "{"), "is not JSON"),
        (lambda t, m: (t, None), "not a pfprofile profile"),
        (lambda t, m: (t.drop_columns(["power_w"]), m), "column 'power_w' is missing (expected double)"),
        (lambda t, m: (t.append_column("stepz", t["steps"]), m), "unknown column 'stepz'; did you mean 'steps'"),
        (lambda t, m: (_retyped(t, "n_gpus", pa.string()), m), "column 'n_gpus' is string (expected int64)"),
        (lambda t, m: (_replaced(t, "status", ["fine"] * t.num_rows), m), "holds 'fine' (expected one of ok, oom"),
        (lambda t, m: (_replaced(t, "workload", [None] * t.num_rows), m), "'workload' has 4 empty values"),
    ],
)
def test_foreign_or_damaged_files_are_refused_in_one_line(make_profile, tmp_path, change, words):
    profile = make_profile()
    table, blob = change(profile.table, json.loads(to_json(profile.metadata)))
    path = _write(table, blob, tmp_path / "p.parquet")
    with pytest.raises(InputError) as caught:
        read_profile(path)
    assert words in str(caught.value)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)


def _replaced(table: pa.Table, name: str, values: list) -> pa.Table:
    return table.set_column(table.column_names.index(name), name, pa.array(values, type=pa.string()))


def _retyped(table: pa.Table, name: str, kind: pa.DataType) -> pa.Table:
    return table.set_column(table.column_names.index(name), name, table[name].cast(kind))


def test_not_parquet_and_missing(tmp_path):
    (tmp_path / "p.parquet").write_text("hello")
    with pytest.raises(InputError, match="not a readable Parquet"):
        read_profile(tmp_path / "p.parquet")
    with pytest.raises(InputError, match="no such file"):
        read_profile(tmp_path / "q.parquet")
    with pytest.raises(InputError, match="a folder, not a file"):
        read_profile(tmp_path)
    (tmp_path / "m.json").write_text('{"workload": 1}')
    with pytest.raises(InputError, match="a model or a schedule"):
        read_profile(tmp_path / "m.json")


def test_rows_name_the_bad_one(make_profile):
    with pytest.raises(InputError, match="column step_time_s"):
        Profile.from_rows([{**make_profile().rows()[0], "step_time_s": "fast"}], make_profile().metadata)
    with pytest.raises(InputError, match="row 0: column workload is empty"):
        Profile.from_rows([{"step_time_s": 1.0}], make_profile().metadata)
    with pytest.raises(InputError, match="unknown column 'speed'"):
        Profile.from_rows([{"speed": 1}], make_profile().metadata)


def test_schema_is_stable():
    assert arrow_schema().field("started_at").type == pa.timestamp("us", tz="UTC")
