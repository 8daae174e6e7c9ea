"""All items of a live collection, gone through batch by batch, and as files for other programs."""

import json

import numpy as np
import pytest

from streamhash import LSH, SDOH
from streamhash.errors import FileError, InputError
from streamhash.lab.datasets import load_data
from streamhash.live import Collection
from streamhash.search import from_arrow, from_faiss, from_numpy

lance = pytest.importorskip("lance", reason="Lance is not installed")

N = 500


@pytest.fixture
def digits():
    data = load_data("digits")
    return data.X, data.y.tolist()


@pytest.fixture
def items(tmp_path, digits):
    """Labelled numbers with one replaced, one deleted, and one labelled later."""
    X, y = digits
    with Collection.create(tmp_path / "items", SDOH(20, random_state=0)) as collection:
        labels = [None, *y[1:N]]
        metadata = [{"row": i} for i in range(N)]
        collection.add(range(N), X[:N], labels, metadata=metadata)
        collection.add([3], X[N : N + 1], [7], metadata=[{"row": "new"}], existing="replace")
        collection.delete([5])
        collection.label([9], [1])
        yield collection


@pytest.fixture
def named(tmp_path, digits):
    X, _ = digits
    with Collection.create(tmp_path / "named", LSH(16, random_state=0), vectors="float16") as made:
        made.add([f"é{i}" for i in range(100)], X[:100], ["one", None, *["two"] * 98])
        made.refresh()
        yield made


def test_a_scan_sees_every_item_once_as_get_does(items):
    batches = [*items.scan(size=64)]
    assert len(batches) > 5
    ids = [i for batch in batches for i in batch.ids.tolist()]
    assert ids == items.ids
    there = items.get(ids)
    assert [m for batch in batches for m in batch.metadata] == [item.metadata for item in there]
    assert [label for batch in batches for label in batch.labels] == [i.label for i in there]
    vectors = np.concatenate([batch.vectors for batch in batches])
    np.testing.assert_array_equal(vectors, [item.vector for item in there])
    codes = np.concatenate([batch.codes for batch in batches])
    np.testing.assert_array_equal(codes, items.encode(vectors))
    assert next(items.scan(vectors=False)).vectors is None


def test_a_scan_sees_one_moment_while_the_collection_moves_on(items, digits):
    before, served = items.ids, items.model_number
    scan = items.scan(size=50)
    first = next(scan)
    items.delete(before[200:300])
    for i in range(80):  # enough that old versions are deleted
        items.add([1000 + i], digits[0][i : i + 1])
    items.add(range(2000, 2400), digits[0][900:1300], digits[1][900:1300])
    items.refresh()
    assert items.model_number > served
    rest = [*scan]
    assert [i for batch in (first, *rest) for i in batch.ids.tolist()] == before
    model = items.model(served)
    for batch in rest:
        np.testing.assert_array_equal(batch.codes, model.transform(batch.vectors))
    assert not [*(items._journal.folder / "readers").glob("*")]


def test_an_empty_collection_has_no_batches(tmp_path):
    with Collection.create(tmp_path / "empty", LSH(16)) as empty:
        assert [*empty.scan()] == []
        with pytest.raises(InputError, match="no model has been learned yet"):
            empty.export(tmp_path / "x.parquet")
    assert not (tmp_path / "x.parquet").exists()


def test_labels_come_from_memory(items):
    assert items.labels([0, 3, 9, 5]) == [None, 7, 1, None]
    assert items.id_kind == "whole numbers"


def test_check_refuses_what_add_refuses_and_stores_nothing(items, digits):
    X, _ = digits
    for ids, rows, message in [
        ([3], X[:1], "id 3 is there already"),
        ([7777], X[:1, :5], "X has 5 columns"),
        (["a"], X[:1], "ids are strings"),
    ]:
        for call in (items.check, items.add):
            with pytest.raises(InputError, match=message):
                call(ids, rows)
    items.check([7777], X[:1])
    assert 7777 not in items


