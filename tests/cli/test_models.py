"""The verbs for a person's own files: fit, encode, search, evaluate."""

import json

import numpy as np
import pytest

from command_line import errors, refused, run
from streamhash import SDOH, HammingIndex, evaluate, load
from streamhash.lab.datasets import load_data


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("files")
    digits = load_data("digits")
    X, y = digits.X, digits.y
    np.savez(folder / "train.npz", X=X[:1200], y=y[:1200])
    np.savez(folder / "test.npz", X=X[1200:], y=y[1200:])
    np.save(folder / "X.npy", X[:1200])
    np.save(folder / "y.npy", y[:1200])
    np.save(folder / "queries.npy", X[1200:1203])
    result = run("fit", folder / "train.npz", "--model", folder / "model", "--bits", "24")
    assert result.exit_code == 0, result.output
    return folder


@pytest.fixture(scope="module")
def hasher():
    digits = load_data("digits")
    return SDOH(n_bits=24, random_state=0).fit(digits.X[:1200], digits.y[:1200])


def test_fit_learns_what_the_library_learns(files, hasher):
    np.testing.assert_array_equal(load(files / "model").W_, hasher.W_)


def test_fit_takes_labels_from_a_file_of_their_own(files, hasher, tmp_path):
    model = tmp_path / "model"
    result = run(
        *("fit", files / "X.npy", "--labels", files / "y.npy", "--model", model, "--bits", 24)
    )
    assert result.stdout == f"SDOH with 24 bits has learned from 1,200 rows; saved in {model}.\n"
    np.testing.assert_array_equal(load(model).W_, hasher.W_)


def test_fit_takes_a_data_set_method_seed_and_parameters(tmp_path):
    model = tmp_path / "model"
    words = ["fit", "digits", "--model", model, "--method", "lsh", "--bits", "10", "--seed", "3"]
    assert run(*words, "--set", "center=false").exit_code == 0
    parameters = load(model).get_params()
    assert (parameters["n_bits"], parameters["random_state"], parameters["center"]) == (
        10,
        3,
        False,
    )


def test_fit_goes_on_where_it_stopped(files, tmp_path):
    digits = load_data("digits")
    model = tmp_path / "model"
    model.write_bytes((files / "model").read_bytes())
    result = run("fit", files / "test.npz", "--model", model, "--continue")
    assert result.stdout == f"SDOH with 24 bits has learned from 1,797 rows; saved in {model}.\n"
    whole = SDOH(n_bits=24, random_state=0).partial_fit(digits.X[:1200], digits.y[:1200])
    whole.partial_fit(digits.X[1200:], digits.y[1200:]).settle()
    np.testing.assert_array_equal(load(model).W_, whole.W_)


def test_fit_never_loses_a_model(files, tmp_path):
    model, before = files / "model", (files / "model").read_bytes()
    refused(
        run("fit", files / "train.npz", "--model", model),
        f"fit: {model} is there already; pass --continue to go on learning with it, or "
        "--overwrite to replace it.",
    )
    refused(
        run("fit", files / "train.npz", "--model", model, "--continue", "--bits", "8"),
        "fit: --continue takes method, bits, seed and parameters from the model; leave out "
        "--method, --bits, --seed, --settings and --set.",
    )
    X = np.load(files / "X.npy")
    X[700, 3] = np.nan
    np.savez(tmp_path / "bad.npz", X=X, y=np.load(files / "y.npy"))
    bad = run("fit", tmp_path / "bad.npz", "--model", model, "--continue")
    assert bad.exit_code == 2
    assert errors(bad).startswith("streamhash: SDOH.partial_fit: Input X contains NaN")
    assert model.read_bytes() == before
    replaced = tmp_path / "other"
    replaced.write_text("old")
    assert run("fit", "digits", "--model", replaced, "--overwrite").exit_code == 0


def test_fit_wants_labels_unless_the_method_does_without(files, tmp_path):
    model = tmp_path / "model"
    refused(
        run("fit", files / "X.npy", "--model", model),
        f"fit: {files / 'X.npy'} has no labels, and SDOH learns from them; pass --labels FILE or "
        "--label-column NAME.",
    )
    assert not model.exists()
    assert run("fit", files / "X.npy", "--model", model, "--method", "lsh").exit_code == 0


def test_encode_saves_the_codes(files, hasher, tmp_path):
    out = tmp_path / "codes.npy"
    result = run("encode", files / "model", files / "train.npz", "--out", out)
    assert result.stdout == f"1,200 codes of 24 bits; saved in {out}.\n"
    np.testing.assert_array_equal(np.load(out), hasher.transform(np.load(files / "X.npy")))
    assert [path.name for path in tmp_path.iterdir()] == ["codes.npy"]
    refused(
        run("encode", files / "model", files / "X.npy", "--out", "codes.bin"),
        "encode: --out codes.bin: codes are saved as .npy; name it so.",
    )


