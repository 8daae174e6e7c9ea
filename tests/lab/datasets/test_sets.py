"""Data sets by name or path: where they are found, what they hold, and what is said otherwise."""

import gzip
import os
import pickle
import re
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import streamhash.lab.datasets as data
from data import need_data
from streamhash.errors import FileError, InputError, MissingDataError
from streamhash.lab.datasets import mnist
from streamhash.lab.datasets.cards import CARDS, data_folders


def mnist_archives():
    """Return MNIST's four compressed files, or skip the test."""
    archives = list(Path(need_data("mnist").where).glob("*-ubyte.gz"))
    return archives or pytest.skip("mnist is here, but not compressed")


@pytest.fixture
def no_data(monkeypatch, tmp_path):
    """Return an empty cache folder, with nothing else to look in."""
    monkeypatch.delenv("STREAMHASH_DATA", raising=False)
    monkeypatch.setenv("STREAMHASH_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def test_the_public_names_are_there():
    assert data.__all__ == sorted(data.__all__)
    assert all(hasattr(data, name) for name in data.__all__)


def test_import_leaves_heavy_parts_alone():
    heavy = ["sklearn", "scipy", "h5py", "PIL", "pyarrow", "numba", "pandas", "urllib.request"]
    code = f"import streamhash.lab.datasets, sys; print([m for m in {heavy} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_digits_come_scaled():
    digits = data.load_data("digits")
    assert digits.X.dtype == np.float32
    assert (digits.X.min(), digits.X.max()) == (0, 1)
    assert digits.X.shape == (digits.card.rows, digits.card.features)
    assert np.unique(digits.y).tolist() == list(range(10))


def test_synthetic_is_the_same_each_time():
    first, second = data.load_data("synthetic"), data.load_data("synthetic")
    assert np.array_equal(first.X, second.X)
    assert first.X.shape == (first.card.rows, first.card.features)
    parts = data.split(first.y, random_state=0)  # large enough for the protocol's own numbers
    assert len(parts.stream) == 20_000


def test_the_card_of_mnist_has_the_checksums_of_its_files():
    card = CARDS["mnist"]
    assert card.checksum == " ".join(f"md5:{file.md5}" for file in mnist.FILES)
    assert card.files == tuple(file.name for file in mnist.FILES)


@pytest.mark.slow
def test_mnist_is_whole():
    need_data("mnist")
    mnist = data.load_data("mnist")
    assert mnist.X.shape == (70_000, 784)
    assert mnist.X.dtype == np.float32
    assert (mnist.X.min(), mnist.X.max()) == (0, 1)
    assert mnist.y[:5].tolist() == [5, 0, 4, 1, 9]  # the training file's first labels
    assert mnist.y[60_000:60_005].tolist() == [7, 2, 1, 0, 4]  # the test file's
    assert Path(mnist.card.where).is_dir()


@pytest.mark.slow
def test_mnist_uncompressed_is_the_same(monkeypatch, tmp_path):
    archives = mnist_archives()
    expected = data.load_data("mnist")
    plain = tmp_path / "mnist"
    plain.mkdir()
    for path in archives:
        (plain / path.stem).write_bytes(gzip.decompress(path.read_bytes()))
    monkeypatch.setenv("STREAMHASH_DATA", str(tmp_path))
    found = data.load_data("mnist")
    assert found.card.where == str(plain)
    assert np.array_equal(found.X, expected.X)
    assert np.array_equal(found.y, expected.y)


@pytest.mark.slow
def test_a_damaged_mnist_file_is_refused(monkeypatch, tmp_path):
    for path in mnist_archives():
        shutil.copyfile(path, tmp_path / path.name)
    labels = tmp_path / "t10k-labels-idx1-ubyte.gz"
    labels.write_bytes(labels.read_bytes()[:-100])
    monkeypatch.setenv("STREAMHASH_DATA", str(tmp_path))
    with pytest.raises(FileError, match=r"t10k-labels.*not a whole gzip.*data fetch mnist"):
        data.load_data("mnist")


@pytest.mark.slow
def test_feature_sets_are_whole():
    need_data("miniplaces-features")
    places = data.load_data("miniplaces-features")
    assert places.X.shape == (100_000, 128)
    assert places.X.dtype == np.float32
    assert np.unique(places.y).tolist() == list(range(100))


def test_a_foreign_feature_file_is_refused(no_data):
    no_data.mkdir()
    np.savez(no_data / "cifar10_features.npz", X=np.eye(3), y=np.arange(3))
    with pytest.raises(FileError, match=r"not the cifar10-features file.*load your own file by"):
        data.load_data("cifar10-features")


def test_missing_mnist_says_the_next_step(no_data):
    with pytest.raises(MissingDataError) as caught:
        data.load_data("mnist")
    assert str(caught.value) == (
        "load_data: 'mnist' (train-images-idx3-ubyte.gz, train-labels-idx1-ubyte.gz, "
        f"t10k-images-idx3-ubyte.gz, t10k-labels-idx1-ubyte.gz) is not in {no_data}; run "
        "streamhash data fetch mnist, or set STREAMHASH_DATA to a folder that has them."
    )


@pytest.mark.parametrize("name", ["cifar10-features", "miniplaces-features"])
@pytest.mark.parametrize("fetch", [False, True])
@pytest.mark.usefixtures("no_data")
def test_missing_features_say_that_there_is_no_download(name, fetch):
    with pytest.raises(MissingDataError, match=r"has no public download: .* set STREAMHASH_DATA"):
        data.load_data(name, fetch=fetch)


def test_missing_reuters_says_why_it_is_not_fetched(no_data):
    with pytest.raises(MissingDataError) as caught:
        data.load_data("reuters", fetch=True)
    assert str(caught.value) == (
        f"fetch: 'reuters' (reuters21578.npz) is not in {no_data}; it is distributed for research "
        "use and never fetched: get the file and set STREAMHASH_DATA to its folder."
    )


def test_reuters_has_several_topics_a_row():
    need_data("reuters")
    reuters = data.load_data("reuters")
    assert reuters.X.shape == (reuters.card.rows, reuters.card.features)
    assert reuters.X.dtype == np.float32
    assert reuters.y.shape == (reuters.card.rows, reuters.card.classes)
    assert round(reuters.y.sum() / len(reuters.y), 2) == 1.24
    assert reuters.y.any(axis=1).all()


def test_an_unknown_name_lists_the_known():
    with pytest.raises(MissingDataError, match=r"'mnits' is neither a data set \(digits, mnist, "):
        data.load_data("mnits")


def test_a_missing_file_is_named():
    with pytest.raises(MissingDataError, match=r"there is no file nowhere\.npy"):
        data.load_data("nowhere.npy")


def test_available_looks_on_the_machine(no_data):
    assert {card.name: card.here for card in data.available()} == {
        "digits": True,
        "mnist": False,
        "cifar10-features": False,
        "cifar10-vgg16": False,
        "miniplaces-features": False,
        "places205": False,
        "places205-synthetic": True,
        "reuters": False,
        "long-tail": True,
        "synthetic": True,
    }
    (no_data / "cifar10_features").mkdir(parents=True)
    (no_data / "cifar10_features" / "cifar10_features.npz").touch()
    card = next(card for card in data.available() if card.name == "cifar10-features")
    assert card.where == str(no_data / "cifar10_features")


def test_a_set_counts_only_with_all_its_files(no_data):
    no_data.mkdir()
    (no_data / "train-images-idx3-ubyte.gz").touch()
    assert not next(card for card in data.available() if card.name == "mnist").here


def test_every_card_tells_source_and_terms():
    for card in CARDS.values():
        assert card.source
        assert card.licence
        assert card.note
        assert card.checksum is None or re.fullmatch(r"((md5|sha256):[0-9a-f]+ ?)+", card.checksum)


def test_the_persons_folder_comes_before_the_cache(no_data, monkeypatch, tmp_path):
    monkeypatch.setenv("STREAMHASH_DATA", str(tmp_path / "mine"))
    assert data_folders() == [tmp_path / "mine", no_data]
    for folder in data_folders():
        folder.mkdir()
        (folder / "cifar10_features.npz").touch()
    card = next(card for card in data.available() if card.name == "cifar10-features")
    assert card.where == str(tmp_path / "mine")


@pytest.mark.parametrize(
    ("platform", "variables", "expected"),
    [
        ("linux", {"XDG_CACHE_HOME": "xdg"}, "xdg/streamhash"),
        ("linux", {}, "home/.cache/streamhash"),
        ("darwin", {"XDG_CACHE_HOME": "xdg"}, "home/Library/Caches/streamhash"),
        ("win32", {"LOCALAPPDATA": "local"}, "local/streamhash"),
        ("win32", {}, "home/AppData/Local/streamhash"),
        ("linux", {"STREAMHASH_CACHE": "mine", "XDG_CACHE_HOME": "xdg"}, "mine"),
    ],
)
def test_the_cache_follows_the_platform(monkeypatch, platform, variables, expected):
    for name in ("STREAMHASH_CACHE", "XDG_CACHE_HOME", "LOCALAPPDATA"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(Path, "home", lambda: Path("home"))
    monkeypatch.setattr(sys, "platform", platform)
    assert data.cache_folder() == Path(expected)


def test_an_empty_variable_counts_as_unset(monkeypatch):
    monkeypatch.setenv("STREAMHASH_DATA", "")
    assert data_folders() == [data.cache_folder()]


def test_a_persons_file_becomes_a_data_set(tmp_path):
    path = tmp_path / "items.npz"
    np.savez(path, features=np.eye(4), labels=np.array(["a", "b", "a", "b"]))
    items = data.load_data(path)
    assert (items.name, items.X.dtype, items.y.tolist()) == ("items", np.float32, list("abab"))
    assert (items.card.rows, items.card.features, items.card.classes) == (4, 4, 2)
    assert items.card.source == "items.npz"
    assert data.load_data(os.fspath(path)).name == "items"


def test_a_float32_npy_stays_on_disk(tmp_path):
    np.save(tmp_path / "X.npy", np.eye(4, dtype=np.float32))
    np.save(tmp_path / "y.npy", np.arange(4))
    items = data.load_data(tmp_path / "X.npy", labels=tmp_path / "y.npy")
    assert isinstance(items.X, np.memmap)


def test_a_file_without_labels_is_no_data_set(tmp_path):
    np.save(tmp_path / "X.npy", np.eye(4))
    with pytest.raises(InputError, match=r"X\.npy has no labels; pass labels=FILE .* or column="):
        data.load_data(tmp_path / "X.npy")


def test_labels_are_not_for_named_sets():
    with pytest.raises(InputError, match=r"labels and columns are for files, and 'digits'"):
        data.load_data("digits", column="y")


def test_a_set_travels_as_what_was_asked_for(tmp_path):
    (tmp_path / "items.csv").write_text("a,b,label\n1,2,x\n3,4,y\n")
    for asked in ("digits", tmp_path / "items.csv"):
        found = data.load_data(asked)
        parcel = pickle.dumps(found)
        assert len(parcel) < 1000
        again = pickle.loads(parcel)
        assert np.array_equal(again.X, found.X)
        assert np.array_equal(again.y, found.y)
        assert again.card == found.card


def test_the_request_remembers_where_the_labels_are(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    np.save("X.npy", np.eye(4, dtype=np.float32))
    np.save("y.npy", np.arange(4))
    Path("items.csv").write_text("a,kind\n1,x\n3,y\n")
    request = data.load_data("X.npy", labels="y.npy").request
    assert request == data.Request(str(tmp_path / "X.npy"), labels=str(tmp_path / "y.npy"))
    request = data.load_data("items.csv", column="kind").request
    assert request == data.Request(str(tmp_path / "items.csv"), column="kind")
    assert data.load_data("synthetic", rows=10).request == data.Request("synthetic", rows=10)


def test_a_name_is_that_of_a_set_unless_a_file_has_it(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert data.is_named("digits")
    assert not data.is_named("items.csv")
    Path("digits").touch()
    assert not data.is_named("digits")


def test_a_set_made_of_arrays_travels_whole():
    digits = data.load_data("digits")
    made = replace(digits, name="mine", request=None)
    again = pickle.loads(pickle.dumps(made))
    assert again.name == "mine"
    assert np.array_equal(again.X, digits.X)
