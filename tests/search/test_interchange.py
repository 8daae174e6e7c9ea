"""Indexes taken to other programs and back: the same items, ids, order and answers."""

import gc
import sys

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from streamhash import FileError, HammingIndex, InputError, MissingPartError, pack, search, unpack
from streamhash.codes import reverse_bits
from streamhash.optional import import_optional
from streamhash.search import (
    from_arrow,
    from_bit_strings,
    from_faiss,
    from_numpy,
    from_sentence_transformers,
    to_arrow,
    to_bit_strings,
    to_faiss,
    to_numpy,
    to_sentence_transformers,
)


def need_faiss():
    pytest.importorskip("faiss", reason="faiss-cpu is not installed")
    part = import_optional("faiss", extra="faiss", place="test")
    part.omp_set_num_threads(1)  # where cores are busy, more mostly wait for each other
    return part


@pytest.fixture
def faiss():
    return need_faiss()


@pytest.fixture
def arrow():
    return pytest.importorskip("pyarrow", reason="pyarrow is not installed")


def codes_of(n, n_bits, seed=0):
    return pack(np.random.default_rng(seed).standard_normal((n, n_bits)))


def index_of(n=6, n_bits=12, ids=None, seed=0):
    index = HammingIndex(n_bits)
    index.add(ids, codes_of(n, n_bits, seed))
    return index


def assert_same(one, other):
    assert one.n_bits == other.n_bits
    np.testing.assert_array_equal(one.ids, other.ids)
    np.testing.assert_array_equal(one.codes, other.codes)
    queries = codes_of(3, one.n_bits, seed=99)
    for a, b in zip(one.search(queries, 4), other.search(queries, 4), strict=True):
        np.testing.assert_array_equal(a, b)


def some_indexes():
    """Indexes of any length, empty ones too, with ids in any order."""
    return st.builds(
        lambda n_bits, ids, seed: index_of(len(ids), n_bits, ids, seed),
        st.integers(1, 256),
        st.lists(st.integers(0, 2**63 - 1), unique=True, max_size=30),
        st.integers(0, 99),
    )


quick = settings(max_examples=30, deadline=None)


# ------------------------------------------------------------------------------------------ faiss


@quick
@given(index=some_indexes())
def test_faiss_answers_as_the_index_does_and_gives_it_back(index):
    need_faiss()
    there = to_faiss(index)
    assert there.d == 8 * index.codes.shape[1]
    queries = codes_of(5, index.n_bits, seed=7)
    for theirs, ours in zip(there.search(queries, 9), index.search(queries, 9), strict=True):
        np.testing.assert_array_equal(theirs, ours)
    assert_same(from_faiss(there, n_bits=index.n_bits), index)


@pytest.mark.usefixtures("faiss")
def test_the_parts_of_a_faiss_index_stay_with_it():
    there = to_faiss(index_of(50, 16))
    gc.collect()
    assert there.search(codes_of(1, 16), 1)[1].tolist() == [[0]]


@pytest.mark.usefixtures("faiss")
def test_the_radius_of_faiss_is_strict():
    index = index_of(50, 16)
    queries = codes_of(4, 16, seed=1)
    theirs = to_faiss(index).range_search(queries, 6)
    ours = index.range_search(queries, 5)
    assert theirs[0].tolist() == ours[0].tolist()
    for q in range(4):
        place = slice(ours[0][q], ours[0][q + 1])
        assert sorted(theirs[2][place]) == sorted(ours[2][place])


def test_faiss_files_are_read(faiss, tmp_path):
    index = index_of(20, 64, ids=range(100, 120))
    faiss.write_index_binary(to_faiss(index), str(tmp_path / "faiss"))
    assert_same(from_faiss(faiss.read_index_binary(str(tmp_path / "faiss"))), index)


def make_flat(faiss, codes, _ids):
    index = faiss.IndexBinaryFlat(16)
    index.add(codes)
    return index


def make_id_map(faiss, codes, ids):
    index = faiss.IndexBinaryIDMap(faiss.IndexBinaryFlat(16))
    index.add_with_ids(codes, ids)
    return index


