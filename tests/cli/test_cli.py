"""The command line: help, lists, demo and bench; output and exit codes verbatim."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import typer

import streamhash
from command_line import refused, run
from streamhash.cli import app
from streamhash.cli import demo as demo_verb
from streamhash.hashers import METHODS

PROGRAM = Path(sys.executable).with_name("streamhash")
TINY = ["--stream", "200", "--checkpoints", "2"]


def program(*words, **options):
    return subprocess.run(
        [str(PROGRAM), *words], capture_output=True, text=True, timeout=120, check=False, **options
    )


def notes(text):
    """Drop what is said once on a fresh machine, when kernels are compiled."""
    lines = text.splitlines(keepends=True)
    return "".join(line for line in lines if not line.startswith("streamhash: compiling "))


@pytest.fixture(scope="module")
def demo(tmp_path_factory):
    out = tmp_path_factory.mktemp("demo") / "report"
    return out, run("demo", "--out", out)


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
    code = (
        "import sys\n"
        "from streamhash.cli import app\n"
        "sys.argv = ['streamhash', 'bench', '--help']\n"
        "try: app()\n"
        "except SystemExit: pass\n"
        "heavy = {'numpy', 'numba', 'sklearn', 'scipy', 'matplotlib', 'rich'} & set(sys.modules)\n"
        "sys.stderr.write(repr(heavy))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stderr == "set()"
    assert "--queries-per-class" in done.stdout


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
    refused(
        run("data", "fetch", "digits"),
        "fetch: 'digits' needs no download; use load_data('digits').",
    )


def test_demo_prints_the_table_and_writes_the_report(demo):
    out, result = demo
    assert (result.exit_code, notes(result.stderr)) == (0, "")
    lines = result.stdout.splitlines()
    assert lines[0].startswith("digits, 32 bits: 300 queries, 1,497 items, stream of 1,497")
    assert lines[2].split()[:6] == ["method", "mAP", "mAP@1000", "P@H2", "P@100", "AUC"]
    names = [line.split()[0] for line in lines[4 : 4 + len(METHODS)]]
    assert names == [method.__name__ for method in METHODS.values()]
    assert lines[-1] == f"The report is in {out / 'index.html'}: open it in a browser."
    assert {path.suffix for path in out.iterdir()} >= {".html", ".png", ".jsonl"}
    assert "<pre>streamhash demo</pre>" in (out / "index.html").read_text(encoding="utf-8")


def test_demo_replaces_its_own_report_only(demo, tmp_path):
    out, _ = demo
    (out / "notes.txt").write_text("kept")
    assert run("demo", "--out", out, "--seed", "1").exit_code == 0
    seeds = [json.loads(line)["seed"] for line in (out / "rows.jsonl").read_text().splitlines()]
    assert seeds == [1] * len(METHODS)
    assert (out / "notes.txt").read_text() == "kept"
    (tmp_path / "mine.txt").write_text("mine")
    refused(
        run("demo", "--out", tmp_path),
        f"demo: {tmp_path} is there and not a report of the demo; choose another folder with "
        "--out.",
    )
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]


def test_demo_without_matplotlib_says_how_to_get_figures(tmp_path, monkeypatch):
    monkeypatch.setattr("streamhash.lab.have_figures", lambda: False)
    monkeypatch.setattr(demo_verb, "BITS", 8)
    result = run("demo", "--out", tmp_path / "report")
    assert result.exit_code == 0
    assert notes(result.stderr) == (
        'The page has no figures; for them, run pip install "streamhash[plots]".\n'
    )


def test_bench_appends_rows_and_resumes(tmp_path):
    out, words = tmp_path / "results", ["--method", "sdoh,lsh", "--bits", "8,16", *TINY]
    first = run("bench", *words, "--seeds", "1", "--out", out)
    assert first.exit_code == 0
    assert notes(first.stderr) == f"Rows are in {out / 'rows.jsonl'}.\n"
    assert first.stdout.count("SDOH") == first.stdout.count("LSH") == 2
    rows = (out / "rows.jsonl").read_text()
    with (out / "rows.jsonl").open("a") as file:
        file.write('{"method": "sd')  # a run killed in the middle of a row
    again = run("bench", *words, "--seeds", "2", "--out", out, "--resume", "--json")
    assert again.exit_code == 0
    printed = [json.loads(line) for line in again.stdout.splitlines()]
    assert [(row["n_bits"], row["method"], row["seed"]) for row in printed] == [
        (bits, method, seed) for bits in (8, 16) for method in ("sdoh", "lsh") for seed in (0, 1)
    ]
    dates = {row["date"] for row in map(json.loads, rows.splitlines())}
    assert {row["date"] for row in printed if row["seed"] == 0} == dates
    assert len((out / "rows.jsonl").read_text().splitlines()) == 4 + 1 + 4
    assert (out / "rows.jsonl").read_text().startswith(rows)


def test_bench_json_prints_json_and_nothing_else():
    done = program("bench", "--method", "lsh", "--bits", "8", "--json", *TINY)
    assert (done.returncode, notes(done.stderr)) == (0, "")
    (line,) = done.stdout.splitlines()
    assert json.loads(line)["method"] == "lsh"


def test_the_command_of_a_row_makes_it_again():
    def row(*words):
        return json.loads(run(*words, "--json").stdout)

    first = row("bench", "--method", "sdoh", "--bits", "8", "--set", "batch_size=50", *TINY)
    again = row(*first["command"].split()[1:])
    for varying in ("seconds", "date"):
        del first[varying], again[varying]
    assert first == again


def test_bench_sets_parameters_where_they_exist_and_is_quick_when_asked():
    words = ["bench", "--method", "sdoh,lsh", "--bits", "8", "--quick", "--json"]
    result = run(*words, "--set", "gradient=printed")
    rows = [json.loads(line) for line in result.stdout.splitlines()]
    assert [row["changes"] for row in rows] == [{"gradient": "printed"}, {}]
    assert {row["checkpoints"] for row in rows} == {3}


def test_bench_takes_a_file(tmp_path):
    path = tmp_path / "own.csv"
    rows = [f"{i % 7},{i % 5},{'ab'[i % 2]}" for i in range(60)]
    path.write_text("\n".join(["u,v,kind", *rows]))
    words = ["bench", "--data", path, "--method", "lsh", "--bits", "8", "--json"]
    row = json.loads(run(*words, "--label-column", "kind").stdout)
    assert (row["data"], row["queries"], row["database"]) == ("own", 12, 48)
    assert f"--data {path}" in row["command"]
    refused(
        run(*words),
        f"read_table: {path} has the text 'a' in line 2, column 'kind', where a number is wanted; "
        "drop the column, or pass column='kind' if it holds the labels.",
    )


def test_report_rebuilds_the_page_from_rows(tmp_path):
    run("bench", "--method", "lsh", "--bits", "8", "--out", tmp_path, *TINY)
    result = run("report", tmp_path)
    assert result.stdout == f"The report is in {tmp_path / 'index.html'}: open it in a browser.\n"
    assert run("report", tmp_path, "--markdown").stdout.startswith("digits, 8 bits: 300 queries")
    empty = tmp_path / "empty"
    empty.mkdir()
    refused(
        run("report", empty),
        f"{empty}: there are no result rows to report; run streamhash bench with --out first.",
    )


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--method", "sdoh,foo"], f"there is no method 'foo'; choose from {', '.join(METHODS)}."),
        (["--bits", "8,x"], "--bits 8,x: pass whole numbers with commas, such as 32,64."),
        (["--bits", "0"], "SDOH: n_bits=0 must be a whole number from 1 to 1024."),
        (["--set", "kernel"], "--set kernel: pass NAME=VALUE, such as --set batch_size=100."),
        (
            ["--set", "n_bits=8"],
            "--set n_bits=8: use --bits for n_bits and --seed for random_state.",
        ),
        (
            ["--method", "lsh", "--set", "foo=1"],
            "LSH has no parameter 'foo' to set; it has batch_size, center.",
        ),
        (["--resume"], "bench: --resume needs the folder with the rows; pass --out DIR."),
        (["--settings", "best"], "bench: --settings best: pass default, published, both or tuned."),
        (["--seeds", "x"], None),
        (["--foo"], None),
    ],
)
def test_bench_refuses_in_one_line(words, message):
    result = run("bench", *words)
    if message is not None:
        refused(result, message)
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.startswith("streamhash: ")
    assert result.stderr.count("\n") == 1


def test_unknown_data_lists_what_there_is():
    done = program("bench", "--data", "nope")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(
        "streamhash: load_data: 'nope' is neither a data set (digits, mnist, cifar10-features, "
    )
    assert done.stderr.endswith(
        ") nor a file; pass one of these names, or the path of a .npy, .npz, .parquet, .csv or "
        ".mat file.\n"
    )


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
