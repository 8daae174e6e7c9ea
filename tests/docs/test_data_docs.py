"""docs/data.md: its examples run, and it leaves out no public name and no data set."""

import doctest
from pathlib import Path

import pytest

import streamhash.lab.datasets as data

PAGE = Path(__file__).parents[2] / "docs" / "data.md"


def test_the_examples_run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("STREAMHASH_CACHE", str(tmp_path / "cache"))
    result = doctest.testfile(str(PAGE), module_relative=False)
    assert result.attempted > 15
    assert result.failed == 0


@pytest.mark.parametrize("name", data.__all__)
def test_every_public_name_is_explained(name):
    assert f"`{name}" in PAGE.read_text(encoding="utf-8")


@pytest.mark.parametrize("card", data.available(), ids=lambda card: card.name)
def test_every_set_is_in_the_table_with_its_size(card):
    row = f"| `{card.name}` | {card.rows:,} × {card.features:,} | {card.classes} |"
    assert row in PAGE.read_text(encoding="utf-8")
