"""No module of src touches another module's underscore names: objects own their state."""

import ast
from pathlib import Path

import pytest

SRC = Path(__file__).parents[1] / "src"
FILES = sorted(SRC.rglob("*.py"))
NAMED_TUPLE = {"_asdict", "_fields", "_make", "_replace"}  # public, in spite of their names
OWN = {"self", "cls"}
# Underscore names of other packages, by the file that uses them.
ALLOWED = {
    "streamhash/lab/workers.py": {"_exit"},  # of os, and documented: end a process at once
}


def is_private(name):
    return name.startswith("_") and not (name.startswith("__") and name.endswith("__"))


def names_defined(tree):
    """Names of functions, classes, variables and attributes that a module makes itself."""
    names = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            names.add(node.name)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.add(node.id)
        elif (
            isinstance(node, ast.Attribute)
            and isinstance(node.ctx, ast.Store)
            and isinstance(node.value, ast.Name)
            and node.value.id in OWN
        ):
            names.add(node.attr)
    return names


def is_own(node):
    """Whether an object is the one whose method this is: self, cls, super()."""
    if isinstance(node, ast.Name):
        return node.id in OWN
    return (
        isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "super"
    )


def imports_of_others(node, package):
    """Private modules and names that an import takes from outside the importing package."""
    if isinstance(node, ast.Import):
        paths = [alias.name for alias in node.names]
    elif isinstance(node, ast.ImportFrom):
        paths = [f"{node.module}.{alias.name}" for alias in node.names]
    else:
        return
    for path in paths:
        parts = path.split(".")
        if parts[0] != "streamhash":
            continue
        for i, part in enumerate(parts):
            inside = package[:i] == parts[:i]  # a private module of the package itself
            is_module = (SRC.joinpath(*parts[: i + 1])).with_suffix(".py").exists()
            if is_private(part) and not (inside and is_module):
                yield path


def trespasses(text, package=()):
    """Lines of a module that touch what belongs to another one."""
    tree = ast.parse(text)
    defined = names_defined(tree)
    for node in ast.walk(tree):
        for path in imports_of_others(node, [*package]):
            yield node.lineno, path
        if isinstance(node, ast.Attribute):
            owner, name = node.value, node.attr
        elif (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Name)
            and node.func.id in ("getattr", "setattr", "hasattr", "delattr")
            and len(node.args) > 1
            and isinstance(node.args[1], ast.Constant)
        ):
            owner, name = node.args[0], str(node.args[1].value)
        else:
            continue
        if is_private(name) and not is_own(owner) and name not in defined | NAMED_TUPLE:
            yield node.lineno, ast.unparse(node)


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(SRC)))
def test_a_module_touches_no_private_name_of_another(path):
    package = path.relative_to(SRC).with_suffix("").parts[:-1]
    allowed = ALLOWED.get(str(path.relative_to(SRC)), set())
    found = [
        f"{path.relative_to(SRC)}:{line} {what}"
        for line, what in trespasses(path.read_text(encoding="utf-8"), package)
        if what.rpartition(".")[2] not in allowed
    ]
    assert not found, "\n".join(found)


@pytest.mark.parametrize(
    "line",
    [
        "from streamhash.base import _hidden",
        "from streamhash.hashers._principal import Basis",
        "import streamhash.hashers._principal",
        "other._state = 1",
        "read(collection._view.model)",
        "getattr(other, '_state')",
    ],
)
def test_what_is_found(line):
    assert [at for at, _ in trespasses(line)] == [1]


@pytest.mark.parametrize(
    "line",
    [
        "self._state = super()._state + cls._state",
        "class A:\n def take(self, other):\n  self._state = other._state",
        "class A:\n _state = 1\nA()._state",
        "point._replace(x=1)",
        "module.__doc__",
        "import _thread",
    ],
)
def test_what_is_fine(line):
    assert [*trespasses(line)] == []
