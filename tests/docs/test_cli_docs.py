"""docs/cli.md leaves out no verb and no option, and names none that does not exist."""

import re

import pytest

from pages import ROOT, read_page
from streamhash.lab import run_cell

DOCS = read_page("docs/cli.md")


@pytest.fixture
def option_tables(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "docs"))
    import option_tables

    return option_tables


def test_every_verb_has_its_section_and_its_options(option_tables):
    heads = [line[3:] for line in DOCS.splitlines() if line.startswith("## streamhash ")]
    assert heads == [f"streamhash {name}" for name in option_tables.verbs()]
    assert option_tables.with_options(DOCS) == DOCS, "run python docs/rebuild.py"
    for name, command in option_tables.verbs().items():
        section = DOCS.split(f"\n## streamhash {name}\n")[1].split("\n## ")[0]
        for parameter in command.params:
            is_option = parameter.opts[0].startswith("-")
            for word in parameter.opts if is_option else [parameter.metavar]:
                assert f"`{word}" in section, f"{word} of {name} is not in docs/cli.md"


def test_no_option_is_documented_that_does_not_exist(option_tables):
    commands = [option_tables.TOP, *option_tables.verbs().values()]
    known = {option for command in commands for p in command.params for option in p.opts}
    mentioned = {
        part.split()[0].split("=")[0] for part in DOCS.split("`")[1::2] if part.startswith("-")
    }
    assert mentioned <= known | {"--help", "-h", "-"}


def test_every_field_of_a_row_is_documented():
    row = run_cell("lsh", "digits", 8, 0, stream=100, checkpoints=1)
    fields = DOCS.split("\n## Result rows\n")[1]
    for field in row:
        assert f"`{field}`" in fields, f"{field} is not in docs/cli.md"


@pytest.mark.parametrize(
    "page", [*(ROOT / "docs").rglob("*.md"), ROOT / "README.md"], ids=lambda path: path.name
)
def test_verbs_that_documents_name_exist(page, option_tables):
    text = page.read_text(encoding="utf-8")
    for verb in re.findall(r"`streamhash ((?:live |data )?[a-z][a-z-]*)", text):
        assert verb in {*option_tables.verbs(), "live", "data"}, f"{page.name} names {verb}"
    for verb in re.findall(r"`(live [a-z][a-z-]*)", text):
        assert verb in option_tables.verbs(), f"{page.name} names {verb}"
