"""docs/search.md: its examples run, and it leaves out no public name."""

import doctest
from pathlib import Path

import pytest

import streamhash.search as search
from streamhash.threads import using_threads

PAGE = Path(__file__).parents[2] / "docs" / "search.md"


def test_the_examples_run(tmp_path, monkeypatch):
    for part in ("faiss", "pyarrow"):
        pytest.importorskip(part, reason=f"{part} is not installed")
    monkeypatch.chdir(tmp_path)
    with using_threads(1):
        result = doctest.testfile(str(PAGE), module_relative=False)
    assert result.attempted > 40
    assert result.failed == 0


@pytest.mark.parametrize("name", [*search.__all__, "reverse_bits"])
def test_every_public_name_is_explained(name):
    assert f"`{name}" in PAGE.read_text(encoding="utf-8")
