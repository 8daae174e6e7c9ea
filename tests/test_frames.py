"""Tables of pandas, polars and Arrow: lists are vectors, rows are metadata, ids are no features."""

import datetime
import re

import numpy as np
import pytest

from streamhash import LSH, Collection, InputError
from streamhash.frames import records, with_vectors

pandas = pytest.importorskip("pandas")
polars = pytest.importorskip("polars")
pyarrow = pytest.importorskip("pyarrow")

X = np.random.default_rng(0).standard_normal((40, 4)).astype(np.float32)
NESTED = pyarrow.list_(pyarrow.float32())
COLUMNS = {
    "pandas-lists": pandas.Series(X.tolist()),
    "pandas-arrays": pandas.Series([*X], index=range(40, 0, -1)),
    "pandas-arrow": pandas.Series(X.tolist(), dtype=pandas.ArrowDtype(NESTED)),
    "polars-list": polars.Series(X.tolist()),
    "polars-array": polars.Series(X),
    "arrow-list": pyarrow.array(X.tolist()),
    "arrow-fixed": pyarrow.FixedSizeListArray.from_arrays(X.ravel(), 4),
    "arrow-chunks": pyarrow.chunked_array([X[:7].tolist(), X[7:].tolist()]),
    "pandas-table": pandas.DataFrame({"embedding": X.tolist()}),
    "polars-table": polars.DataFrame({"embedding": X.tolist()}),
    "arrow-table": pyarrow.table({"embedding": X.tolist()}),
}
ROWS = [
    {"title": "a", "price": 1.5, "tags": ["x"], "when": "2026-01-02", "n": 1},
    {"title": "b", "price": None, "tags": [], "when": None, "n": 2},
    {"title": None, "price": 3.0, "tags": ["y", "z"], "when": None, "n": 3},
]
TABLE = polars.DataFrame(
    {
        **{name: [row[name] for row in ROWS] for name in ("title", "price", "tags")},
        "when": [datetime.date(2026, 1, 2), None, None],
        "n": [1, 2, 3],
    }
)
TABLES = {
    "polars": TABLE,
    "arrow": TABLE.to_arrow(),
    "pandas": TABLE.to_arrow().to_pandas(date_as_object=True),
}


@pytest.mark.parametrize("column", COLUMNS.values(), ids=COLUMNS)
def test_a_column_of_lists_is_a_matrix(column, tmp_path):
    np.testing.assert_allclose(with_vectors(column), X)
    expected = LSH(8, random_state=0).fit(X).transform(X)
    np.testing.assert_array_equal(LSH(8, random_state=0).fit(column).transform(column), expected)
    with Collection.create(tmp_path / "items", LSH(8, random_state=0)) as items:
        assert items.add(None, column) == 40
        np.testing.assert_allclose(items.get([3])[0].vector, X[3])


@pytest.mark.parametrize("library", [pandas.DataFrame, polars.DataFrame, pyarrow.table])
def test_what_would_be_a_guess_is_asked(library):
    both = library({"embedding": X.tolist(), "price": X[:, 0]})
    message = "LSH.fit: X has the column of lists 'embedding' beside 'price'; pass that column"
    with pytest.raises(InputError, match=re.escape(message)):
        LSH(8).fit(both)
    for name in ("id", "label"):
        message = f"LSH.fit: X has the column '{name}', which is never a feature; pass the columns"
        with pytest.raises(InputError, match=re.escape(message)):
            LSH(8).fit(library({name: np.arange(40), "a": X[:, 0], "b": X[:, 1]}))
    with pytest.raises(InputError, match="holds lists of 1 to 2 numbers"):
        LSH(8).fit(library({"embedding": [[1.0], [1.0, 2.0]]}))
    plain = library({"a": X[:, 0], "b": X[:, 1]})
    assert with_vectors(plain) is plain


@pytest.mark.parametrize("table", TABLES.values(), ids=TABLES)
def test_metadata_are_the_rows_of_a_table(table, tmp_path):
    assert records(table) == ROWS
    with Collection.create(tmp_path / "items", LSH(8, random_state=0)) as items:
        ids, labels = polars.Series(["p", "q", "r"]), pyarrow.array(["k", None, "l"])
        items.add(ids.to_arrow(), X[:3], labels, metadata=table)
        assert [item.metadata for item in items.get(["p", "q", "r"])] == ROWS
        assert [item.label for item in items.get(["p", "q", "r"])] == ["k", None, "l"]
        assert items.count(where="price > 2") == 1
        items.set_metadata(["r", "q", "p"], table)
        assert items.get(["r"])[0].metadata == ROWS[0]
        with pytest.raises(InputError, match="metadata came for 3 of 1 items; pass a list with a"):
            items.add(["s"], X[:1], metadata=table)
        assert len(items) == 3


def test_times_numbers_and_nothings_of_pandas_are_plain():
    table = pandas.DataFrame(
        {
            "when": pandas.to_datetime(["2026-01-02 03:04", None]),
            "whole": pandas.array([1, None], dtype="Int64"),
            "kind": pandas.Categorical(["a", None]),
            "long": pandas.to_timedelta([90, None], unit="s"),
        }
    )
    first = {"when": "2026-01-02T03:04:00", "whole": 1, "kind": "a", "long": 90.0}
    assert records(table) == [first, dict.fromkeys(first)]
