"""The verbs of experiments, demo to report: their output and exit codes verbatim."""

import json
import shlex
import sys

import numpy as np
import pytest

from command_line import TINY, notes, program, refused, run
from streamhash.cli import lab as lab_verbs
from streamhash.hashers import METHODS


@pytest.fixture(scope="module")
def demo(tmp_path_factory):
    out = tmp_path_factory.mktemp("demo") / "report"
    return out, run("demo", "--out", out)


@pytest.mark.slow
def test_demo_prints_the_table_and_writes_the_report(demo):
    out, result = demo
    assert (result.exit_code, notes(result.stderr)) == (0, "")
    lines = result.stdout.splitlines()
    title = "digits, 32 bits: 300 queries, 1,497 items (encoded), stream of 1,497"
    assert lines[0].startswith(title)
    assert lines[2].split()[:6] == ["method", "mAP", "mAP", "by", "class", "mAP@1000"]
    names = [line.split()[0] for line in lines[4 : 4 + len(METHODS)]]
    assert names == [method.__name__ for method in METHODS.values()]
    assert lines[-1] == f"The report is in {out / 'index.html'}: open it in a browser."
    assert {path.suffix for path in out.iterdir()} >= {".html", ".png", ".jsonl"}
    assert "<pre>streamhash demo</pre>" in (out / "index.html").read_text(encoding="utf-8")


@pytest.mark.slow
def test_demo_replaces_its_own_report_only_and_says_how_to_get_figures(demo, tmp_path, monkeypatch):
    out, _ = demo
    (out / "notes.txt").write_text("kept")
    monkeypatch.setattr("streamhash.lab.have_figures", lambda: False)
    monkeypatch.setattr(lab_verbs.options, "BITS", 8)
    result = run("demo", "--out", out, "--seed", "1")
    assert result.exit_code == 0
    assert notes(result.stderr) == (
        'The report has no figures; for them, run pip install "streamhash[plots]".\n'
    )
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


@pytest.mark.slow
def test_bench_appends_rows_and_resumes(tmp_path):
    out, words = tmp_path / "results", ["--method", "sdoh,lsh", "--bits", "8,16", *TINY]
    first = run("bench", *words, "--seeds", "1", "--out", out)
    assert first.exit_code == 0
    assert notes(first.stderr) == f"Rows are in {out / 'rows.jsonl'}.\n"
    assert first.stdout.count("SDOH") == first.stdout.count("LSH") == 2
    rows = (out / "rows.jsonl").read_text()
    with (out / "rows.jsonl").open("a") as file:
        file.write('{"method": "sd')  # a run killed in the middle of a row
    again = run("bench", *words, "--seeds", "2", "--out", out, "--resume", "--json", "--jobs", "1")
    assert again.exit_code == 0
    printed = [json.loads(line) for line in again.stdout.splitlines()]
    assert [(row["n_bits"], row["method"], row["seed"]) for row in printed] == [
        (bits, method, seed) for bits in (8, 16) for method in ("sdoh", "lsh") for seed in (0, 1)
    ]
    dates = {row["date"] for row in map(json.loads, rows.splitlines())}
    assert {row["date"] for row in printed if row["seed"] == 0} == dates
    assert len((out / "rows.jsonl").read_text().splitlines()) == 4 + 1 + 4
    assert (out / "rows.jsonl").read_text().startswith(rows)
    third = run("bench", *words, "--seeds", "2", "--out", out, "--resume")
    said = f"Rows are in {out / 'rows.jsonl'}; 0 cells were run, 8 had their rows."
    assert said in notes(third.stderr)


@pytest.mark.slow
def test_bench_json_prints_json_and_nothing_else():
    done = program("bench", "--method", "lsh", "--bits", "8", "--json", *TINY)
    assert (done.returncode, notes(done.stderr)) == (0, "")
    (line,) = done.stdout.splitlines()
    assert json.loads(line)["method"] == "lsh"


def rows_of(*words):
    result = run("bench", *words, "--json")
    assert result.exit_code == 0, result.stderr
    return [json.loads(line) for line in result.stdout.splitlines()]


def unvarying(row):
    return {name: row[name] for name in row if name not in ("seconds", "date")}


