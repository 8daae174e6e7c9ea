"""Names in src are words of the field: none of the private language of 0.1.0 comes back."""

import ast
import re
from pathlib import Path

import pytest

SRC = Path(__file__).parents[1] / "src"
FILES = sorted(SRC.rglob("*.py"))
# What each was called by: service or request handler, backends, storage, leaderboard, limiter,
# translate_errors, preview, search over settings, library, modules.
PRIVATE_WORDS = {
    *("desk", "homes", "shelf", "shelves", "arena", "lane", "lanes", "told", "glance", "sweep"),
    *("house", "rooms"),
}


def words_of(name):
    """Split a name: ``the_WritingDesk`` is the, writing, desk."""
    return {word.lower() for word in re.findall(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])", name)}


def identifiers(tree):
    """Every name that a module gives or uses, with its line."""
    for node in ast.walk(tree):
        for field in ("id", "name", "attr", "arg", "asname"):
            name = getattr(node, field, None)
            if isinstance(name, str):
                yield getattr(node, "lineno", 0), name


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(SRC)))
def test_names_are_words_of_the_field(path):
    place = path.relative_to(SRC)
    assert not PRIVATE_WORDS & words_of(str(place)), f"{place} has a private word in its name"
    tree = ast.parse(path.read_text(encoding="utf-8"))
    found = [
        f"{place}:{line} {name}"
        for line, name in identifiers(tree)
        if PRIVATE_WORDS & words_of(name)
    ]
    assert not found, "\n".join(found)


def test_names_are_split_into_words():
    assert words_of("the_WritingDesk2") == {"the", "writing", "desk"}
    assert words_of("SHELF_SIZE") == {"shelf", "size"}
    assert words_of("threshold") == {"threshold"}
