"""A person's files: what is read from each kind, and what is said of a bad one."""

import json
import pickle
import re
import sys
import tempfile
import tracemalloc
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from hypothesis.extra.numpy import array_shapes, arrays
from scipy.io import savemat

from streamhash.errors import FileError, InputError, MissingDataError, MissingPartError
from streamhash.files import open_table, read, read_items, read_table

X4 = np.arange(12, dtype=np.float32).reshape(4, 3)
Y4 = np.array([0, 1, 0, 1])


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Work in an empty folder, so that messages hold the bare file names."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def write(name, content):
    Path(name).write_bytes(content if isinstance(content, bytes) else content.encode())
    return name


def save_parquet(name, columns, **kwargs):
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    parquet.write_table(pyarrow.table(columns), name, **kwargs)
    return name


@pytest.mark.usefixtures("folder")
class TestArrays:
    def test_npy_is_memory_mapped_as_it_is(self):
        np.save("X.npy", X4.astype(np.float64))
        X, y = read_table("X.npy")
        assert isinstance(X, np.memmap)
        assert X.dtype == np.float64
        assert np.array_equal(X, X4)
        assert y is None

    def test_npy_labels_of_all_kinds(self):
        np.save("X.npy", X4)
        np.save("y.npy", Y4[:, None])
        write("y.txt", "0\n1\n0\n1\n\n")
        write("y.csv", "label\n0\n1\n0\n1\n")
        write("bare.csv", "0\r\n1\r\n0\r\n1\r\n")
        for labels in ("y.npy", "y.txt", "y.csv", "bare.csv"):
            assert read_table("X.npy", labels=labels)[1].tolist() == [0, 1, 0, 1]
        write("words.txt", "cat\ndog fish\n007\ncat\n")
        assert read_table("X.npy", labels="words.txt")[1].tolist() == [
            "cat",
            "dog fish",
            "007",
            "cat",
        ]
        write("words.csv", 'kind\n"cat"\ndog\ncat\ndog\n')
        assert read_table("X.npy", labels="words.csv")[1].tolist() == ["cat", "dog"] * 2

    def test_a_surplus_label_is_no_header(self):
        np.save("X.npy", X4)
        for name, text in [("a.csv", "0\n1\n0\n1\n0\n"), ("b.csv", "a\na\nb\nb\na\n")]:
            write(name, text)
            with pytest.raises(InputError, match=f"{name} has 5 labels for 4 rows of features"):
                read_table("X.npy", labels=name)

    @pytest.mark.parametrize("names", [("X", "y"), ("features", "labels")])
    @pytest.mark.parametrize("dtype", [np.float16, np.float64, np.int32])
    @pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
    def test_npz(self, names, dtype, save):
        save("data.npz", **{names[0]: X4.astype(dtype), names[1]: Y4})
        X, y = read_table("data.npz")
        assert X.dtype == np.float32
        assert np.array_equal(X, X4)
        assert y.tolist() == [0, 1, 0, 1]

    def test_npz_without_labels_or_with_others(self):
        np.savez("data.npz", X=X4, kind=np.array(list("abab")))
        assert read_table("data.npz")[1] is None
        assert read_table("data.npz", column="kind")[1].tolist() == list("abab")
        with pytest.raises(InputError, match=r"no column 'sort' is in data\.npz, which has "):
            read_table("data.npz", column="sort")

    def test_multi_label_matrix(self):
        matrix = np.array([[0, 1], [1, 1], [1, 0], [0, 0]], bool)
        np.savez("data.npz", X=X4, y=matrix)
        np.save("X.npy", X4)
        np.save("Y.npy", matrix.astype(float))
        for _, y in (read_table("data.npz"), read_table("X.npy", labels="Y.npy")):
            assert y.dtype == np.uint8
            assert np.array_equal(y, matrix)

    def test_a_file_of_labels_replaces_those_inside(self):
        np.savez("data.npz", X=X4, y=Y4)
        write("y.txt", "5\n6\n7\n8\n")
        assert read_table("data.npz", labels="y.txt")[1].tolist() == [5, 6, 7, 8]

    def test_nan_and_infinity_pass(self):
        values = X4.copy()
        values[0, 0], values[1, 1] = np.nan, np.inf
        np.savez("data.npz", X=values)
        assert np.array_equal(read_table("data.npz")[0], values, equal_nan=True)

    @pytest.mark.parametrize("name", ["X.npy", "X.npz"])
    def test_pickled_objects_are_never_loaded(self, name):
        class Trap:
            def __reduce__(self):
                return (Path.touch, (Path("sprung"),))

        objects = np.array([[Trap()]], dtype=object)
        if name == "X.npy":
            np.save(name, objects, allow_pickle=True)
        else:
            np.savez(name, X=objects)
        with pytest.raises(
            FileError, match=f"{name} holds pickled Python objects, which are never"
        ):
            read_table(name)
        assert not Path("sprung").exists()

    def test_a_pickle_by_another_name_is_never_loaded(self):
        write("X.npy", pickle.dumps([[1.0]]))
        with pytest.raises(
            FileError, match=r"cannot be read as \.npy \(it does not begin as one\)"
        ):
            read_table("X.npy")

    @pytest.mark.parametrize("keep", [0, 1, 60, 130, -1])
    @pytest.mark.parametrize("name", ["X.npy", "X.npz"])
    def test_cut_files_are_refused(self, name, keep):
        np.save("X.npy", X4)
        np.savez_compressed("X.npz", X=X4)
        write(name, Path(name).read_bytes()[:keep])
        with pytest.raises(FileError, match=re.escape(f"{name} cannot be read as {name[1:]} (")):
            read_table(name)

    def test_a_flipped_byte_in_an_archive_is_noticed(self):
        np.savez("X.npz", X=X4, y=Y4)
        content = bytearray(Path("X.npz").read_bytes())
        content[content.index(X4.tobytes()) + 5] ^= 1
        write("X.npz", bytes(content))
        with pytest.raises(FileError, match="Bad CRC-32"):
            read_table("X.npz")

    def test_an_array_named_archive_is_refused(self):
        np.save("X.npy", X4)
        Path("X.npy").rename("X.npz")
        with pytest.raises(FileError, match=r"X\.npz cannot be read as \.npz"):
            read_table("X.npz")


