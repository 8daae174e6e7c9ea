"""One's own experiments: read from a TOML file, run, stopped, gone on with."""

import json
import sys

import numpy as np
import pytest

from command_line import errors, refused, run
from streamhash.errors import InputError
from streamhash.lab import read_experiment, reproduce

FILE = """
title = "Three clouds"
methods = ["lsh", "own_clouds:Plain"]
bits = [8, 16]
metrics = ["map", "precision@10"]
seeds = 2
data = "clouds.csv"
label_column = "kind"
stream = 60
checkpoints = 2

[[run]]
method = "hcoh"
changes = { learning_rate = 0.3 }
note = "a faster one"

[[numbers]]
method = "lsh"
map = [0.5, 0.6]
"""
METHOD = """
from streamhash.hashers import LSH

class Plain(LSH):
    "Random projections, under a name of its own."
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    rng = np.random.default_rng(0)
    y = np.arange(120) % 3
    X = 3 * np.eye(3)[y] + rng.normal(size=(120, 3))
    lines = [f"{a},{b},{c},{'uvw'[label]}" for (a, b, c), label in zip(X, y, strict=True)]
    (tmp_path / "clouds.csv").write_text("\n".join(["a,b,c,kind", *lines]))
    (tmp_path / "mine.toml").write_text(FILE)
    (tmp_path / "own_clouds.py").write_text(METHOD)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    return tmp_path


def rows(folder):
    lines = (folder / "streamhash-results" / "clouds" / "rows.jsonl").read_text().splitlines()
    return [json.loads(line) for line in lines]


def test_it_runs_beside_printed_numbers_and_goes_on_after_a_stop(folder):
    words = ["reproduce", "mine.toml", "--bits", "8", "--first-seed", "5", "--jobs", "1"]
    first = run(*words, "--seeds", 1)
    assert first.exit_code == 0, first.stderr
    assert "Three clouds: mAP on clouds (in brackets: the paper's)" in first.stdout
    assert "Three clouds: P@10 on clouds" in first.stdout
    assert "(0.500)" in first.stdout
    found = rows(folder)
    assert [(row["method"], row["seed"], row["n_bits"]) for row in found] == [
        ("lsh", 5, 8),
        ("own_clouds:Plain", 5, 8),
        ("hcoh", 5, 8),
    ]
    assert found[2]["changes"] == {"learning_rate": 0.3}
    assert {row["stream"] for row in found} == {60}
    again = run(*words)  # two seeds, of which one is there
    assert again.exit_code == 0, again.stderr
    assert rows(folder)[:3] == found
    assert [row["seed"] for row in rows(folder)[3:]] == [6, 6, 6]
    assert (folder / "streamhash-results" / "index.html").exists()


def test_what_is_left_out_is_chosen_as_bench_does(folder):
    (folder / "short.toml").write_text('methods = ["lsh"]\ndata = "clouds.csv"\n')
    experiment = read_experiment("short.toml")
    assert (experiment.title, experiment.bits, experiment.metrics) == ("short", (32,), ("map",))
    with pytest.raises(InputError, match="has no labels"):
        reproduce("short.toml", jobs=1)
    (folder / "short.toml").write_text(
        'methods = ["lsh"]\ndata = "clouds.csv"\nlabel_column = "kind"\n'
    )
    (comparison,) = reproduce("short.toml", seeds=1, jobs=1)
    (entry,) = comparison.entries()
    row = entry.lines[32].rows[0]
    assert (row["stream"], row["order"], row["queries_per_class"]) == (96, "shuffled", 8)
    (quick,) = reproduce("short.toml", quick=True, jobs=1)
    assert len(list(quick.entries())) == 1


def test_settings_of_a_file_are_lines_of_their_own(folder):
    (folder / "tuned.toml").write_text("[hcoh]\nlearning_rate = 0.7\n")
    (folder / "with.toml").write_text(
        'methods = ["lsh", "hcoh"]\n[[on]]\ndata = "digits"\nsettings = ["default", "tuned.toml"]\n'
    )
    runs = read_experiment("with.toml").runs("digits")
    assert [(each.method, dict(each.changes)) for each in runs] == [
        ("lsh", {}),
        ("hcoh", {}),
        ("hcoh", {"learning_rate": 0.7}),
    ]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('data = "digits"', 'names no methods; write methods = ["sdoh", "lsh"], say.'),
        ('methods = ["lsh"]', 'names no data; write data = "digits", or the path of a file.'),
        ('methods = "lsh"', "methods = 'lsh'; write a list of texts."),
        ('methods = ["lsh"]\nbit = 3', "'bit' is unknown; choose from title, methods, metrics,"),
        ('methods = ["lsh"]\nbits = [true]', "bits = [True]; write a list of numbers."),
        (
            'methods = ["lsh"]\ndata = "digits"\nmetrics = ["mop"]',
            "asks for 'mop'; choose from map, map_by_class,",
        ),
        (
            'methods = ["lsh"]\ndata = "digits"\nsettings = ["best"]',
            "has settings 'best'; pass default, published, tuned, or a .toml file.",
        ),
        (
            'methods = ["lsh"]\ndata = "digits"\n[[run]]\nnote = "x"',
            'has a [[run]] without a method; write method = "sdoh", say.',
        ),
        (
            'methods = ["lsh"]\ndata = "digits"\n[[numbers]]\nmethod = "lsh"\nmap = [1, 2]',
            "has [[numbers]] {'method': 'lsh', 'map': [1, 2]}; write a method and",
        ),
    ],
)
def test_what_is_wrong_is_said_with_the_file(folder, text, message):
    (folder / "bad.toml").write_text(text)
    result = run("reproduce", "bad.toml")
    assert (result.exit_code, result.stdout) == (2, "")
    assert errors(result).startswith(f"streamhash: reproduce: bad.toml: {message}")


def test_files_that_are_not_there_or_no_toml(folder):
    refused(run("reproduce", "no.toml"), "reproduce: there is no file no.toml; check the path.")
    (folder / "bad.toml").write_text("[")
    assert "reproduce: bad.toml is not TOML" in errors(run("reproduce", "bad.toml"))
    (folder / "bad.toml").write_text('methods = ["nope"]\ndata = "digits"')
    assert "there is no method 'nope'" in errors(run("reproduce", "bad.toml"))
    (folder / "bad.toml").write_text('methods = ["lsh"]\ndata = "nope.csv"')
    assert "there is no file" in errors(run("reproduce", "bad.toml"))


def test_two_files_of_one_name_do_not_mix(folder):
    (folder / "sub").mkdir()
    (folder / "sub" / "other.toml").write_text('methods = ["lsh"]\ndata = "clouds.csv"\n')
    (folder / "sub" / "clouds.csv").write_text("a,b,kind\n1,2,u\n3,4,w\n")
    assert "are both called clouds" in errors(run("reproduce", "mine.toml", "sub/other.toml"))