@pytest.fixture
def own_files(tmp_path):
    """Features with a column of labels, features without, and labels in a file of their own."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 3)), np.arange(60) % 3
    lines = [f"{a},{b},{c},{'uvw'[label]}" for (a, b, c), label in zip(X, y, strict=True)]
    (tmp_path / "with kind.csv").write_text("\n".join(["a,b,c,kind", *lines]))
    np.save(tmp_path / "features.npy", X)
    np.save(tmp_path / "labels.npy", y)
    return tmp_path


OWN_METHOD = """
from streamhash.hashers import LSH

class Plain(LSH):
    "Random projections, under a name of its own."
    published_features = "raw"
"""


@pytest.mark.parametrize(
    "words",
    [
        ["--method", "sdoh", "--set", "batch_size=50", "--set", "dissimilar_scale=none", *TINY],
        ["--method", "lsh", "--set", "features=absolute", *TINY],
        ["--method", "hcoh", "--set", "memory=40", *TINY],
        ["--method", "lsh", "--data", "{}/features.npy", "--labels", "{}/labels.npy"],
        ["--method", "lsh", "--data", "{}/with kind.csv", "--label-column", "kind"],
        ["--method", "lsh", "--split", "validation", "--test-seeds", "2"],
        ["--method", "lsh", "--split", "unseen", *TINY],
        ["--method", "lsh", "--curve-metric", "map@1000", *TINY],
        ["--method", "lsh", "--data", "synthetic", "--rows", "500"],
        ["--method", "sdoh", "--order", "sorted", "--label-noise", "0.2", *TINY],
        ["--method", "sdoh", "--order", "single", "--curve-by-class", *TINY],
        ["--method", "plain_method:Plain", "--set", "center=false", *TINY],
    ],
    ids=[
        "changes",
        "features",
        "memory",
        "labels",
        "label-column",
        "validation",
        "unseen",
        "curve",
        "rows",
        "order",
        "single",
        "third-party",
    ],
)
def test_the_command_of_a_row_makes_it_again(words, own_files, monkeypatch):
    (own_files / "plain_method.py").write_text(OWN_METHOD)
    monkeypatch.chdir(own_files)  # whose modules can be named
    monkeypatch.setattr(sys, "path", list(sys.path))
    (first,) = rows_of("--bits", "8", *(word.format(own_files) for word in words))
    (again,) = rows_of(*shlex.split(first["command"])[2:])
    assert unvarying(again) == unvarying(first)


def test_the_command_of_a_tuned_cell_makes_it_again(monkeypatch):
    from streamhash.lab import tuning

    found = {"hcoh": {"learning_rate": 0.3, "batch_size": 16}}
    monkeypatch.setattr(tuning, "_tuned", lambda _: found)
    (first,) = rows_of("--bits", "8", "--method", "hcoh", "--settings", "tuned", *TINY)
    assert (first["settings"], first["changes"]) == ("tuned", {})
    assert first["parameters"]["learning_rate"] == 0.3
    (again,) = rows_of(*shlex.split(first["command"])[2:])
    assert unvarying(again) == unvarying(first)


@pytest.mark.slow
def test_a_method_of_somebody_else_runs_by_its_import_path(tmp_path):
    (tmp_path / "plain_method.py").write_text(OWN_METHOD)
    words = ["--method", "plain_method:Plain,lsh", "--bits", "8", "--jobs", "2", *TINY]
    done = program("bench", *words, "--json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    own, lsh = map(json.loads, done.stdout.splitlines())
    assert own["method"] == "plain_method:Plain"
    assert own["metrics"] == lsh["metrics"]


@pytest.mark.parametrize(
    ("method", "message"),
    [
        (
            "no_such:Plain",
            "method 'no_such:Plain' cannot be imported (No module named 'no_such'); ",
        ),
        ("json:Plain", "method 'json:Plain' cannot be imported (module 'json' has no attribute "),
        ("json:dumps", "method 'json:dumps' is not a subclass of streamhash.OnlineHasher."),
    ],
)
def test_a_method_that_is_none_is_one_line(method, message):
    result = run("bench", "--method", method)
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.startswith(f"streamhash: {message}")
    assert result.stderr.count("\n") == 1


def test_reproduce_lists_the_experiments_and_refuses_others():
    listed = run("reproduce").stdout
    assert "mnist-table" in listed
    assert "Precision@H2 on MNIST" in listed
    result = run("reproduce", "table-1")
    assert result.exit_code == 2
    assert result.stderr.startswith("streamhash: there is no experiment 'table-1'; choose from ")


def test_tune_prints_what_it_keeps(tmp_path):
    result = run("tune", "hcoh", "--budget", "2", "--bits", "8", "--jobs", "1", "--out", tmp_path)
    assert result.exit_code == 0, result.stderr
    assert result.stdout == (tmp_path / "tuned.toml").read_text()
    assert result.stdout.startswith("# Found by streamhash tune on digits at 8 bits, with 2 ")
    lines = notes(result.stderr).splitlines()
    assert lines[0].startswith("1/2 hcoh (validation), digits, 8 bits, seed 0; about ")
    assert lines[-1] == (
        f"The settings are in {tmp_path / 'tuned.toml'}, every trial in {tmp_path / 'rows.jsonl'}."
    )


@pytest.mark.slow
def test_bench_sets_parameters_where_they_exist_and_is_quick_when_asked():
    words = ["bench", "--method", "sdoh,lsh", "--bits", "8", "--quick", "--json", "--jobs", "1"]
    result = run(*words, "--set", "gradient=printed")
    rows = [json.loads(line) for line in result.stdout.splitlines()]
    assert [row["changes"] for row in rows] == [{"gradient": "printed"}, {}]
    assert {row["checkpoints"] for row in rows} == {3}


def test_bench_runs_several_orders_and_the_table_names_them():
    words = ["bench", "--method", "lsh", "--bits", "8", "--jobs", "1", *TINY]
    result = run(*words, "--order", "shuffled,sorted,single")
    assert result.exit_code == 0, result.stderr
    names = [line.split("  ")[1].strip() for line in result.stdout.splitlines()[4:7]]
    assert names == ["LSH", "LSH (sorted)", "LSH (single)"]
    refused(
        run(*words, "--order", "sorted,last"),
        "--order last is unknown; pass one of shuffled, sorted, halves, runs, single, natural.",
    )


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
        f"load_data: {path} has no labels; pass --labels FILE with a file of labels, or "
        "--label-column NAME with the label column.",
    )


@pytest.mark.slow
def test_report_rebuilds_the_page_from_rows(tmp_path):
    run("bench", "--method", "lsh", "--bits", "8", "--out", tmp_path, *TINY)
    result = run("report", tmp_path)
    assert result.stdout == f"The report is in {tmp_path / 'index.html'}: open it in a browser.\n"
    assert run("report", tmp_path, "--markdown").stdout.startswith("digits, 8 bits: 300 queries")
    latex = run("report", tmp_path, "--latex").stdout
    assert r"\caption{digits: 300 queries" in latex
    assert latex in (tmp_path / "tables.tex").read_text()
    empty = tmp_path / "empty"
    empty.mkdir()
    refused(
        run("report", empty),
        f"{empty}: there are no result rows to report; run streamhash bench with --out first.",
    )


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (
            ["--method", "sdoh,foo"],
            f"there is no method 'foo'; choose from {', '.join(METHODS)}, or pass the import path "
            "of another, package.module:Class.",
        ),
        (["--bits", "8,x"], "--bits 8,x: pass whole numbers with commas, such as 32,64."),
        (["--bits", "0"], "SDOH: --bits 0 must be a whole number from 1 to 1024."),
        (["--set", "kernel"], "--set kernel: pass NAME=VALUE, such as --set batch_size=100."),
        (
            ["--set", "n_bits=8"],
            "--set n_bits=8: use --bits for n_bits and --seed for random_state.",
        ),
        (
            ["--method", "lsh", "--set", "foo=1"],
            "LSH has no parameter 'foo' to set; it has batch_size, center, features, memory.",
        ),
        (
            ["--method", "lsh", "--set", "features=cosine"],
            "LSH: --set features=cosine must be one of None, 'absolute', 'fourier'.",
        ),
        (
            ["--method", "lsh", "--set", "memory=40"],
            "LSH: --set memory=40 is for methods that learn classes from single stages, and this "
            "one needs no labels; leave --set memory=0.",
        ),
        (["--resume"], "bench: --resume needs the folder with the rows; pass --out DIR."),
        (
            ["--settings", "best"],
            "bench: --settings best: pass default, published, both, tuned, or a .toml file.",
        ),
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
        ") nor a file; pass one of these names, or the path of a .npy, .npz, .parquet, .csv, "
        ".jsonl or .mat file.\n"
    )