@pytest.mark.usefixtures("folder")
class TestText:
    @pytest.mark.parametrize("delimiter", [",", ";", "\t"])
    @pytest.mark.parametrize("label", ["label", "y"])
    @pytest.mark.parametrize("position", [0, 1, 2])
    def test_header_and_label_column(self, delimiter, label, position):
        rows = [["a", "b"], ["1", "2.5"], ["-3e-1", "4"]]
        for row, name in zip(rows, [label, "red", "blue"], strict=True):
            row.insert(position, name)
        write("t.csv", "\n".join(delimiter.join(row) for row in rows) + "\n")
        X, y = read_table("t.csv")
        assert X.dtype == np.float32
        assert np.array_equal(X, np.float32([[1, 2.5], [-0.3, 4]]))
        assert y.tolist() == ["red", "blue"]

    def test_no_header(self):
        write("t.csv", "1,2\n3,4\n")
        X, y = read_table("t.csv")
        assert X.tolist() == [[1, 2], [3, 4]]
        assert y is None
        X, y = read_table("t.csv", column=1)
        assert X.tolist() == [[1], [3]]
        assert y.tolist() == [2, 4]

    @pytest.mark.parametrize("column", ["2", 2])
    def test_text_labels_without_header(self, column):
        write("t.csv", "1,2,cat\n3,4,dog\n")
        X, y = read_table("t.csv", column=column)
        assert X.tolist() == [[1, 2], [3, 4]]
        assert y.tolist() == ["cat", "dog"]

    def test_numbered_header(self):
        """A table whose columns are called 0 and 1 has them in its header."""
        write("t.csv", "0,1,label\n5,6,cat\n")
        X, y = read_table("t.csv")
        assert X.tolist() == [[5, 6]]
        assert y.tolist() == ["cat"]

    def test_a_file_of_labels_leaves_all_columns_features(self):
        write("t.csv", "x,y\n1,2\n3,4\n")
        write("labels.txt", "7\n8\n")
        X, y = read_table("t.csv", labels="labels.txt")
        assert X.tolist() == [[1, 2], [3, 4]]
        assert y.tolist() == [7, 8]

    def test_signs_of_spreadsheets(self):
        """A byte order mark, carriage returns, quotes, blank lines and empty cells."""
        write("t.csv", '\ufeff"a, b";c;label\r\n1; 2 ;"x;y"\r\n\r\n;nan;z\r\n')
        X, y = read_table("t.csv")
        assert np.array_equal(X, np.float32([[1, 2], [np.nan, np.nan]]), equal_nan=True)
        assert y.tolist() == ["x;y", "z"]
        write("first.csv", "\ufefflabel,a\ncat,1\n")
        assert read_table("first.csv")[1].tolist() == ["cat"]

    def test_beyond_float32_is_infinite(self):
        write("t.csv", "1e300,-1e300,inf\n")
        assert read_table("t.csv")[0].tolist() == [[np.inf, -np.inf, np.inf]]

    @settings(deadline=None, max_examples=50)
    @given(arrays(np.float32, array_shapes(min_dims=2, max_dims=2), elements=st.floats(width=32)))
    def test_every_number_survives(self, values):
        with tempfile.TemporaryDirectory() as place:
            path = Path(place, "t.csv")
            path.write_text("\n".join(",".join(map(repr, row)) for row in values.tolist()))
            assert np.array_equal(read_table(path)[0], values, equal_nan=True)

    @pytest.mark.parametrize(
        ("content", "error", "message"),
        [
            (
                "a,b,label\n1,2,x\n3,red,y\n",
                InputError,
                "read_table: t.csv has the text 'red' in line 3, column 'b', where a number is "
                "wanted; drop the column, or pass column='b' if it holds the labels.",
            ),
            ("a,b\n1,2\n3\n", FileError, "t.csv has 1 cells in line 3 and 2 in its first; save"),
            ("", FileError, "read_table: t.csv is empty; save at least one row."),
            ("a,b,label\n", InputError, "t.csv is empty, of shape (0, 2); save at least one row"),
            ("a,a\n1,2\n", InputError, "t.csv has several columns called 'a'; give each its own"),
            (
                "label\n1\n",
                InputError,
                "t.csv has no columns of numbers or lists beside 'label'; save the features",
            ),
            ("a,label\n1,2\n3,\n", InputError, "t.csv has no label in row 2; fill it in or drop"),
            (b"a,b\n\xff\xfe,1\n", FileError, "t.csv cannot be read as .csv ('utf-8' codec"),
            ('a,b\n1,"' + "x" * 200_000, FileError, "t.csv cannot be read as .csv (field larger"),
        ],
    )
    def test_what_cannot_be_read_is_said(self, content, error, message):
        write("t.csv", content)
        with pytest.raises(error, match=re.escape(message)):
            read_table("t.csv")

    def test_a_missing_column_lists_the_others(self):
        write("t.csv", "a,b\n1,2\n")
        with pytest.raises(InputError) as caught:
            read_table("t.csv", column="kind")
        assert str(caught.value) == (
            "read_table: no column 'kind' is in t.csv, which has a, b; pass one of these."
        )

    def test_a_long_list_of_columns_is_cut(self):
        write("t.csv", ",".join(f"c{i}" for i in range(15)) + "\n" + ",".join("1" * 15))
        with pytest.raises(InputError, match=r"which has c0, c1, .*, c11 and 3 more; pass one"):
            read_table("t.csv", column="kind")


