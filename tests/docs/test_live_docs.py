"""docs/live.md: every command and every line of Python runs and prints what the page says."""

import doctest
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[2] / "docs" / "live.md"
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE

for part in ("lance", "faiss"):
    pytest.importorskip(part, reason=f"{part} is not installed")


def commands():
    """Each command of the page with the lines that follow it."""
    for block in re.findall(r"```console\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL):
        for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            command, _, output = part.partition("\n")
            yield command, output


def test_the_commands_print_what_the_page_says(tmp_path):
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    told = [*commands()]
    assert len(told) == 24
    for command, wanted in told:
        done = subprocess.run(
            ["bash", "-c", command],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=300,
            env={**os.environ, "PATH": path},
            check=False,
        )
        assert done.returncode == 0, f"{command}: {done.stderr}"
        right = doctest.OutputChecker().check_output(wanted, done.stdout, FLAGS)
        assert right or not wanted, f"{command}: {done.stdout}"
        assert done.stdout or ">" in command
    assert {path.name for path in tmp_path.glob("shelf.*")} == {
        "shelf.parquet",
        "shelf.npz",
        "shelf.faiss",
    }


def test_the_python_prints_what_the_page_says(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    result = doctest.testfile(str(PAGE), module_relative=False, optionflags=FLAGS)
    assert result.attempted > 30
    assert result.failed == 0