def test_search_takes_codes_and_features_alike(files, hasher, tmp_path):
    codes = tmp_path / "codes.npy"
    run("encode", files / "model", files / "train.npz", "--out", codes)
    words = [files / "queries.npy", "-k", "4", "--json"]
    from_codes = run("search", files / "model", codes, *words)
    from_features = run("search", files / "model", files / "train.npz", *words)
    assert from_codes.stdout == from_features.stdout
    index = HammingIndex(24)
    index.add(None, hasher.transform(np.load(files / "X.npy")))
    distances, items = index.search(hasher.transform(np.load(files / "queries.npy")), k=4)
    assert json.loads(from_codes.stdout) == [
        {"query": query, "items": items[query].tolist(), "distances": distances[query].tolist()}
        for query in range(3)
    ]


def test_search_prints_a_table_of_rows(files):
    result = run("search", files / "model", files / "X.npy", files / "queries.npy", "-k", "2")
    lines = result.stdout.splitlines()
    assert lines[1].split() == ["query", "rank", "item", "distance"]
    assert [line.split()[:2] for line in lines[3:9]] == [
        [query, rank] for query in "012" for rank in "12"
    ]


def test_evaluate_measures_as_the_library_does(files, hasher):
    digits = load_data("digits")
    words = ["evaluate", files / "model", "--queries", files / "test.npz"]
    inside = run(*words, "--database", files / "train.npz", "--json")
    beside = run(
        *words,
        *("--database", files / "X.npy", "--database-labels", files / "y.npy", "--json"),
    )
    codes = hasher.transform(digits.X)
    expected = evaluate(codes[1200:], digits.y[1200:], codes[:1200], digits.y[:1200])
    found = json.loads(inside.stdout)
    assert found == json.loads(beside.stdout)
    means, classes = found.pop("class_means"), found.pop("classes")
    assert found == pytest.approx(expected)
    assert [each["label"] for each in classes] == [*range(10)]
    assert sum(each["queries"] for each in classes) == 597
    assert means["map"] == pytest.approx(np.mean([each["map"] for each in classes]))
    assert means["map"] != pytest.approx(found["map"], abs=1e-6)
    table = run(*words, "--database", files / "train.npz").stdout
    lines = [line.split() for line in table.splitlines()]
    assert ["mAP@1000", f"{expected['map@1000']:.4f}", f"{means['map@1000']:.4f}"] in lines
    assert ["P@H2", f"{expected['precision@h2']:.4f}", f"{means['precision@h2']:.4f}"] in lines
    worst = min(classes, key=lambda each: each["map"])
    first = lines.index(["The", "worst", "10", "of", "10", "classes:"]) + 4
    assert lines[first][:3] == [str(worst["label"]), str(worst["queries"]), f"{worst['map']:.4f}"]


def test_evaluate_wants_labels(files):
    refused(
        run(
            *("evaluate", files / "model", "--database", files / "train.npz"),
            *("--queries", files / "queries.npy"),
        ),
        f"evaluate: {files / 'queries.npy'} has no labels; pass --query-labels FILE or "
        "--label-column NAME.",
    )


def test_files_that_cannot_be_read_are_one_line(files, tmp_path):
    nothing, garbage = tmp_path / "nothing.npy", tmp_path / "garbage.npy"
    refused(
        run("fit", nothing, "--model", tmp_path / "m"),
        f"read_table: there is no file {nothing}; check the path.",
    )
    garbage.write_bytes(b"garbage")
    for result in (
        run("fit", garbage, "--model", tmp_path / "m"),
        run("encode", garbage, files / "X.npy", "--out", tmp_path / "c.npy"),
        run("encode", tmp_path / "no model", files / "X.npy", "--out", tmp_path / "c.npy"),
        run("encode", files / "model", files / "X.npy", "--out", tmp_path / "no" / "c.npy"),
    ):
        assert (result.exit_code, result.stdout) == (2, "")
        assert result.stderr.startswith("streamhash: ")
        assert result.stderr.count("\n") == 1
    assert [path.name for path in tmp_path.iterdir()] == ["garbage.npy"]


def test_codes_of_another_width_are_refused(files, tmp_path):
    np.save(tmp_path / "wide.npy", np.zeros((2, 9), np.uint8))
    result = run("search", files / "model", files / "X.npy", tmp_path / "wide.npy")
    assert result.exit_code == 2
    assert "X has 9 features" in result.stderr