@pytest.mark.usefixtures("folder")
class TestParquet:
    def test_numeric_columns_in_order(self):
        save_parquet(
            "t.parquet",
            {
                "b": [1, 2, None],
                "label": ["x", "y", "x"],
                "a": np.float16([0.5, np.nan, 3]),
                "flag": [True, None, False],
            },
        )
        X, y = read_table("t.parquet")
        expected = np.float32([[1, 0.5, 1], [2, np.nan, np.nan], [np.nan, 3, 0]])
        assert X.dtype == np.float32
        assert np.array_equal(X, expected, equal_nan=True)
        assert y.tolist() == ["x", "y", "x"]

    @pytest.mark.parametrize("kind", ["list", "large_list", "fixed"])
    def test_a_column_of_lists_is_the_matrix(self, kind, monkeypatch):
        pyarrow = pytest.importorskip("pyarrow")
        make = {
            "list": pyarrow.list_(pyarrow.float32()),
            "large_list": pyarrow.large_list(pyarrow.float64()),
            "fixed": pyarrow.list_(pyarrow.float32(), 3),
        }[kind]
        values = np.arange(300).reshape(100, 3)
        columns = {
            "id": [f"item {i}" for i in range(100)],
            "embedding": pyarrow.array(values.tolist(), make),
            "y": np.arange(100) % 7,
        }
        save_parquet("t.parquet", columns, row_group_size=30)
        monkeypatch.setattr(read, "ROWS_AT_ONCE", 16)  # batches and row groups that cross
        X, y = read_table("t.parquet")
        assert np.array_equal(X, values)
        assert y.tolist() == (np.arange(100) % 7).tolist()

    def test_dictionary_labels_and_named_column(self):
        pyarrow = pytest.importorskip("pyarrow")
        kind = pyarrow.array(["cat", "dog", "cat"]).dictionary_encode()
        save_parquet("t.parquet", {"a": [1.0, 2.0, 3.0], "kind": kind})
        X, y = read_table("t.parquet", column="kind")
        assert X.tolist() == [[1], [2], [3]]
        assert y.tolist() == ["cat", "dog", "cat"]

    def test_multi_label_lists(self):
        save_parquet("t.parquet", {"a": [1.0, 2.0], "label": [[1, 0], [1, 1]]})
        X, y = read_table("t.parquet")
        assert X.tolist() == [[1], [2]]
        assert y.tolist() == [[1, 0], [1, 1]]

    @pytest.mark.parametrize(
        ("columns", "message"),
        [
            (
                {"x1": [1.0], "x2": [2.0], "x3": ["Rome"]},
                "read_table: t.parquet has string values from row 1 on in column 'x3', where "
                "numbers are wanted; drop the column, or pass column='x3' if it holds the",
            ),
            (
                {"e": [[1, 2], [3]]},
                "t.parquet has 1 numbers in row 2, column 'e', and 2 numbers in",
            ),
            ({"e": [[1, 2], None]}, "t.parquet has no list in row 2, column 'e', and 2 numbers"),
            ({"e": [["a"]]}, "t.parquet has string values from row 1 on in column 'e', where"),
            (
                {"e": [[1]], "f": [[1]]},
                "t.parquet has several columns of lists, e, f; say which holds the features: pass",
            ),
            ({"a": [1, 2], "y": ["x", None]}, "t.parquet has no label in row 2; fill it in"),
            (
                {"y": [1, 2]},
                "t.parquet has no columns of numbers or lists beside 'y'; save the features",
            ),
            ({"a": np.empty(0), "y": np.empty(0)}, "t.parquet is empty, of shape (0, 1); save"),
        ],
    )
    def test_what_cannot_be_used_is_said(self, columns, message):
        save_parquet("t.parquet", columns)
        with pytest.raises(InputError, match=re.escape(message)):
            read_table("t.parquet")

    @pytest.mark.parametrize("keep", [0, 4, 100, -1])
    def test_cut_files_are_refused(self, keep):
        save_parquet("t.parquet", {"a": [1.0, 2.0], "y": [0, 1]})
        write("t.parquet", Path("t.parquet").read_bytes()[:keep])
        with pytest.raises(FileError, match=r"t\.parquet cannot be read as \.parquet \("):
            read_table("t.parquet")

    def test_without_pyarrow_the_install_is_named(self, monkeypatch):
        write("t.parquet", b"PAR1")
        monkeypatch.setitem(sys.modules, "pyarrow", None)
        monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
        with pytest.raises(MissingPartError) as caught:
            read_table("t.parquet")
        assert str(caught.value) == (
            "read_table: t.parquet needs pyarrow, which is not installed; run "
            'pip install "streamhash[files]", or save the table as .npz or .csv.'
        )


