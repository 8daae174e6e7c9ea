"""docs/live.md: every command and every line of Python runs and prints what the page says."""

import pytest

from pages import commands, run_command, run_examples, says

PAGE = "docs/live.md"
pytestmark = pytest.mark.slow

for part in ("lance", "faiss"):
    pytest.importorskip(part, reason=f"{part} is not installed")


def test_the_commands_print_what_the_page_says(tmp_path):
    shown = [*commands(PAGE)]
    assert len(shown) == 30
    for command, wanted in shown:
        printed = run_command(command, tmp_path)
        assert not wanted or says(wanted, printed), f"{command}: {printed}"
        assert printed or ">" in command
    assert {path.suffix for path in tmp_path.glob("*.*")} >= {".parquet", ".npz", ".faiss"}


def test_the_python_prints_what_the_page_says(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert run_examples(PAGE) > 20
