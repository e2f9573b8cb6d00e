"""Classes of one's own in place of registered names."""

from __future__ import annotations

import pytest
from typer.testing import CliRunner

from pfprofile.cli import app
from pfprofile.errors import InputError
from pfprofile.plugins import load_class, names_a_class


@pytest.fixture
def own(tmp_path):
    path = tmp_path / "own.py"
    path.write_text("class Good:\n    def read(self): ...\n\nclass Bad:\n    read = 3\n\nx = 1\n")
    return path


def test_what_names_a_class():
    assert names_a_class("a/b.py:C") and names_a_class("b.py")
    assert not names_a_class("zeus:0.5") and not names_a_class("cuda")


def test_the_class_is_found(own):
    assert load_class(f"{own}:Good", "importer", ("read",)).__name__ == "Good"


@pytest.mark.parametrize(
    ("member", "words"),
    [(":God", "did you mean 'Good'"), (":x", "no importer class 'x'"), ("", "own.py:Good"), (":Bad", "lacks read")],
)
def test_what_is_no_such_class_is_said_with_what_would_be(own, member, words):
    with pytest.raises(InputError, match=words):
        load_class(f"{own}{member}", "importer", ("read",))


def test_a_file_that_does_not_run_or_is_missing_is_one_line(tmp_path):
    (tmp_path / "broken.py").write_text("1 / 0\n")
    with pytest.raises(InputError, match="does not run: ZeroDivisionError"):
        load_class(f"{tmp_path / 'broken.py'}:A", "policy", ())
    with pytest.raises(InputError, match="no such file"):
        load_class(f"{tmp_path / 'absent.py'}:A", "policy", ())


@pytest.mark.parametrize(
    "line",
    [
        ["import", "OWN:God", "x.json"],
        ["sweep", "resnet18", "--device", "OWN:God"],
        ["plan", "--policy", "OWN:God"],
    ],
)
def test_commands_pass_the_words_on(own, line):
    done = CliRunner().invoke(app, [word.replace("OWN", str(own)) for word in line])
    assert done.exit_code == 3
    assert "class 'God'" in done.output
    assert done.output.count("\n") == 1