def make_inverted(faiss, codes, ids):
    index = faiss.IndexBinaryIVF(faiss.IndexBinaryFlat(16), 16, 4)
    index.cp.min_points_per_centroid = 1
    index.train(codes)
    index.add_with_ids(codes, ids)
    return index


@pytest.mark.parametrize("make", [make_flat, make_id_map, make_inverted])
def test_each_kind_of_faiss_index_is_read(faiss, make):
    codes = codes_of(40, 16)
    ids = np.arange(40) * 3 if make is not make_flat else np.arange(40)
    index = from_faiss(make(faiss, codes, ids))
    assert index.n_bits == 16
    np.testing.assert_array_equal(index.ids, ids)
    np.testing.assert_array_equal(index.codes, codes)


@pytest.mark.usefixtures("faiss")
def test_strings_go_to_faiss_as_places_and_come_back_as_names():
    index = index_of(3, 16, ids=["x", "y", "z"])
    there = to_faiss(index, numbered=True)
    assert there.search(index.codes[1:2], 1)[1].tolist() == [[1]]
    assert_same(from_faiss(there, names=index.ids), index)


def test_what_faiss_does_not_fit_is_refused(faiss):
    twice = make_id_map(faiss, codes_of(2, 16), np.array([5, 5]))
    for call, message in [
        (
            lambda: to_faiss(index_of(2, 16, ids=["x", "y"])),
            "to_faiss: ids are strings, and faiss has whole numbers only; pass numbered=True, and "
            "look the places that faiss finds up in index.ids.",
        ),
        (
            lambda: from_faiss(twice),
            "from_faiss: HammingIndex.add: id 5 came twice; pass each id once.",
        ),
        (
            lambda: from_faiss(to_faiss(index_of(2, 16)), n_bits=24),
            "from_faiss: codes of 2 bytes came, and n_bits=24 needs 3; pass the n_bits of these "
            "codes.",
        ),
        (
            lambda: from_faiss(twice, names=["a"]),
            "from_faiss: 1 names came, and ids from 5 to 5; pass a name for each id from 0 up.",
        ),
        (
            lambda: from_faiss(faiss.IndexFlatL2(4)),
            "from_faiss: a IndexFlatL2 came; pass a binary index, such as faiss.IndexBinaryFlat.",
        ),
        (
            lambda: from_faiss(faiss.IndexBinaryHNSW(16, 4)),
            "from_faiss: IndexBinaryHNSW cannot be read; pass an IndexBinaryFlat, IndexBinaryIVF, "
            "IndexBinaryIDMap or IndexBinaryIDMap2.",
        ),
    ]:
        with pytest.raises(InputError) as error:
            call()
        assert str(error.value) == message


def test_faiss_packs_from_the_lowest_place(faiss):
    values = np.random.default_rng(0).standard_normal((1, 16)).astype(np.float32)
    theirs = np.zeros((1, 2), np.uint8)
    faiss.fvecs2bitvecs(faiss.swig_ptr(values), faiss.swig_ptr(theirs), 16, 1)
    np.testing.assert_array_equal(reverse_bits(theirs), pack(values))


# ---------------------------------------------------------------------------------- NumPy's files


@quick
@given(index=some_indexes())
def test_a_numpy_file_gives_the_index_back(index, tmp_path_factory):
    path = tmp_path_factory.mktemp("numpy") / "codes.npz"
    to_numpy(index, path)
    assert_same(from_numpy(path), index)
    assert [file.name for file in path.parent.iterdir()] == ["codes.npz"]


def test_a_numpy_file_is_plain(tmp_path):
    index = index_of(2, 12, ids=["é", "long " * 9])
    to_numpy(index, tmp_path / "no_suffix")
    with np.load(tmp_path / "no_suffix") as file:
        assert {name: file[name].tolist() for name in file.files} == {
            "codes": index.codes.tolist(),
            "ids": list(index),
            "n_bits": 12,
            "bit_order": "big",
            "version": 1,
        }
    assert_same(from_numpy(tmp_path / "no_suffix"), index)


def test_files_of_others_need_codes_only(tmp_path):
    np.savez(tmp_path / "codes.npz", codes=codes_of(3, 12))
    assert from_numpy(tmp_path / "codes.npz").n_bits == 16
    assert_same(from_numpy(tmp_path / "codes.npz", n_bits=12), index_of(3, 12))


