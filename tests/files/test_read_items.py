"""Items in files: every form gives the same pieces, and faults are told with their place."""

import io
import json

import numpy as np
import pytest

from streamhash.errors import FileError, InputError, MissingDataError
from streamhash.files import Columns, read_items

X = np.arange(20, dtype=np.float32).reshape(10, 2) / 4
IDS = [f"item {i}" for i in range(10)]
LABELS = ["cat", None, 3, *["dog"] * 7]
METADATA = [{"n": i} if i % 2 else None for i in range(10)]


@pytest.fixture
def folder(tmp_path):
    rows = zip(IDS, X.tolist(), LABELS, METADATA, strict=True)
    objects = [{"id": i, "vector": x, "label": label, "metadata": m} for i, x, label, m in rows]
    (tmp_path / "items.jsonl").write_text("\n".join(map(json.dumps, objects)) + "\n\n")
    lines = ["id;a;label;b;metadata"]
    for item in objects:
        label = "" if item["label"] is None else item["label"]
        text = "" if item["metadata"] is None else json.dumps(item["metadata"])
        quoted = text.replace('"', '""')
        a, b = item["vector"]
        lines.append(f'{item["id"]};{a};{label};{b};"{quoted}"')
    (tmp_path / "items.csv").write_text("\n".join(lines), encoding="utf-8-sig")
    np.savez(tmp_path / "items.npz", X=X, ids=IDS, y=["" if v is None else v for v in LABELS])
    np.save(tmp_path / "items.npy", X)
    return tmp_path


def joined(pieces, part):
    return [value for piece in pieces for value in getattr(piece, part)]


@pytest.mark.parametrize("form", ["jsonl", "csv", "npz", "parquet"])
def test_every_form_gives_the_same_pieces(folder, form):
    labels, vectors = LABELS, X
    if form == "parquet":
        pa = pytest.importorskip("pyarrow")
        import pyarrow.parquet as parquet

        labels = [None if v is None else str(v) for v in LABELS]
        columns = {"id": IDS, "vector": X.tolist(), "label": labels}
        columns["metadata"] = [None if m is None else json.dumps(m) for m in METADATA]
        parquet.write_table(pa.table(columns), folder / "items.parquet")
    if form == "npz":
        labels = [None if v is None else str(v) for v in LABELS]
    pieces = [*read_items(folder / f"items.{form}", size=4)]
    assert [piece.n for piece in pieces] == [4, 4, 2]
    assert joined(pieces, "ids") == IDS
    assert joined(pieces, "labels") == labels
    np.testing.assert_array_equal(joined(pieces, "vectors"), vectors)
    if form != "npz":
        assert joined(pieces, "metadata") == METADATA
    alone = [*read_items(folder / f"items.{form}", size=4, with_vectors=False)]
    assert joined(alone, "ids") == IDS
    assert alone[0].vectors is None


def test_vectors_alone_and_with_labels_beside(folder):
    pieces = [*read_items(folder / "items.npy", size=7)]
    np.testing.assert_array_equal(joined(pieces, "vectors"), X)
    assert pieces[0].ids is None
    assert pieces[0].labels is None
    (folder / "y.txt").write_text("\n".join(map(str, range(10))))
    pieces = [*read_items(folder / "items.npy", labels=folder / "y.txt", size=7)]
    assert joined(pieces, "labels") == [*range(10)]


def test_arrays_that_are_here_already():
    y = np.arange(10)
    pieces = [*read_items((X, y), size=4)]
    np.testing.assert_array_equal(np.concatenate([piece.vectors for piece in pieces]), X)
    assert joined(pieces, "labels") == y.tolist()
    assert [piece.labels for piece in read_items((X, None), size=8)] == [None, None]


def test_columns_may_have_other_names():
    text = 'name,emb,kind,page,when\na,"[1, 2]",x,4,May\nb,"[3, 4]",,5,\n'
    columns = Columns("name", "emb", "kind", ("page", "when"))
    (piece,) = read_items(io.StringIO(text), format="csv", columns=columns)
    assert (piece.ids, piece.labels) == (["a", "b"], ["x", None])
    assert piece.metadata == [{"page": 4, "when": "May"}, {"page": 5, "when": None}]
    np.testing.assert_array_equal(piece.vectors, [[1, 2], [3, 4]])
    line = json.dumps({"name": 1, "emb": [1, 2], "kind": "x", "page": 4, "more": 0})
    (piece,) = read_items(
        io.StringIO(line), format="jsonl", columns=Columns("name", "emb", "kind", ("page",))
    )
    assert (piece.ids, piece.labels, piece.metadata) == ([1], ["x"], [{"page": 4}])


def test_columns_of_numbers_in_parquet(tmp_path):
    pa = pytest.importorskip("pyarrow")
    import pyarrow.parquet as parquet

    table = pa.table({"id": [1, 2], "y": [0, None], "a": [1.0, 2.0], "b": [3, 4]})
    parquet.write_table(table, tmp_path / "items.parquet")
    (piece,) = read_items(tmp_path / "items.parquet")
    assert (piece.ids, piece.labels) == ([1, 2], [0, None])
    np.testing.assert_array_equal(piece.vectors, [[1, 3], [2, 4]])