@pytest.mark.usefixtures("folder")
class TestJsonLines:
    def test_vectors_and_labels(self):
        write("t.jsonl", '{"vector": [1, 2], "label": "cat"}\n\n{"vector": [3, 4.5], "label": 3}\n')
        X, y = read_table("t.jsonl")
        assert X.dtype == np.float32
        assert X.tolist() == [[1, 2], [3, 4.5]]
        assert y.tolist() == ["cat", "3"]

    def test_labels_elsewhere_or_none(self):
        write("t.ndjson", '{"vector": [1], "kind": 5}\n{"vector": [3], "kind": 6}\n')
        assert read_table("t.ndjson")[1] is None
        assert read_table("t.ndjson", column="kind")[1].tolist() == [5, 6]
        write("y.txt", "7\n8\n")
        assert read_table("t.ndjson", labels="y.txt")[1].tolist() == [7, 8]
        with pytest.raises(InputError, match=r"no column 'sort' is in t\.ndjson, which has vect"):
            read_table("t.ndjson", column="sort")

    def test_a_missing_label_is_named(self):
        write("t.jsonl", '{"vector": [1], "y": 5}\n{"vector": [3]}\n')
        with pytest.raises(InputError, match=r"t\.jsonl has no label in row 2; fill it in or drop"):
            read_table("t.jsonl")

    def test_nothing(self):
        write("t.jsonl", "")
        with pytest.raises(FileError, match=r"read_table: t\.jsonl is empty; save at least one"):
            read_table("t.jsonl")


