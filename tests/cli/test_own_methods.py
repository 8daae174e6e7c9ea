"""A method of one's own on the command line: by its import path, in every verb, never by itself."""

import json
import os
import sys

import pytest

from command_line import program, refused, run
from streamhash import LSH, load
from streamhash.errors import FileError
from streamhash.storage import read, rebuild

METHOD = """
from streamhash.hashers import LSH

class {name}(LSH):
    "Random projections, under a name of its own."
"""


@pytest.fixture
def own(tmp_path, monkeypatch):
    """A working folder with a module that nothing has imported yet."""
    name = f"own_{tmp_path.name.replace('-', '_')}"
    (tmp_path / f"{name}.py").write_text(METHOD.format(name=name.title()))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [path for path in sys.path if path])
    return name, f"{name}:{name.title()}"


def test_a_model_is_made_and_loaded_by_its_import_path(own):
    _, path = own
    cls = path.partition(":")[2]
    fitted = run("fit", "digits", "--model", "m", "--method", path, "--bits", 16)
    assert fitted.stdout.startswith(f"{cls} with 16 bits has learned from 1,797 rows")
    assert type(load("m")).__name__ == cls
    for words in (
        ["encode", "m", "digits", "--out", "codes.npy"],
        ["search", "m", "codes.npy", "codes.npy", "--json"],
        ["evaluate", "m", "--database", "digits", "--queries", "digits", "--json"],
    ):
        done = run(*words, "--method", path)
        assert done.exit_code == 0, done.stderr
    assert run("fit", "digits", "--model", "m", "--continue", "--method", path).exit_code == 0
    refused(
        run("encode", "m", "digits", "--out", "codes.npy", "--method", "lsh"),
        f"m: holds a model of {cls}, not of lsh; leave out --method.",
    )


@pytest.mark.slow
def test_a_file_imports_nothing_by_itself(own, tmp_path):
    """In processes of their own, where nothing has imported the module yet."""
    module, path = own
    cls = path.partition(":")[2]
    made = program("fit", "digits", "--model", "m", "--method", path, cwd=tmp_path)
    assert made.returncode == 0, made.stderr
    words = ["encode", "m", "digits", "--out", "codes.npy"]
    without = program(*words, cwd=tmp_path)
    assert (without.returncode, without.stdout) == (2, "")
    assert without.stderr == (
        f"streamhash: m: holds a {cls} of {module}, which is not known here; run streamhash "
        f"--import {module} and the verb: a file imports nothing by itself.\n"
    )
    for first in (["--method", path], []):
        more = [] if first else ["--import", module]
        done = program(*more, *words, *first, cwd=tmp_path)
        assert done.returncode == 0, done.stderr


@pytest.mark.slow
def test_a_collection_of_an_own_method_goes_on_in_other_processes(own, tmp_path):
    module, path = own
    words = ["live", "create", "items", "--method", path, "--bits", "16", "--refresh", "manual"]
    assert program(*words, cwd=tmp_path).returncode == 0
    run("live", "create", "ours", "--method", "lsh", "--bits", "16")
    run("live", "add", "ours", "digits")
    refused_add = program("live", "add", "items", "digits", cwd=tmp_path)
    assert f"streamhash --import {module} and the verb" in refused_add.stderr
    for words in (
        ["live", "add", "items", "digits"],
        ["live", "refresh", "items", "--jobs", "2"],
        ["live", "rebuild", "items", "--seed", "5", "--jobs", "2"],
        ["live", "search", "items", "--id", "7"],
    ):
        done = program("--import", module, *words, cwd=tmp_path)
        assert done.returncode == 0, done.stderr
    rebuilt = program(  # a collection of ours becomes one of theirs
        *("live", "rebuild", "ours", "--method", path, "--jobs", "2"), cwd=tmp_path
    )
    assert rebuilt.returncode == 0, rebuilt.stderr
    words = ["live", "status", "items", "--json"]
    done = program(*words, cwd=tmp_path, env={**os.environ, "STREAMHASH_IMPORT": module})
    assert json.loads(done.stdout)["items"] == 1797


def test_python_says_what_to_import(own, tmp_path):
    module, path = own
    run("fit", "digits", "--model", "m", "--method", path, "--bits", 16)
    header, arrays = read(tmp_path / "m", "model")
    assert header["model"]["module"] == module
    header["model"]["class"] = "Another"
    with pytest.raises(FileError, match=f"holds a Another of {module}, .*import {module} first"):
        rebuild(header, arrays, list)
    header["model"]["module"] = "os; rm -rf"  # what cannot be a module is not repeated
    with pytest.raises(FileError, match="import the module that defines it"):
        rebuild(header, arrays, list)


def test_an_own_class_does_not_take_the_place_of_ours():
    ours = LSH(8, random_state=0).to_bytes()
    own = type("LSH", (LSH,), {"__module__": "somebody"})
    assert type(LSH.from_bytes(ours)) is LSH
    assert type(LSH.from_bytes(own(8, random_state=0).to_bytes())) is own


def test_a_module_that_is_not_there_is_one_line():
    refused(
        run("--import", "no_such_module", "methods"),
        "--import no_such_module: cannot be imported (No module named 'no_such_module'); install "
        "its package, or run where its module lies.",
    )
