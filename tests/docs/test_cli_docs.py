"""Documentation that cannot rot: every verb and option stands in docs/cli.md."""

from pathlib import Path

import pytest
import typer

from streamhash.cli import app
from streamhash.lab import run_cell

DOCS = (Path(__file__).parents[2] / "docs" / "cli.md").read_text(encoding="utf-8")
TOP = typer.main.get_command(app)


def verbs():
    for name, command in TOP.commands.items():
        yield name, command
        for below, further in getattr(command, "commands", {}).items():
            yield f"{name} {below}", further


@pytest.mark.parametrize(("name", "command"), [*verbs()], ids=[name for name, _ in verbs()])
def test_every_verb_and_option_is_documented(name, command):
    head = f"\n## streamhash {name}\n"
    assert head in DOCS
    section = DOCS.split(head)[1].split("\n## ")[0]
    for parameter in command.params:
        words = [*parameter.opts] if parameter.opts[0].startswith("-") else [parameter.metavar]
        for word in words:
            assert f"`{word}" in section, f"{word} of {name} is not in docs/cli.md"


def test_no_verb_or_option_is_documented_that_does_not_exist():
    heads = [line[3:] for line in DOCS.splitlines() if line.startswith("## streamhash ")]
    assert heads == [f"streamhash {name}" for name, _ in verbs()]
    known = {option for _, command in verbs() for p in command.params for option in p.opts}
    known |= {option for parameter in TOP.params for option in parameter.opts} | {
        "--help",
        "-h",
        "-",
    }
    mentioned = {
        part.split()[0].split("=")[0] for part in DOCS.split("`")[1::2] if part.startswith("-")
    }
    assert mentioned <= known


def test_every_field_of_a_row_is_documented():
    row = run_cell("lsh", "digits", 8, 0, stream=100, checkpoints=1)
    fields = DOCS.split("\n## Result rows\n")[1]
    for field in row:
        assert f"`{field}`" in fields, f"{field} is not in docs/cli.md"