IDS = ["item 0", "item 1", "item 2", "item 3"]


@pytest.mark.usefixtures("folder")
class TestOneReader:
    """Whole tables are the pieces put together, and take the same columns."""

    @pytest.fixture(params=["csv", "tsv", "jsonl", "npz", "parquet", "mat", "lists.csv"])
    def name(self, request):
        name = f"t.{request.param}"
        if name == "t.npz":
            np.savez(name, X=X4, y=Y4, ids=IDS)
        elif name == "t.mat":
            savemat(name, {"X": X4, "y": Y4})
        elif name == "t.parquet":
            columns = {f"x{i}": X4[:, i] for i in range(3)}
            save_parquet(name, {"id": IDS, **columns, "label": Y4, "metadata": ["{}"] * 4})
        elif name == "t.jsonl":
            items = zip(IDS, X4.tolist(), Y4.tolist(), strict=True)
            lines = [{"id": i, "vector": x, "label": y, "metadata": {}} for i, x, y in items]
            write(name, "\n".join(map(json.dumps, lines)))
        elif name == "t.lists.csv":
            rows = zip(IDS, X4.tolist(), Y4, strict=True)
            write(name, "id;vector;label;note\n" + "".join(f"{i};{x};{y};a\n" for i, x, y in rows))
        else:
            tab = "," if name == "t.csv" else "\t"
            rows = [["id", "a", "b", "c", "label", "metadata"]]
            rows += [[i, *x, y, "{}"] for i, x, y in zip(IDS, X4.tolist(), Y4, strict=True)]
            write(name, "".join(tab.join(map(str, row)) + "\n" for row in rows))
        return name

    def test_every_format_both_ways(self, name):
        X, y = read_table(name)
        assert X.dtype == np.float32
        assert np.array_equal(X, X4)
        assert y.dtype == np.int64
        assert y.tolist() == Y4.tolist()
        pieces = [*read_items(name, size=3)]
        assert [piece.n for piece in pieces] == [3, 1]
        assert np.array_equal(np.concatenate([piece.vectors for piece in pieces]), X4)
        assert [label for piece in pieces for label in piece.labels] == Y4.tolist()
        if name != "t.mat":
            assert [item for piece in pieces for item in piece.ids] == IDS

    def test_it_says_which_columns_it_took(self, name):
        expected = {
            "t.npz": ("ids", ("X",), "y"),
            "t.mat": (None, ("X",), "y"),
            "t.parquet": ("id", ("x0", "x1", "x2"), "label"),
            "t.jsonl": ("id", ("vector",), "label"),
            "t.lists.csv": ("id", ("vector",), "label"),
        }
        with open_table(name) as table:
            assert table.taken[:3] == expected.get(name, ("id", ("a", "b", "c"), "label"))

    @pytest.mark.parametrize("size", [1, 4, 100])
    def test_any_size_gives_the_same(self, name, size, monkeypatch):
        monkeypatch.setattr(read, "ROWS_AT_ONCE", size)
        assert np.array_equal(read_table(name)[0], X4)

    def test_errors_of_the_caller_are_its_own(self, name):
        with pytest.raises(ValueError, match="mine"), open_table(name):
            raise ValueError("mine")


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("name", ["t.npz", "t.csv", "t.jsonl", "t.parquet"])
def test_items_take_the_memory_of_a_piece(name):
    X = np.random.default_rng(0).random((2000, 50))
    if name == "t.npz":
        np.savez(name, X=X)
    elif name == "t.parquet":
        save_parquet(name, {"vector": X.tolist()}, row_group_size=50)
    else:
        line = "{}" if name == "t.csv" else '{{"vector": [{}]}}'
        write(name, "\n".join(line.format(",".join(map(str, row))) for row in X.tolist()))
    next(read_items(name, size=50))  # what it imports
    tracemalloc.start()
    try:
        assert sum(piece.n for piece in read_items(name, size=50)) == 2000
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < X.nbytes / 3


