"""The command line: help, lists, demo and bench; output and exit codes verbatim."""

import json
import os
import re
import subprocess

import pytest
import typer

import streamhash
from command_line import PROGRAM, TINY, heavy_imports, program, refused, run
from streamhash.cli import app
from streamhash.hashers import METHODS


def test_version():
    done = program("--version")
    assert (done.returncode, done.stdout, done.stderr) == (
        0,
        f"streamhash {streamhash.__version__}\n",
        "",
    )


@pytest.mark.parametrize("words", [[], ["--help"], ["-h"]])
def test_help_names_every_verb(words):
    result = run(*words)
    assert result.exit_code == 0
    assert result.stdout.startswith("Usage: streamhash [OPTIONS] COMMAND [ARGS]...\n")
    for verb in typer.main.get_command(app).commands:
        assert f"\n  {verb} " in result.stdout
    assert "..." not in result.stdout.partition("Commands:")[2]


def test_help_imports_nothing_heavy():
    heavy, printed = heavy_imports("bench", "--help")
    assert heavy == ""
    assert "--queries-per-class" in printed


def test_methods():
    line = next(line for line in run("methods").stdout.splitlines() if line.startswith("  sdoh"))
    assert re.split(r"\s{2,}", line.strip()) == [
        "sdoh",
        "Lin et al., ICCV",
        "2019",
        "one or several",
        "docs/methods/sdoh.md",
    ]
    listed = json.loads(run("methods", "--json").stdout)
    assert [method["name"] for method in listed] == list(METHODS)
    assert {"class", "reference", "needs_labels", "parameters"} <= listed[0].keys()


def test_data(monkeypatch, tmp_path):
    monkeypatch.setenv("STREAMHASH_CACHE", str(tmp_path))
    monkeypatch.delenv("STREAMHASH_DATA", raising=False)
    assert "comes with scikit-learn" in run("data").stdout
    listed = {card["name"]: card for card in json.loads(run("data", "--json").stdout)}
    assert listed["digits"]["here"]
    assert not listed["mnist"]["here"]


@pytest.mark.parametrize(
    ("words", "completed"),
    [
        ("streamhash ev", "evaluate"),
        ("streamhash live sea", "search"),
        ("streamhash fit --lab", None),
    ],
)
def test_a_shell_completes_verbs_and_options(words, completed):
    environment = {"_STREAMHASH_COMPLETE": "complete_bash", "COMP_WORDS": words}
    environment["COMP_CWORD"] = str(len(words.split()) - 1)
    done = program(env={**os.environ, **environment})
    found = done.stdout.split()
    assert (done.returncode, done.stderr) == (0, "")
    assert found == ([completed] if completed else ["--labels", "--label-column"])


def test_usage_errors_name_the_help():
    refused(run("frob"), "No such command 'frob'; see streamhash --help.")
    refused(run("search"), "Missing argument 'MODEL'; see streamhash search --help.")


def test_files_that_cannot_be_used_are_one_line(tmp_path):
    taken = tmp_path / "taken"
    taken.write_text("")
    refused(
        run("bench", "--method", "lsh", "--out", taken, *TINY),
        f"{taken}: File exists; check the path and your rights to it.",
    )


def test_interruption_is_one_line_and_exit_code_130(monkeypatch):
    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("streamhash.lab.datasets.available", interrupted)
    result = run("data")
    assert (result.exit_code, result.stdout) == (130, "")
    assert result.stderr == "streamhash: interrupted.\n"


@pytest.mark.slow
def test_a_closed_pipe_is_quiet():
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run(
        [str(PROGRAM), "methods", "--json"],
        stdout=writer,
        stderr=subprocess.PIPE,
        text=True,
        check=False,
    )
    os.close(writer)
    assert (done.returncode, done.stderr) == (1, "")
