"""Every command that the README and the docs show is run, in order, in one folder a document.

A fenced ``console`` block holds commands after ``$``; the lines below a command are its output. A comment
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


def commands_of(text: str) -> list[str]:
    """The commands of all runnable blocks, continuation lines joined."""
    found = []
    for block in BLOCK.finditer(text):
        if block["kind"] != "console" or block["reason"]:
            continue
        body = block["body"].replace("\\\n", " ")
        found += [line[2:] for line in body.splitlines() if line.startswith("$ ")]
    return found


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda p: str(p.relative_to(REPO)))
def test_shown_commands_run(document, tmp_path):
    commands = commands_of(document.read_text(encoding="utf-8"))
    shutil.copytree(REPO / "examples", tmp_path / "examples")
    # A pfprofile on PATH, whichever way this one was installed.
    launcher = tmp_path / "bin" / "pfprofile"
    launcher.parent.mkdir()
    launcher.write_text(f'#!/bin/sh\nexec {sys.executable} -m pfprofile "$@"\n')
    launcher.chmod(0o755)
    path = os.pathsep.join([str(launcher.parent), str(Path(sys.executable).parent), os.environ["PATH"]])
    env = {**os.environ, "PATH": path, "PYTHONPATH": str(REPO)}
    for command in commands:
        done = subprocess.run(command, shell=True, cwd=tmp_path, env=env, capture_output=True, text=True, check=False)
        assert done.returncode == 0, f"{document.name}: {command}\n{done.stderr}"


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda p: str(p.relative_to(REPO)))
def test_shell_blocks_are_console_blocks(document):
    """A command in a block of another kind would never be run."""
    kinds = [b["kind"] for b in BLOCK.finditer(document.read_text(encoding="utf-8")) if b["kind"] in SHELLS]
    assert set(kinds) <= {"console"}