def test_numpy_files_of_no_use_are_refused(tmp_path):
    path = tmp_path / "codes.npz"
    codes = codes_of(2, 12)
    for arrays, message in [
        ({"other": codes}, "holds no array named codes, but other"),
        ({"codes": codes, "ids": np.array([3])}, "2 codes and 1 ids came"),
        ({"codes": codes, "n_bits": 40}, "n_bits=40 needs 5"),
        ({"codes": codes.astype(float)}, "expected packed codes"),
        ({"codes": np.float32(3)}, "is not an index"),
        ({"codes": codes, "bit_order": "little", "version": 1}, "reverse_bits"),
        ({"codes": codes, "bit_order": "big", "version": 2}, "upgrade streamhash"),
        ({"codes": codes, "bit_order": "big"}, "is not an index"),
    ]:
        np.savez(path, **arrays)
        with pytest.raises(FileError, match=message):
            from_numpy(path)
    np.save(tmp_path / "one.npy", codes)
    (tmp_path / "text.npz").write_text("no zip")
    (tmp_path / "cut.npz").write_bytes(path.read_bytes()[:60])
    (tmp_path / "empty.npz").write_bytes(b"")
    for name in ("one.npy", "text.npz", "cut.npz", "empty.npz", "nowhere.npz"):
        with pytest.raises(FileError, match=name):
            from_numpy(tmp_path / name)
    with pytest.raises(FileError, match="cannot be written"):
        to_numpy(index_of(), tmp_path / "nowhere" / "codes.npz")
    with pytest.raises(InputError, match="ends in a zero character"):
        to_numpy(index_of(1, 12, ids=["a\0"]), path)


# -------------------------------------------------------------------------------------- Arrow