@pytest.mark.usefixtures("folder")
class TestAll:
    @pytest.mark.parametrize("name", ["a.npy", "a.npz", "a.csv", "a.parquet", "a.jsonl", "a.mat"])
    def test_no_file(self, name):
        with pytest.raises(MissingDataError, match=f"read_table: there is no file {name}; check"):
            read_table(name)

    @pytest.mark.parametrize("name", ["a.npy", "a.npz", "a.csv", "a.parquet", "a.jsonl", "a.mat"])
    def test_a_folder(self, name):
        Path(name).mkdir()
        with pytest.raises(FileError, match=f"{name} cannot be read as"):
            read_table(name)

    @pytest.mark.parametrize("content", [b"", b"\0" * 500, b"\x93NUMPY\x01\x00" + b"\xff" * 300])
    @pytest.mark.parametrize("name", ["a.npy", "a.npz", "a.csv", "a.parquet", "a.jsonl", "a.mat"])
    def test_rubbish(self, name, content):
        write(name, content)
        with pytest.raises((FileError, InputError), match=f"read_table: (line 1 of )?{name}"):
            read_table(name)

    def test_an_archive_stored_by_columns(self):
        np.savez("a.npz", X=np.asfortranarray(X4), y=Y4)
        assert np.array_equal(read_table("a.npz")[0], X4)
        assert [piece.n for piece in read_items("a.npz", size=3)] == [3, 1]

    def test_unknown_ending(self):
        with pytest.raises(InputError, match=r"a\.xls does not end in \.npy, .* or \.mat;"):
            read_table("a.xls")

    def test_labels_named_twice(self):
        with pytest.raises(
            InputError, match=r"labels='y\.npy' and column='y' both name the labels"
        ):
            read_table("a.csv", labels="y.npy", column="y")

    @pytest.mark.parametrize(
        ("save", "kwargs", "message"),
        [
            (
                {"X": X4.ravel()},
                {},
                "the features in a.npz are float32 of shape (12,); save numbers",
            ),
            ({"X": [["a"]]}, {}, "the features in a.npz are <U1 of shape (1, 1); save numbers"),
            ({"X": X4[:0]}, {}, "a.npz is empty, of shape (0, 3); save at least one row."),
            ({"Z": X4}, {}, "a.npz has no array 'X' or 'features', only ['Z']; save the features"),
            ({"X": X4, "y": Y4[:3]}, {}, "a.npz has 3 labels for 4 rows of features; save one"),
            ({"X": X4, "y": X4}, {}, "the labels in a.npz have shape (4, 3) and values other than"),
            ({"X": X4, "y": X4[None]}, {}, "the labels in a.npz are float32 of shape (1, 4, 3);"),
            ({"X": X4}, {"labels": "b.xls"}, "labels='b.xls' does not end in .npy, .txt or .csv;"),
        ],
    )
    def test_unfit_content(self, save, kwargs, message):
        np.savez("a.npz", **save)
        with pytest.raises(InputError, match=re.escape("read_table: " + message)):
            read_table("a.npz", **kwargs)

    def test_a_bare_array_has_no_columns(self):
        np.save("X.npy", X4)
        with pytest.raises(InputError, match=r"X\.npy is one array, without a column 'y'"):
            read_table("X.npy", column="y")

    def test_missing_labels_file(self):
        np.save("X.npy", X4)
        with pytest.raises(MissingDataError, match=r"there is no file y\.txt"):
            read_table("X.npy", labels="y.txt")
