"""The command as a person meets it."""

from __future__ import annotations

import subprocess
import sys
from importlib.util import find_spec as real_find_spec

import pytest

from pfprofile.errors import HardwareError
from pfprofile.report import build_report


def test_the_default_output_is_replaced_and_an_explicit_one_is_kept(cli, tmp_path, write_json, comparison_body):
    write_json("c.json", comparison_body)
    (tmp_path / "report.html").write_text("old")
    done = cli("report", "c.json")
    assert (done.returncode, done.stdout) == (0, "")
    assert "wrote report.html" in done.stderr
    # Another process, another hash seed: the same bytes all the same.
    assert (tmp_path / "report.html").read_text(encoding="utf-8") == build_report([str(tmp_path / "c.json")])
    refused = cli("report", "c.json", "-o", "report.html")
    assert refused.returncode == 2
    assert "--force" in refused.stderr
    assert cli("report", "c.json", "-o", "report.html", "--force").returncode == 0


def test_an_unknown_file_is_exit_3_and_leaves_nothing(cli, tmp_path):
    (tmp_path / "x.json").write_text('{"hello": 1}')
    done = cli("report", "x.json")
    assert done.returncode == 3
    assert "expected a profile" in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1
    assert not (tmp_path / "report.html").exists()


def test_a_missing_extra_is_exit_4_and_names_it(monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None if name == "jinja2" else real_find_spec(name))
    with pytest.raises(HardwareError, match=r"jinja2.*pip install 'pfprofile\[report\]'") as caught:
        build_report(["x"])
    assert caught.value.exit_code == 4


def test_the_room_loads_no_drawing_library_until_it_draws():
    code = "import sys, pfprofile.report\nprint([m for m in ('matplotlib', 'jinja2') if m in sys.modules])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"
