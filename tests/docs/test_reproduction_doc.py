"""docs/reproduction.md: its python lines print what it says, its commands are ones that exist."""

import re
import shlex
from contextlib import redirect_stdout
from io import StringIO

import numpy as np
import pytest
import typer

import pages
from streamhash.cli import app
from streamhash.cli._options import parse_changes, split_names, split_numbers
from streamhash.lab import experiment_names, find_methods, plan_cell
from streamhash.lab.datasets import DataSet, available

PAGE = pages.read_page("docs/reproduction.md")
COMMANDS = [*pages.commands("docs/reproduction.md")]
BENCH = typer.main.get_command(app).commands["bench"]
SETTINGS = {"default": ["default"], "published": ["published"], "both": ["default", "published"]}


PYTHON = [pair for pair in COMMANDS if pair[0].startswith("python -c ")]
SHELL = [pair for pair in COMMANDS if pair[0].startswith("streamhash ")]


def names(pairs):
    return [re.sub(r"\W+", "-", command)[-60:].strip("-") for command, _ in pairs]


def test_every_fence_holds_commands_of_the_two_kinds():
    assert PAGE.count("```") == 2 * PAGE.count("```console\n")
    assert all(block.startswith("$ ") for block in pages.blocks("docs/reproduction.md", "console"))
    assert len(PYTHON) + len(SHELL) == len(COMMANDS)
    assert len(PYTHON) > 20
    assert len(SHELL) > 20


@pytest.mark.parametrize(("command", "printed"), PYTHON, ids=names(PYTHON))
def test_python_lines_print_what_the_page_says(command, printed, monkeypatch):
    python, option, code = shlex.split(command)
    assert (python, option) == ("python", "-c")
    assert not set('$`\\"') & set(code), "the shell would change this within double quotes"
    monkeypatch.chdir(pages.ROOT)
    out = StringIO()
    with redirect_stdout(out):  # in this process: imports and compiled kernels are shared
        exec(code, {"__name__": "__main__"})
    assert out.getvalue() == printed


@pytest.mark.parametrize(("command", "printed"), SHELL, ids=names(SHELL))
def test_bench_commands_can_be_planned(command, printed):
    assert not printed, "what a long run printed is told in words"
    _, verb, *words = shlex.split(command)
    assert verb == "bench"
    given = BENCH.make_context("bench", words).params  # fails on an option that does not exist
    assert given["data"] in {card.name for card in available()}
    stand_in = a_small_set(given["data"])
    changes = parse_changes(given["changes"])
    for method in find_methods(split_names(given["method"])):
        for settings in SETTINGS[given["settings"]]:
            for n_bits in split_numbers("--bits", given["bits"]):
                plan = plan_cell(
                    method, stand_in, n_bits, 0, settings=settings, changes=changes, stream=20
                )
                hasher = plan.hasher()  # fails on a parameter, or a value, that is not allowed
                params = hasher.get_params()
                assert changes.items() <= params.items()
                if changes:  # a command that changes nothing shows nothing
                    plain = plan_cell(method, stand_in, n_bits, 0, settings=settings).hasher()
                    assert params != plain.get_params()


def test_experiments_that_are_named_exist():
    named = re.findall(r"`streamhash reproduce ([\w-]+)`", PAGE)
    assert named
    assert set(named) <= set(experiment_names())


def a_small_set(of):
    """Rows under the name of a data set, which need not be here."""
    (card,) = (card for card in available() if card.name == of)
    return DataSet(of, np.zeros((100, 4), np.float32), np.arange(100) % 10, card)