def test_parquet_holds_all_and_becomes_an_index(items, tmp_path):
    parquet = pytest.importorskip("pyarrow.parquet")
    assert items.export(tmp_path / "items.parquet", vectors=True) == N - 1
    table = parquet.read_table(tmp_path / "items.parquet")
    assert table.column_names == ["id", "label", "metadata", "code", "vector"]
    there = items.get(items.ids)
    assert table["id"].to_pylist() == items.ids
    assert table["label"].to_pylist() == [item.label for item in there]
    assert [json.loads(text) for text in table["metadata"].to_pylist()] == [
        item.metadata for item in there
    ]
    np.testing.assert_array_equal(table["vector"].to_pylist(), [item.vector for item in there])
    index = from_arrow(table)
    assert index.n_bits == 20
    codes = dict(zip(index.ids.tolist(), index.codes.tolist(), strict=True))
    assert codes == {item.id: item.code.tolist() for item in there}
    items.export(tmp_path / "codes.parquet")
    assert parquet.read_schema(tmp_path / "codes.parquet").names == table.column_names[:-1]


def test_numpy_holds_labels_and_vectors_beside_the_codes(items, named, tmp_path):
    assert items.export(tmp_path / "items.npz", vectors=True) == N - 1
    with np.load(tmp_path / "items.npz", allow_pickle=False) as file:
        ids = file["ids"].tolist()
        assert sorted(ids) == sorted(items.ids)
        assert file["y"].tolist() == [
            "" if label is None else str(label) for label in items.labels(ids)
        ]
        np.testing.assert_array_equal(file["X"], [item.vector for item in items.get(ids)])
        np.testing.assert_array_equal(file["codes"], items.encode(file["X"]))
    assert from_numpy(tmp_path / "items.npz").n_bits == 20
    named.export(tmp_path / "named.npz")
    with np.load(tmp_path / "named.npz", allow_pickle=False) as file:
        assert file["y"].tolist()[:3] == ["one", "", "two"]
        assert "X" not in file


def test_faiss_finds_what_the_collection_finds(items, named, digits, tmp_path):
    faiss = pytest.importorskip("faiss", reason="faiss is not installed")
    X, _ = digits
    assert items.export(tmp_path / "items.faiss") == N - 1
    index = faiss.read_index_binary(str(tmp_path / "items.faiss"))
    distances, ids = items.search(X[1000:1010], 5)
    codes = items.encode(X[1000:1010])
    there = from_faiss(index, n_bits=20).search(codes, 5)
    np.testing.assert_array_equal(there[0], distances)
    np.testing.assert_array_equal(there[1], ids)
    assert not (tmp_path / "items.faiss.ids.json").exists()

    named.export(tmp_path / "named.faiss")
    names = json.loads((tmp_path / "named.faiss.ids.json").read_text("utf-8"))
    assert names == named.ids
    index = faiss.read_index_binary(str(tmp_path / "named.faiss"))
    _, places = index.search(named.encode(X[:1]), 1)
    assert names[places[0, 0]] == named.search(X[:1], 1)[1][0, 0]


def test_half_vectors_and_names_in_parquet(named, tmp_path):
    parquet = pytest.importorskip("pyarrow.parquet")
    named.export(tmp_path / "named.parquet", vectors=True)
    table = parquet.read_table(tmp_path / "named.parquet")
    assert str(table["vector"].type) == "fixed_size_list<element: halffloat>[64]"
    assert table["label"].to_pylist()[:3] == ["one", None, "two"]
    assert table["metadata"].null_count == 100


def test_a_collection_that_was_emptied_is_an_empty_file(named, tmp_path):
    parquet = pytest.importorskip("pyarrow.parquet")
    named.delete(named.ids)
    for ending in ("parquet", "npz"):
        assert named.export(tmp_path / f"none.{ending}", vectors=True) == 0
    assert len(parquet.read_table(tmp_path / "none.parquet")) == 0


def test_bad_exports_leave_what_was_there(items, tmp_path):
    (tmp_path / "items.txt").write_text("mine")
    with pytest.raises(InputError, match=r"does not end in .parquet, .npz or .faiss"):
        items.export(tmp_path / "items.txt")
    with pytest.raises(InputError, match="holds codes and ids only"):
        items.export(tmp_path / "items.faiss", vectors=True)
    for ending in ("parquet", "npz", "faiss"):
        with pytest.raises(FileError, match="cannot be written"):
            items.export(tmp_path / "nowhere" / f"items.{ending}")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["items", "items.txt"]
