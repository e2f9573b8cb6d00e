"""Every command that the README and the docs show is run, in order, in one folder a document.

A fenced ``console`` block holds commands after ``$``; the lines below a command are its output, or, up to ``END``, the
text of its ``<<'END'``. A comment
``<!-- not run: REASON -->`` right above a block says why it cannot run here (a GPU, root, minutes).
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

REPO = Path(__file__).resolve().parents[2]
DOCUMENTS = [REPO / "README.md", *sorted((REPO / "docs").glob("*.md")), REPO / "profiles" / "README.md"]
BLOCK = re.compile(r"(?:<!-- not run: (?P<reason>[^>]+) -->\n)?```(?P<kind>\w*)\n(?P<body>.*?)```", re.DOTALL)
SHELLS = ("console", "sh", "bash", "shell")


def commands_of(text: str) -> list[tuple[str, list[str]]]:
    """The commands of all runnable blocks, continuation lines joined, each with the output shown below it."""
    found: list[tuple[str, list[str]]] = []
    for block in BLOCK.finditer(text):
        if block["kind"] != "console" or block["reason"]:
            continue
        text = False  # inside a command's own text
        for line in block["body"].replace("\\\n", " ").splitlines():
            if text:
                found[-1] = (f"{found[-1][0]}\n{line}", [])
                text = line != "END"
            elif line.startswith("$ "):
                found.append((line[2:], []))
                text = line.endswith("<<'END'")
            elif found:
                found[-1][1].append(line.rstrip())
    return found


def _words(text: str) -> list[str]:
    """Lines without their figures: another processor's last digit may move a clock by one step, the words stay."""
    return [" ".join(re.sub(r"[\d.]+", "#", line).split()) for line in text.rstrip().splitlines()]


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda p: str(p.relative_to(REPO)))
def test_shown_commands_run(document, tmp_path, zygote):
    commands = commands_of(document.read_text(encoding="utf-8"))
    shutil.copytree(REPO / "examples", tmp_path / "examples")
    # A pfprofile on PATH, whichever way this one was installed, and one that starts quickly.
    launcher = tmp_path / "bin" / "pfprofile"
    launcher.parent.mkdir()
    client = REPO / "tests" / "support" / "zygote.py"
    launcher.write_text(f'#!/bin/sh\nexec {sys.executable} -S -E {client} {zygote} "$@"\n')
    launcher.chmod(0o755)
    path = os.pathsep.join([str(launcher.parent), str(Path(sys.executable).parent), os.environ["PATH"]])
    env = {**os.environ, "PATH": path, "PYTHONPATH": str(REPO), "COLUMNS": "80"}
    for command, shown in commands:
        done = subprocess.run(command, shell=True, cwd=tmp_path, env=env, capture_output=True, text=True, check=False)
        assert done.returncode == 0, f"{document.name}: {command}\n{done.stderr}"
        if shown:
            assert _words(done.stdout + done.stderr) == _words("\n".join(shown)), f"{document.name}: {command}"


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda p: str(p.relative_to(REPO)))
def test_shell_blocks_are_console_blocks(document):
    """A command in a block of another kind would never be run."""
    kinds = [b["kind"] for b in BLOCK.finditer(document.read_text(encoding="utf-8")) if b["kind"] in SHELLS]
    assert set(kinds) <= {"console"}
