"""The page on operations: its commands run, and the files it names are there."""

import re

import pytest
from sklearn.datasets import load_digits

from pages import ROOT, commands, read_page, run_command
from streamhash import SDOH
from streamhash.live import Collection

PAGE = read_page("docs/operations.md")


@pytest.mark.slow
def test_the_drill_can_be_done(tmp_path):
    X, y = load_digits(return_X_y=True)
    with Collection.create(tmp_path / "shop", SDOH(16, memory=0, features=None)) as items:
        items.add(range(300), X[:300], y[:300])
        shown = [command for command, _ in commands("docs/operations.md")]
        assert len(shown) == 6
        printed = [run_command(command, tmp_path) for command in shown]  # while it is in use
    assert len(printed[0].strip()) >= 16
    assert re.match(r"drill has 300 items again", printed[3])
    assert "all are whole" in printed[2]
    assert "all are whole" in printed[4]


def test_the_files_are_there_and_none_is_left_out():
    deploy, own = ROOT / "deploy", {"secrets", "backups"}  # these two are an operator's own
    named = set(re.findall(r"\b(?:deploy|docs)/[\w./-]*[\w*]", PAGE))
    for name in named - {f"deploy/{name}" for name in own}:
        assert [*ROOT.glob(name)], name
    for path in deploy.iterdir():
        name = path.name if path.is_file() else f"{path.name}/"
        known = path.name in own or path.suffix == ".dockerignore"
        assert known or f"`{name}" in PAGE, name
