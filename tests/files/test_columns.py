"""Nothing silent about columns: what each holds is said, and what would be a guess is asked."""

import io
import json
import logging
import re

import numpy as np
import pyarrow
import pytest
from pyarrow import parquet

from streamhash import LSH, Collection, InputError
from streamhash.files import Columns, open_table, read_items, read_table
from streamhash.live import add_from

X = np.arange(12, dtype=np.float32).reshape(4, 3)
NUMBERED = {f"x{i}": X[:, i].tolist() for i in range(3)}
TITLES, PRICES = ["a", "b", "c", "d"], [9.5, 1e6, 3.0, 4.0]
FORMATS = ["csv", "parquet"]


@pytest.fixture(params=FORMATS)
def save(request, tmp_path):
    """Save columns as a file, lists as JSON in CSV."""

    def write(**columns):
        path = tmp_path / f"t.{request.param}"
        if request.param == "parquet":
            parquet.write_table(pyarrow.table(columns), path)
            return path
        rows = zip(*columns.values(), strict=True)
        cells = [[json.dumps(c) if isinstance(c, list) else str(c) for c in row] for row in rows]
        lines = ["\t".join(columns), *("\t".join(row) for row in cells)]
        path.write_text("\n".join(lines) + "\n")
        return path

    return write


def taken(path, **options):
    with open_table(path, **options) as table:
        return str(table.taken)


def refused(path, message, **options):
    with pytest.raises(InputError, match=re.escape(message)):
        [*read_items(path, **options)]


@pytest.mark.parametrize("name", ["id", "item_id", "productId", "uuid", "index", ""])
def test_ids_are_never_features(save, name):
    path = save(**{name: [1000, 2000, 3000, 4000], **NUMBERED, "label": TITLES})
    np.testing.assert_array_equal(read_table(path)[0], X)


def test_row_numbers_that_pandas_writes_are_no_features(tmp_path):
    pandas = pytest.importorskip("pandas")
    table = pandas.DataFrame({**NUMBERED, "label": TITLES})
    table.to_csv(tmp_path / "a.csv")
    table.to_csv(tmp_path / "b.csv")
    pandas.read_csv(tmp_path / "b.csv").to_csv(tmp_path / "b.csv")
    table[table["x0"] > 1].to_parquet(tmp_path / "c.parquet")
    for name, rows in (("a.csv", X), ("b.csv", X), ("c.parquet", X[1:])):
        np.testing.assert_array_equal(read_table(tmp_path / name)[0], rows)
        (piece,) = read_items(tmp_path / name)
        assert (piece.ids, piece.metadata) == (None, None)
    assert taken(tmp_path / "a.csv").endswith("; ignored: '' (without a name)")


def test_a_price_beside_numbered_columns_is_asked_for(save):
    path = save(id=[1, 2, 3, 4], price=PRICES, **NUMBERED, label=TITLES)
    message = (
        f"read_table: {path} has numbered columns, x0 to x2, beside other numbers, price; say "
        "which are features: pass Columns(features='x*'), with '*' for all, or "
        "Columns(ignore='price')."
    )
    with pytest.raises(InputError, match=re.escape(message)):
        read_table(path)
    for columns in (
        Columns(features="x*"),
        Columns(features=("x0", "x1", "x2")),
        Columns(ignore=("price",)),
        Columns(metadata=("price",)),
    ):
        np.testing.assert_array_equal(read_table(path, columns=columns)[0], X)
    assert read_table(path, columns=Columns(features=("*",)))[0].shape == (4, 4)
    with pytest.raises(InputError, match=r"no column 'z\*' is in .*, which has id, price, x0"):
        read_table(path, columns=Columns(features=("z*",)))
    with pytest.raises(InputError, match="no column 'cost' is in"):
        read_table(path, columns=Columns(ignore=("cost",)))
    (piece,) = read_items(path, columns=Columns(features=("x*",)))
    assert piece.metadata == [{"price": price} for price in PRICES]


def test_named_columns_of_numbers_are_features_and_said(save):
    path = save(width=[1, 2], title=["a", "b"], height=[3, 4], label=[0, 1])
    np.testing.assert_array_equal(read_table(path)[0], [[1, 3], [2, 4]])
    place = {"parts": ("vector", "label")}
    assert taken(path, **place) == "features: width, height; label: label; ignored: title"


def test_vectors_beside_other_columns(save):
    path = save(id=["p", "q", "r", "s"], title=TITLES, price=PRICES, embedding=X.tolist())
    assert taken(path) == "features: embedding; id: id; metadata: title, price"
    (piece,) = read_items(path)
    assert piece.ids == ["p", "q", "r", "s"]
    assert piece.metadata[1] == {"title": "b", "price": 1e6}
    np.testing.assert_array_equal(piece.vectors, X)
    (piece,) = read_items(path, columns=Columns(ignore=("*",)))
    assert piece.metadata is None
    (piece,) = read_items(path, columns=Columns(metadata=("price",)))
    assert piece.metadata[0] == {"price": 9.5}