@quick
@given(index=some_indexes())
def test_an_arrow_table_gives_the_index_back(index):
    pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    table = to_arrow(index)
    assert table.column_names == ["id", "code"]
    assert_same(from_arrow(table), index)
    cut = from_arrow(table.slice(len(index) // 2))
    np.testing.assert_array_equal(cut.codes, index.codes[len(index) // 2 :])


@pytest.mark.parametrize("ids", [range(5, 11), ["", "é", "a\0", "0", "long " * 9, "z"]])
def test_a_parquet_file_gives_the_index_back(arrow, tmp_path, ids):
    parquet = pytest.importorskip("pyarrow.parquet")
    index = index_of(6, 12, ids=ids)
    parquet.write_table(to_arrow(index), tmp_path / "codes.parquet", row_group_size=4)
    table = parquet.read_table(tmp_path / "codes.parquet")
    assert table.schema.metadata == {
        b"streamhash.n_bits": b"12",
        b"streamhash.bit_order": b"big",
        b"streamhash.version": b"1",
    }
    assert table.schema.field("code").type == arrow.binary(2)
    assert_same(from_arrow(table), index)


def test_tables_of_others_need_codes_only(arrow):
    values = [row.tobytes() for row in codes_of(3, 12)]
    for kind in (arrow.binary(), arrow.large_binary(), arrow.binary(2)):
        table = arrow.table({"code": arrow.array(values, kind), "other": [1, 2, 3]})
        assert from_arrow(table).n_bits == 16
        assert_same(from_arrow(table, n_bits=12), index_of(3, 12))
    names = arrow.array(["x", "y", "z"]).dictionary_encode()
    assert list(from_arrow(table.append_column("id", names))) == ["x", "y", "z"]


def test_tables_of_no_use_are_refused(arrow):
    table = to_arrow(index_of(2, 12))
    for wrong, message in [
        ([1], "from_arrow: a list came; pass a pyarrow.Table"),
        (table.drop_columns("code"), "one named 'code' is wanted"),
        (arrow.table({"code": [b"a", None]}), "column 'code' has 1 nulls"),
        (arrow.table({"code": [b"a", b"ab"]}), "values of 2 lengths"),
        (arrow.table({"code": [1, 2]}), "column 'code' is int64; pass binary values"),
        (arrow.table({"code": [b"a"], "id": [1.5]}), "ids hold 1.5"),
        (table.replace_schema_metadata({"streamhash.n_bits": "x"}), "which is no whole number"),
        (table.replace_schema_metadata({"streamhash.n_bits": "40"}), "n_bits=40 needs 5"),
        (
            table.replace_schema_metadata(
                {"streamhash.bit_order": "little", "streamhash.version": "1"}
            ),
            "reverse_bits",
        ),
    ]:
        with pytest.raises(InputError, match=message):
            from_arrow(wrong)
    with pytest.raises(InputError, match="half a character"):
        to_arrow(index_of(1, 12, ids=["\ud800"]))


# ------------------------------------------------------------------------------- codes of others


@quick
@given(n_bits=st.integers(1, 256), seed=st.integers(0, 99))
def test_turning_bits_around_is_the_other_order_of_numpy(n_bits, seed):
    bits = np.random.default_rng(seed).integers(0, 2, (5, n_bits), dtype=np.uint8)
    codes = pack(bits)
    little = np.packbits(bits, axis=1, bitorder="little")
    np.testing.assert_array_equal(reverse_bits(codes), little)
    np.testing.assert_array_equal(reverse_bits(little), codes)


def quantize(embeddings, precision):
    """The two lines of sentence-transformers' quantize_embeddings that matter."""
    packed = np.packbits(embeddings > 0).reshape(embeddings.shape[0], -1)
    return (packed - 128).astype(np.int8) if precision == "binary" else packed


@pytest.mark.parametrize("precision", ["ubinary", "binary"])
def test_embeddings_of_sentence_transformers_are_codes(precision):
    embeddings = np.random.default_rng(0).standard_normal((300, 24)).astype(np.float32)
    quantized = quantize(embeddings, precision)
    codes = from_sentence_transformers(quantized)
    np.testing.assert_array_equal(codes, pack(embeddings))
    back = to_sentence_transformers(codes, precision)
    assert back.dtype == quantized.dtype
    np.testing.assert_array_equal(back, quantized)


def test_embeddings_that_are_no_codes_are_refused():
    with pytest.raises(InputError, match=r"float32 embeddings came; pass those of precision="):
        from_sentence_transformers(np.zeros((2, 8), np.float32))
    with pytest.raises(InputError, match="from_sentence_transformers: embeddings: expected packed"):
        from_sentence_transformers(np.zeros(8, np.int8))
    with pytest.raises(InputError, match="precision='int8' must be one of 'ubinary', 'binary'"):
        to_sentence_transformers(codes_of(1, 8), "int8")


@quick
@given(n_bits=st.integers(1, 256))
def test_bit_strings_read_as_the_bits_do(n_bits):
    codes = codes_of(4, n_bits)
    texts = to_bit_strings(codes, n_bits)
    assert texts == ["".join(map(str, row)) for row in unpack(codes, n_bits).tolist()]
    np.testing.assert_array_equal(from_bit_strings(texts), codes)


@pytest.mark.parametrize("texts", [["01", "011"], ["0 1"], ["b01"], [""], []])
def test_texts_that_are_no_bits_are_refused(texts):
    with pytest.raises(InputError, match="from_bit_strings"):
        from_bit_strings(texts)


# ---------------------------------------------------------------------------------- what is missing


@pytest.mark.parametrize(
    ("part", "extra", "call"),
    [
        ("faiss", "faiss", lambda: to_faiss(index_of())),
        ("faiss", "faiss", lambda: from_faiss(None)),
        ("pyarrow", "files", lambda: to_arrow(index_of())),
        ("pyarrow", "files", lambda: from_arrow(None)),
    ],
    ids=["to_faiss", "from_faiss", "to_arrow", "from_arrow"],
)
def test_a_missing_package_is_named_with_the_way_to_get_it(monkeypatch, part, extra, call):
    monkeypatch.setitem(sys.modules, part, None)
    with pytest.raises(MissingPartError) as error:
        call()
    place = str(error.value).split()[0]
    assert str(error.value) == (
        f'{place} needs {part}, which is not installed; run pip install "streamhash[{extra}]".'
    )
    assert place in search.__all__
