"""``plan --models``: models in a device's folder, loose in the folder, or one file."""

from __future__ import annotations

from pathlib import Path

import pytest

from pfprofile.errors import InputError
from pfprofile.plan.inputs import load_inputs
from tests.plan.fitted import save


@pytest.mark.parametrize("kind", ["nested", "loose", "file"])
def test_a_model_is_found_wherever_it_lies(tmp_path: Path, kind: str) -> None:
    path = save(tmp_path / "made", workload="mine")
    folder = tmp_path / "made"
    if kind != "nested":
        folder = tmp_path / "loose"
        folder.mkdir()
        (folder / "notes.json").write_text("{}", encoding="utf-8")
        path = path.rename(folder / "anything.json")
    inputs = load_inputs(None, None, path if kind == "file" else folder)
    assert [job.name for job in inputs.jobs] == ["a100-sxm4/mine"]
    jobs = tmp_path / "jobs.toml"
    jobs.write_text('[[job]]\nname = "a"\nmodel = "mine"\nepochs = 1\n', encoding="utf-8")
    named = load_inputs(jobs, None, path if kind == "file" else folder)
    assert named.provenance["models"][0]["name"] == "a100-sxm4/mine"


def test_a_file_that_is_no_model_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "other.json"
    path.write_text("{}", encoding="utf-8")
    with pytest.raises(InputError, match=r"other\.json"):
        load_inputs(None, None, path)