def test_a_list_of_another_name_beside_numbers_is_asked_for(save):
    path = save(box=X.tolist(), lat=PRICES, lon=PRICES)
    refused(path, "has a column of lists, box, beside columns of numbers, lat, lon; say which hold")
    (piece,) = read_items(path, columns=Columns(vector="box"))
    assert piece.metadata[0] == {"lat": 9.5, "lon": 9.5}
    (piece,) = read_items(path, columns=Columns(features=("l*",), ignore=("box",)))
    assert piece.vectors.shape == (4, 2)
    path = save(emb=X.tolist(), price=PRICES)  # one number is no vector
    np.testing.assert_array_equal(next(read_items(path)).vectors, X)
    refused(save(one=X.tolist(), two=X.tolist()), "lists, one, two; say which holds the features")


def test_what_may_be_an_id_is_asked_for_when_ids_are(save):
    path = save(item_id=["p", "q", "r", "s"], vector=X.tolist())
    refused(path, "has no column 'id', and item_id looks like one; pass Columns(id='item_id'), or")
    assert next(read_items(path, columns=Columns("item_id"))).ids == ["p", "q", "r", "s"]
    assert next(read_items(path, columns=Columns(ignore=("item_id",)))).ids is None
    line = '{"sku_id": 4, "vector": [1, 2]}'
    with pytest.raises(InputError, match=r"sku_id looks like one; pass Columns\(id='sku_id'"):
        next(read_items(io.StringIO(line), format="jsonl"))


def test_keys_of_json_lines_that_are_nothing_else_are_metadata():
    lines = [
        {"id": 1, "vector": [1, 2], "title": "a", "label": None},
        {"id": 2, "vector": [1, 2], "title": "b", "sold": True, "label": "x"},
        {"id": 3, "vector": [1, 2]},
    ]
    text = "\n".join(map(json.dumps, lines))
    (piece,) = read_items(io.StringIO(text), format="jsonl")
    assert piece.metadata == [{"title": "a"}, {"title": "b", "sold": True}, None]
    (piece,) = read_items(io.StringIO(text), format="jsonl", columns=Columns(ignore=("title",)))
    assert piece.metadata == [None, {"sold": True}, None]
    with open_table(io.StringIO(text), format="jsonl", parts=("vector", "label")) as table:
        assert str(table.taken) == "features: vector; id: id; label: label; ignored: title"
    own = '{"id": 1, "vector": [1], "metadata": {"a": 1}, "more": 2}'
    with open_table(io.StringIO(own), format="jsonl") as table:
        assert str(table.taken) == "features: vector; id: id; metadata: metadata; ignored: more"
        assert next(table.pieces(9)).metadata == [{"a": 1}]


def test_metadata_of_csv_have_the_type_of_their_column():
    text = "id,vector,n,zip,sold,when\n"
    text += '1,"[1]",7,01234,true,May\n2,"[1]",-0.5,99999,,\n3,"[1]",1e3,,false,June\n'
    (piece,) = read_items(io.StringIO(text), format="csv")
    assert piece.metadata == [
        {"n": 7, "zip": "01234", "sold": True, "when": "May"},
        {"n": -0.5, "zip": "99999", "sold": None, "when": None},
        {"n": 1000.0, "zip": None, "sold": False, "when": "June"},
    ]


def test_arrays_and_fields_that_are_not_used_are_said(tmp_path):
    np.savez(tmp_path / "a.npz", X=X, y=[0, 1, 0, 1], ids=TITLES, prices=PRICES)
    expected = "features: X; id: ids; label: y; ignored: prices"
    assert taken(tmp_path / "a.npz") == expected
    assert taken(tmp_path / "a.npz", parts=("vector", "label")) == expected


def test_it_is_logged_once_a_reading(save, caplog):
    path = save(id=[1, 2, 3, 4], **NUMBERED, label=TITLES)
    with caplog.at_level(logging.INFO, "streamhash.files"):
        read_table(path)
    assert caplog.messages == [f"{path}: features: x0 to x2 (3 columns); id: id; label: label."]


def test_titles_and_dates_of_a_file_are_in_the_collection(tmp_path):
    when = pyarrow.array(["2026-01-02", None, "2026-03-04", None]).cast(pyarrow.date32())
    columns = {"id": TITLES, "title": TITLES, "price": PRICES, "when": when, "vector": X.tolist()}
    parquet.write_table(pyarrow.table(columns), tmp_path / "shop.parquet")
    with Collection.create(tmp_path / "shop", LSH(8, random_state=0)) as items:
        add_from(items, tmp_path / "shop.parquet")
        (item,) = items.get(["a"])
        assert item.metadata == {"title": "a", "price": 9.5, "when": "2026-01-02"}
        assert items.count(where="price < 5") == 2
