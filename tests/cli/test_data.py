"""The verb data, and files of every format wherever the command line reads one."""

import json

import numpy as np
import pytest
from scipy.io import savemat

from command_line import refused, run
from streamhash import load
from streamhash.lab.datasets import load_data


def test_show():
    result = run("data", "show", "places205-synthetic")
    assert result.exit_code == 0
    lines = result.stdout.splitlines()
    assert lines[:2] == [
        "places205-synthetic",
        "  size      2,500,000 rows × 128 features, 205 classes",
    ]
    assert [line.split()[0] for line in lines[2:]] == [
        *("source", "licence", "note", "checksum", "where")
    ]
    assert run("data", "show", "mnist", "--json").stdout.startswith('{\n  "name": "mnist"')
    result = run("data", "show", "nope")
    assert result.exit_code == 2
    assert result.stderr.startswith("streamhash: 'nope' is not a data set; pass one of digits,")


def test_fetch_says_what_needs_no_download():
    refused(
        run("data", "fetch", "digits"),
        "fetch: 'digits' needs no download; use load_data('digits').",
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Return a folder with the same 300 digits in files of every format."""
    folder = tmp_path_factory.mktemp("formats")
    digits = load_data("digits")
    X, y = digits.X[:300], digits.y[:300]
    np.savez(folder / "t.npz", X=X, y=y)
    savemat(folder / "t.mat", {"X": X, "y": y})
    items = [{"id": i, "vector": x, "label": int(y[i])} for i, x in enumerate(X.tolist())]
    (folder / "t.jsonl").write_text("\n".join(map(json.dumps, items)))
    lines = ["\t".join(map(str, [i, *x, y[i]])) for i, x in enumerate(X.tolist())]
    names = ["id", *(f"x{i}" for i in range(64)), "label"]
    (folder / "t.tsv").write_text("\n".join(["\t".join(names), *lines]))
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    columns = {name: [item[name] for item in items] for name in items[0]}
    parquet.write_table(pyarrow.table(columns), folder / "t.parquet")
    return folder


@pytest.mark.parametrize("ending", ["mat", "jsonl", "tsv", "parquet"])
def test_fit_learns_the_same_from_every_format(folder, tmp_path, ending):
    for name in ("npz", ending):
        words = ("fit", folder / f"t.{name}", "--model", tmp_path / name, "--bits", 16)
        assert run(*words).exit_code == 0
    np.testing.assert_array_equal(load(tmp_path / "npz").W_, load(tmp_path / ending).W_)


@pytest.mark.slow
@pytest.mark.parametrize("ending", ["mat", "jsonl", "tsv", "parquet"])
def test_bench_and_live_add_read_every_format(folder, tmp_path, ending):
    pytest.importorskip("lance")
    rows = []
    for name in ("npz", ending):
        cell = ("--method", "lsh", "--bits", 8, "--seeds", 1, "--checkpoints", 1, "--json")
        done = run("bench", "--data", folder / f"t.{name}", *cell, "--out", tmp_path / name)
        assert done.exit_code == 0, done.output
        row = json.loads(done.stdout)
        rows.append((row["metrics"], row["data_checksum"]))
    assert rows[0] == rows[1]
    items = tmp_path / "items"
    assert run("live", "create", items, "--bits", 16).exit_code == 0
    done = run("live", "add", items, folder / f"t.{ending}")
    assert done.stdout.startswith(f"300 items added to {items}; 300 in all;")
