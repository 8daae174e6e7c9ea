"""docs/reliability.md: its table has every fault, tried as often as it should be, and no loss."""

import shlex

import pytest

from pages import ROOT, read_page

LEAST = {
    "process killed": 1000,
    "power cut, simulated": 200,
    "EIO at each write, sync, rename and link, once": 500,
    "EIO at each write, sync, rename and link, lasting": 500,
    "ENOSPC at each write, sync, rename and link, once": 500,
    "ENOSPC at each write, sync, rename and link, lasting": 500,
    "a bit flipped": 1000,
    "calls of 8 threads in 3 processes": 200_000,
    "changed files of models": 10_000,
    "requests made up at random": 100_000,
}


@pytest.fixture
def lines():
    page = read_page("docs/reliability.md")
    table = page.split("<!-- table: faults -->")[1].split("<!-- end -->")[0]
    rows = [line.strip("| ").split(" | ") for line in table.strip().splitlines()[2:]]
    return {row[0]: row[1:] for row in rows}


def test_nothing_was_lost_however_often_it_was_tried(lines):
    for name, (tried, lost, promised, _) in lines.items():
        assert int(tried.replace(",", "")) > 0, name
        assert lost == "0", name
        assert promised, name
    for start, least in LEAST.items():
        (name,) = [name for name in lines if name.startswith(start)]
        assert int(lines[name][0].replace(",", "")) >= least, name


def test_every_command_names_a_file_that_is_there(lines):
    for *_, command in lines.values():
        words = shlex.split(command.strip("`"))
        assert words[0] == "python"
        assert (ROOT / words[1]).exists(), command
