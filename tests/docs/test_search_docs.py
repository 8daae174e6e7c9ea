"""docs/search.md: its examples run, and it leaves out no public name."""

import pytest

import streamhash.search as search
from pages import read_page, run_examples
from streamhash.threads import using_threads

PAGE = "docs/search.md"


@pytest.mark.slow
def test_the_examples_run(tmp_path, monkeypatch):
    for part in ("faiss", "pyarrow"):
        pytest.importorskip(part, reason=f"{part} is not installed")
    monkeypatch.chdir(tmp_path)
    with using_threads(1):
        assert run_examples(PAGE) > 30


@pytest.mark.parametrize("name", [*search.__all__, "reverse_bits"])
def test_every_public_name_is_explained(name):
    assert f"`{name}" in read_page(PAGE)