@pytest.mark.parametrize(
    ("form", "text"),
    [
        ("csv", "id,x,metadata\n1,0,{}\n2,0,\n"),
        ("jsonl", '{"id": 1, "vector": [0], "metadata": {}}\n{"id": 2, "vector": [0]}\n'),
    ],
)
def test_empty_metadata_are_not_none(form, text):
    (piece,) = read_items(io.StringIO(text), format=form)
    assert piece.metadata == [{}, None]


def test_a_file_without_metadata_has_none():
    for form, text in [("csv", "id,x\n1,0\n"), ("jsonl", '{"id": 1, "vector": [0]}')]:
        (piece,) = read_items(io.StringIO(text), format=form)
        assert piece.metadata is None


def test_ids_of_csv_are_of_one_kind():
    text = "id,x\n" + "".join(f"{i},0\n" for i in (1, 2, 3))
    pieces = [*read_items(io.StringIO(text), format="csv", size=2)]
    assert joined(pieces, "ids") == [1, 2, 3]
    pieces = [*read_items(io.StringIO(text), format="csv", id_kind="strings")]
    assert joined(pieces, "ids") == ["1", "2", "3"]
    # The first piece decides: its ids are strings, so are all.
    pieces = [*read_items(io.StringIO("id,x\na1,0\n2,0\n"), format="csv", size=1)]
    assert joined(pieces, "ids") == ["a1", "2"]


def test_csv_without_a_header_is_vectors_alone():
    (piece,) = read_items(io.StringIO("1\t2\n3\t4\n"), format="csv")
    np.testing.assert_array_equal(piece.vectors, [[1, 2], [3, 4]])
    assert piece.ids is None


@pytest.mark.parametrize("form", ["csv", "jsonl"])
def test_nothing_is_no_piece(form):
    assert [*read_items(io.StringIO(""), format=form)] == []


@pytest.mark.parametrize(
    ("form", "text", "message"),
    [
        ("jsonl", '{"vector": [1]}\n{"vector": [1]\n', r"line 2 of standard input is not JSON"),
        ("jsonl", "[1, 2]\n", "line 1 of standard input is not an object"),
        ("jsonl", '{"id": 1}\n', "line 1 of standard input has no vector, only id"),
        ("jsonl", '{"vector": [1]}\n{"vector": [1, 2]}', "line 2 .* is not a list of 1 numbers"),
        ("jsonl", '{"vector": ["a"]}', "line 1 .* is not a list of 1 numbers"),
        ("jsonl", '{"id": 1, "vector": [1]}\n{"vector": [1]}', "line 2 .* has no 'id'"),
        ("csv", "id,a\n1,2\n3\n", "has 1 cells in line 3 and 2 in its first"),
        ("csv", "id,a\n1,2\n3,x\n", "the text 'x' in line 3, column 'a'"),
        ("csv", "id,a,a\n1,2,3\n", "several columns called 'a'"),
        ("csv", "id,label\n1,2\n", "no columns of numbers or lists beside 'id', 'label'"),
        (
            "csv",
            'id,vector\n1,"[1]"\n2,"[1, 2]"\n',
            "'vector' in line 3 .* is not a list of 1 numbers",
        ),
        ("csv", "id,a,metadata\n1,2,{\n", "'{' in line 2 of standard input is not JSON"),
        ("npy", "", "its format is jsonl or csv, not npy"),
    ],
)
def test_faults_are_told_with_their_place(form, text, message):
    with pytest.raises((InputError, FileError), match=message):
        [*read_items(io.StringIO(text), format=form)]


def test_faults_of_files(folder):
    with pytest.raises(MissingDataError, match=r"there is no file .*none\.jsonl"):
        next(read_items(folder / "none.jsonl"))
    with pytest.raises(InputError, match=r"does not end in \.npy"):
        next(read_items(folder / "items.txt"))
    with pytest.raises(InputError, match=r"no column 'name' is in .*which has X, ids, y"):
        next(read_items(folder / "items.npz", columns=Columns(id="name")))
    with pytest.raises(InputError, match=r"labels in a file of their own go with \.npy"):
        next(read_items(folder / "items.csv", labels=folder / "y.txt"))
    np.savez(folder / "short.npz", X=X, ids=IDS[:3])
    with pytest.raises(InputError, match=r"have \[3, 10\] rows"):
        next(read_items(folder / "short.npz"))
    np.savez(folder / "objects.npz", X=X, ids=np.array([None, "a"], object))
    with pytest.raises(FileError, match="pickled Python objects, which are never loaded"):
        next(read_items(folder / "objects.npz"))
    (folder / "items.npz").write_bytes(b"PK\x03\x04 no")
    with pytest.raises(FileError, match=r"cannot be read as \.npz"):
        next(read_items(folder / "items.npz"))
