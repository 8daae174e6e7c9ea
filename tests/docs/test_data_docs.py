"""docs/data.md: its examples run, and it leaves out no public name and no data set."""

import pytest

import streamhash.lab.datasets as data
from pages import read_page, run_examples

PAGE = "docs/data.md"


def test_the_examples_run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("STREAMHASH_CACHE", str(tmp_path / "cache"))
    assert run_examples(PAGE) > 15


@pytest.mark.parametrize("name", data.__all__)
def test_every_public_name_is_explained(name):
    assert f"`{name}" in read_page(PAGE)


@pytest.mark.parametrize("card", data.available(), ids=lambda card: card.name)
def test_every_set_is_in_the_table_with_its_size(card):
    row = f"| `{card.name}` | {card.rows:,} × {card.features:,} | {card.classes} |"
    assert row in read_page(PAGE)
