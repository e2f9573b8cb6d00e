"""Artifacts are told by what they hold."""

from __future__ import annotations

import json

import pytest

from pfprofile.errors import InputError
from pfprofile.profile import Profile, write_profile
from pfprofile.report import Kind, find_artifact, read_artifact

MODEL = {"workload": "toy", "device_name": "Toy", "parameters": [], "domain": {}}


def test_a_profile_is_known_by_its_bytes_whatever_it_is_called(tmp_path, make_profile):
    path = tmp_path / "mine.json"
    write_profile(make_profile(), path)
    artifact = read_artifact(path)
    assert artifact.kind is Kind.profile
    assert isinstance(artifact.body, Profile)
    assert artifact.body.n_rows == 4


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        (MODEL, Kind.model),
        ({"segments": [], "jobs": [], "totals": {}}, Kind.schedule),
        ({"runs": [], "equal_energy": []}, Kind.comparison),
    ],
)
def test_json_artifacts_are_known_by_their_keys(write_json, body, kind):
    assert read_artifact(write_json("x.txt", body)).kind is kind


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"\xff\xfe\x00", "neither Parquet nor text"),
        (b"{not json", "neither Parquet nor JSON"),
        (b'{"runs": NaN}', "not JSON"),
        (b"3", "not an object"),
        (b"[]", "a JSON list"),
        (b'{"a": 1, "b": 2}', "'a', 'b'"),
        (b"{}", "(none)"),
        (b"", "neither Parquet nor JSON"),
        (b"[" * 200000, "nested too deeply"),
        (b"PAR1 and no more", "not a readable Parquet file"),
        (json.dumps([{"model_path": "models/toy.json"}]).encode(), "give models/toy.json instead"),
    ],
)
def test_anything_else_is_refused_with_what_was_found(tmp_path, content, words):
    path = tmp_path / "thing"
    path.write_bytes(content)
    with pytest.raises(InputError, match="thing") as caught:
        read_artifact(path)
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


def test_shipped_files_are_found_by_name():
    assert find_artifact("a100-sxm4/resnet50").suffix == ".parquet"
    assert read_artifact(find_artifact("a100-sxm4/resnet50.json")).kind is Kind.model


def test_a_missing_file_and_a_folder_are_told_apart(tmp_path):
    with pytest.raises(InputError, match="no such file"):
        find_artifact(str(tmp_path / "nothing"))
    with pytest.raises(InputError, match="a folder"):
        find_artifact(str(tmp_path))
