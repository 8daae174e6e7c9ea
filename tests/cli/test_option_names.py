"""Errors of the command line say what its options are called."""

import numpy as np
import pytest
import typer

from command_line import errors, refused, run
from streamhash import SDOH, Collection
from streamhash.cli import app
from streamhash.cli._words import in_options
from streamhash.hashers import METHODS


def verb(*names):
    command = typer.main.get_command(app)
    for name in names:
        command = command.commands[name]
    return command


@pytest.mark.parametrize(
    ("names", "message", "expected"),
    [
        (
            ["live", "add"],
            'id 7 is there already; pass existing="skip" or "replace", or another id.',
            "id 7 is there already; pass --existing skip or replace, or another id.",
        ),
        (
            ["live", "add"],
            "x: 7 is writing; close it there, or open it here with read_only=True.",
            "x: 7 is writing; close it there, or wait until it ends; verbs that only read, such as "
            "search and status, work meanwhile.",
        ),
        (
            ["live", "search"],
            "id 7 is not in this collection; ask `id in collection` first, or add it.",
            "id 7 is not in this collection; check it, or add it.",
        ),
        (
            ["live", "revert"],
            "there is no model 9; models() lists those there are.",
            "there is no model 9; streamhash live history lists those there are.",
        ),
        (["serve"], "open it here with read_only=True.", "open it here with --read-only."),
        (["live", "add"], "leave out first_id.", "leave out --first-id."),
        (["bench"], "pass a smaller queries_per_class", "pass a smaller --queries-per-class"),
        (["bench"], "queries_per_class=54 needs 55", "--queries-per-class 54 needs 55"),
        (["fit"], "LSH: n_bits=0 must be", "LSH: --bits 0 must be"),
        (["fit"], "SDOH: batch_size=0 must", "SDOH: --set batch_size=0 must"),
        (["fit"], "pass column='a b'", "pass --label-column 'a b'"),
        (["fit"], "pass Columns(features='x*').", "pass --feature-columns 'x*'."),
        (["live", "get"], "a parameter existing='x' stays", "a parameter existing='x' stays"),
        (["live", "search"], "rescore=4, by='projections'", "--rescore 4, --by projections"),
        (["bench"], "/a/first_seed/x and my_file.csv stay", "/a/first_seed/x and my_file.csv stay"),
    ],
)
def test_parameters_become_options(names, message, expected):
    assert in_options(message, verb(*names)) == expected


def test_errors_of_a_collection_name_options(tmp_path):
    items, file = tmp_path / "items", tmp_path / "items.npz"
    np.savez(file, X=np.eye(3), ids=[1, 2, 3])
    run("live", "create", items, "--method", "lsh", "--bits", 8)
    run("live", "add", items, file)
    refused(
        run("live", "add", items, file),
        "Collection.add: id 1 is there already; pass --existing skip or replace, or another id.",
    )
    refused(
        run("live", "add", items, file, "--first-id", 5),
        "add: the items have ids of their own; leave out --first-id.",
    )
    with Collection.open(items):
        result = run("live", "delete", items, 1)
    assert "read_only" not in errors(result)
    assert "work meanwhile" in errors(result)


def test_a_model_has_as_many_bits_as_in_python():
    usual = {method().n_bits for method in METHODS.values()}
    assert usual == {SDOH().n_bits} == {32}
    for names in (["fit"], ["live", "create"], ["tune"]):
        (bits,) = [each for each in verb(*names).params if each.name == "bits"]
        assert bits.default == SDOH().n_bits
    (bits,) = [each for each in verb("bench").params if each.name == "bits"]
    assert bits.default == str(SDOH().n_bits)
