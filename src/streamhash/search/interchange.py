"""Indexes and codes of other programs: faiss, NumPy, Arrow, sentence-transformers, PostgreSQL.

Items keep their ids and their order. The bit order of codes is that of ``streamhash.codes``, whose
``reverse_bits`` turns codes of the other one.
"""

import os
import zipfile
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from streamhash.codes import Codes, check_codes, code_bytes, unpack
from streamhash.errors import FileError, InputError
from streamhash.optional import import_optional
from streamhash.parameters import Choice, check_parameters
from streamhash.search.ids import kind
from streamhash.search.index import HammingIndex
from streamhash.storage import read_member, whole_file

BIT_ORDER = "big"  # NumPy's word for the first bit in the highest place
VERSION = 1  # of the form in which codes are given away, as files and tables say it

# -------------------------------------------------------------------------------------------- faiss


def to_faiss(index: HammingIndex, *, numbered: bool = False) -> Any:
    """Copy an index into a ``faiss.IndexBinaryIDMap2`` over an ``IndexBinaryFlat``.

    It finds the same items, in the same order. faiss has whole bytes only: 12-bit codes become
    16-bit ones that end in four zeros, which changes no distance; pass ``n_bits=12`` to
    ``from_faiss`` to get them back. faiss's ``range_search`` finds what is *nearer* than its
    radius: its 3 is our 2.

    faiss has no strings for ids: with ``numbered=True`` they are places in ``index.ids``.
    """
    faiss = import_optional("faiss", extra="faiss", place="to_faiss")
    ids, codes = index.contents()
    if kind(ids) == "strings" and not numbered:
        raise InputError(
            "to_faiss: ids are strings, and faiss has whole numbers only; pass numbered=True, and "
            "look the places that faiss finds up in index.ids."
        )
    result = faiss.IndexBinaryIDMap2(faiss.IndexBinaryFlat(8 * codes.shape[1]))
    result.add_with_ids(codes, np.arange(len(ids)) if numbered else ids)
    return result


def from_faiss(
    faiss_index: Any, *, n_bits: int | None = None, names: Sequence[str] | None = None
) -> HammingIndex:
    """Copy a binary index of faiss: flat, inverted file, or either below an id map; ids are kept.

    Parameters
    ----------
    faiss_index : faiss.IndexBinary
        An IndexBinaryFlat, IndexBinaryIVF, IndexBinaryIDMap or IndexBinaryIDMap2. An inverted file
        does not know in which order items were added: the order of ids is taken.
    n_bits : int, optional
        Length of the codes, where faiss holds them filled up to whole bytes.
    names : sequence of str, optional
        Strings to use for ids: item ``i`` of faiss gets ``names[i]``.
    """
    faiss = import_optional("faiss", extra="faiss", place="from_faiss")
    ids, codes = _read_faiss(faiss, faiss_index)
    if names is None:
        return _make_index("from_faiss", ids, codes, n_bits)
    if len(ids) and not (ids.min() >= 0 and ids.max() < len(names)):
        raise InputError(
            f"from_faiss: {len(names)} names came, and ids from {ids.min()} to {ids.max()}; "
            "pass a name for each id from 0 up."
        )
    return _make_index("from_faiss", [names[i] for i in ids.tolist()], codes, n_bits)


def _read_faiss(faiss: Any, wrapped: Any) -> tuple[NDArray[np.int64], Codes]:
    """Ids (n,) and codes (n, bytes) of an index, in the order of adding where it is known."""
    if not isinstance(wrapped, faiss.IndexBinary):
        raise InputError(
            f"from_faiss: a {type(wrapped).__name__} came; pass a binary index, such as "
            "faiss.IndexBinaryFlat."
        )
    index = faiss.downcast_IndexBinary(wrapped)
    if isinstance(index, faiss.IndexBinaryIDMap):  # an IDMap2 is an IDMap
        places, codes = _read_faiss(faiss, index.index)
        return faiss.vector_to_array(index.id_map)[places], codes
    width = index.code_size
    if isinstance(index, faiss.IndexBinaryFlat):
        codes = faiss.vector_to_array(index.xb).reshape(-1, width)
        return np.arange(len(codes)), codes
    if not isinstance(index, faiss.IndexBinaryIVF):
        raise InputError(
            f"from_faiss: {type(index).__name__} cannot be read; pass an IndexBinaryFlat, "
            "IndexBinaryIVF, IndexBinaryIDMap or IndexBinaryIDMap2."
        )
    lists, ids, rows = index.invlists, [np.empty(0, np.int64)], [np.empty(0, np.uint8)]
    for i in range(index.nlist):
        size = lists.list_size(i)
        if size:
            ids.append(faiss.rev_swig_ptr(lists.get_ids(i), size))
            rows.append(faiss.rev_swig_ptr(lists.get_codes(i), size * width))
    all_ids = np.concatenate(ids)
    order = np.argsort(all_ids, kind="stable")
    return all_ids[order], np.concatenate(rows).reshape(-1, width)[order]


# -------------------------------------------------------------------------------------- NumPy files


def to_numpy(
    index: HammingIndex,
    path: str | os.PathLike[str],
    *,
    beside: Mapping[str, NDArray[Any]] | None = None,
) -> None:
    """Write an index to one ``.npz`` that ``np.load`` opens, whole or not at all, never pickled.

    ``codes`` is (n, bytes) of uint8, ``ids`` (n,) of int64 or of fixed-width strings; ``n_bits``,
    ``bit_order`` and ``version`` are single values. (``HammingIndex.save`` writes the form that is
    quick to load here; this one is for other programs.) ``beside`` are more arrays for the file.

    >>> import tempfile
    >>> index = HammingIndex(n_bits=12)
    >>> index.add(["a", "b"], np.array([[1, 16], [2, 32]], dtype=np.uint8))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     to_numpy(index, folder + "/codes.npz")
    ...     with np.load(folder + "/codes.npz") as file:
    ...         print(file["codes"].tolist(), file["ids"].tolist(), file["n_bits"])
    [[1, 16], [2, 32]] ['a', 'b'] 12
    """
    ids, codes = index.contents()
    if kind(ids) == "strings":
        for text in ids:
            if text.endswith("\0"):
                raise InputError(
                    f"to_numpy: id {text!r} ends in a zero character, which NumPy's strings lose; "
                    "use HammingIndex.save."
                )
        ids = ids.astype(np.str_)
    arrays: dict[str, Any] = {"codes": codes, "ids": ids, **_facts(index), **(beside or {})}
    with whole_file(path) as temporary, temporary.open("xb") as file:
        np.savez(file, **arrays)


def from_numpy(path: str | os.PathLike[str], *, n_bits: int | None = None) -> HammingIndex:
    """Read an index from a ``.npz`` with ``codes`` and, if it has them, ``ids`` and ``n_bits``."""
    try:
        with zipfile.ZipFile(path) as archive:
            known = ("codes", "ids", "n_bits", "bit_order", "version")
            names = {name.removesuffix(".npy"): name for name in archive.namelist()}
            arrays = {name: read_member(archive, names[name]) for name in known if name in names}
        if "codes" not in arrays:
            raise InputError(f"holds no array named codes, but {', '.join(names) or 'nothing'}")
        return _make_index("from_numpy", arrays.get("ids"), arrays["codes"], n_bits, arrays)
    except OSError as error:
        message = f"{os.fspath(path)}: cannot be read ({error.strerror}); check the path."
        raise FileError(message) from error
    except Exception as error:  # a broken archive may raise nearly anything
        raise FileError(
            f"{os.fspath(path)}: is not an index of codes ({error}); save codes, ids and n_bits "
            "with streamhash.search.to_numpy, or with np.savez(path, codes=codes, ids=ids)."
        ) from error


# -------------------------------------------------------------------------------------------- Arrow


def to_arrow(index: HammingIndex) -> Any:
    """Copy an index into a ``pyarrow.Table`` with the columns ``id`` and ``code``.

    ``id`` is int64 or string, ``code`` fixed-size binary. The schema's metadata says ``n_bits``,
    ``bit_order`` ("big": the first bit in the highest place) and ``version``, each under a name
    that begins with ``streamhash.``; Parquet, Feather and the like keep it.
    """
    arrow = import_optional("pyarrow", extra="files", place="to_arrow")
    ids, codes = index.contents()
    code = arrow.FixedSizeBinaryArray.from_buffers(
        arrow.binary(codes.shape[1]), len(codes), [None, arrow.py_buffer(codes)]
    )
    try:
        id_type = arrow.string() if kind(ids) == "strings" else arrow.int64()
        table = arrow.table({"id": arrow.array(ids, id_type), "code": code})
    except UnicodeEncodeError as error:
        raise InputError(
            f"to_arrow: an id holds half a character, {error.object!r}, which is no text in UTF-8; "
            "give the item another id."
        ) from error
    return table.replace_schema_metadata(
        {f"streamhash.{name}": str(value) for name, value in _facts(index).items()}
    )


def from_arrow(table: Any, *, n_bits: int | None = None) -> HammingIndex:
    """Make an index of a ``pyarrow.Table`` with a column ``code`` and, if it has one, ``id``.

    ``code`` may be binary of any kind, all values of one length. ``n_bits`` is what the table's
    metadata says, unless you pass it; without both, every bit counts. Other columns are left out.
    """
    arrow = import_optional("pyarrow", extra="files", place="from_arrow")
    if not isinstance(table, arrow.Table):
        raise InputError(
            f"from_arrow: a {type(table).__name__} came; pass a pyarrow.Table, such as "
            "pyarrow.parquet.read_table(path)."
        )
    facts = {
        name.decode("utf-8", "replace").removeprefix("streamhash."): value.decode(
            "utf-8", "replace"
        )
        for name, value in (table.schema.metadata or {}).items()
        if name.startswith(b"streamhash.")
    }
    codes = _arrow_codes(arrow, _column(arrow, table, "code"))
    ids = None
    if "id" in table.column_names:
        ids = _column(arrow, table, "id")
        if arrow.types.is_dictionary(ids.type):
            ids = ids.dictionary_decode()
        ids = ids.to_numpy() if arrow.types.is_integer(ids.type) else ids.to_pylist()
    return _make_index("from_arrow", ids, codes, n_bits, facts)


def _column(arrow: Any, table: Any, name: str) -> Any:
    """Return a column as one array without nulls."""
    if table.column_names.count(name) != 1:
        raise InputError(
            f"from_arrow: the table has the columns {', '.join(table.column_names)}, and one named "
            f"{name!r} is wanted; rename the column that holds it."
        )
    column = table.column(name)
    if column.null_count:
        raise InputError(
            f"from_arrow: column {name!r} has {column.null_count} nulls; leave these rows out."
        )
    return arrow.concat_arrays(column.chunks) if column.num_chunks else arrow.array([], column.type)


def _arrow_codes(arrow: Any, values: Any) -> Codes:
    if not arrow.types.is_fixed_size_binary(values.type):
        if str(values.type) not in ("binary", "large_binary", "binary_view"):
            raise InputError(f"from_arrow: column 'code' is {values.type}; pass binary values.")
        lengths = {len(value) for value in values.to_pylist()}
        if len(lengths) != 1:
            raise InputError(
                f"from_arrow: column 'code' holds values of {len(lengths)} lengths; pass codes of "
                "one length, as fixed-size binary if there are none."
            )
        values = arrow.array(values.to_pylist(), arrow.binary(lengths.pop()))
    width = values.type.byte_width
    rows = np.frombuffer(values.buffers()[1] or b"", np.uint8)
    first = values.offset * width
    return rows[first : first + len(values) * width].reshape(len(values), width)


# -------------------------------------------------------------------------------------- codes alone


def from_sentence_transformers(embeddings: ArrayLike) -> Codes:
    """Take binary embeddings of sentence-transformers for codes: (n, dimensions / 8).

    Its ``quantize_embeddings`` with ``precision="ubinary"`` is ``np.packbits(embeddings > 0)`` cut
    into rows: uint8, just our codes. ``"binary"`` is the same less 128, as int8. (It packs rows end
    to end, so that dimensions must be a multiple of 8.)

    >>> from_sentence_transformers(np.array([[-128, 127, 16]], dtype=np.int8))
    array([[  0, 255, 144]], dtype=uint8)
    """
    array = np.asarray(embeddings)
    if array.dtype == np.int8:
        array = np.ascontiguousarray(array).view(np.uint8) ^ np.uint8(128)
    elif array.dtype.kind == "f":
        raise InputError(
            f"from_sentence_transformers: {array.dtype} embeddings came; pass those of "
            'precision="ubinary" or "binary", or make codes with streamhash.pack(embeddings).'
        )
    return check_codes(array, name="from_sentence_transformers: embeddings")


def to_sentence_transformers(codes: ArrayLike, precision: str = "ubinary") -> NDArray[Any]:
    """Give codes the form of sentence-transformers: "ubinary" (uint8) or "binary" (int8).

    >>> to_sentence_transformers(np.array([[0, 255, 144]], dtype=np.uint8), "binary")
    array([[-128,  127,   16]], dtype=int8)
    """
    place = "to_sentence_transformers"
    check_parameters(place, {"precision": precision}, {"precision": Choice("ubinary", "binary")})
    array = check_codes(codes, name=f"{place}: codes")
    return array if precision == "ubinary" else (array ^ np.uint8(128)).view(np.int8)


def to_bit_strings(codes: ArrayLike, n_bits: int) -> list[str]:
    """Write codes as text of 0 and 1, as pgvector's and PostgreSQL's ``bit(n_bits)`` take them.

    >>> to_bit_strings(np.array([[0b10010000]], dtype=np.uint8), n_bits=5)
    ['10010']
    """
    bits = unpack(codes, n_bits) + np.uint8(ord("0"))
    return [row.tobytes().decode("ascii") for row in bits]


def from_bit_strings(texts: Iterable[str]) -> Codes:
    """Read codes from texts of 0 and 1, all of one length.

    >>> from_bit_strings(["10010"])
    array([[144]], dtype=uint8)
    """
    rows = list(texts)
    if not rows:
        raise InputError("from_bit_strings: no text came; pass one at least.")
    for text in rows:
        if not text or text.strip("01") or len(text) != len(rows[0]):
            raise InputError(
                f"from_bit_strings: {text!r} came after {rows[0]!r}; pass texts of 0 and 1, all of "
                "one length."
            )
    bits = np.frombuffer("".join(rows).encode("ascii"), np.uint8).reshape(len(rows), -1)
    return np.packbits(bits == ord("1"), axis=1)


# ----------------------------------------------------------------------------------- what all share


def _facts(index: HammingIndex) -> dict[str, Any]:
    """What files and tables say of their codes."""
    return {"n_bits": index.n_bits, "bit_order": BIT_ORDER, "version": VERSION}


def _make_index(
    place: str, ids: Any, codes: Any, n_bits: int | None, facts: Mapping[str, Any] | None = None
) -> HammingIndex:
    """Return a new index of codes; ``facts`` are what their file or table says of them, if it does.

    Without ``n_bits``, every bit of their bytes counts.
    """
    facts = facts or {}
    if "bit_order" in facts:
        if str(facts["bit_order"]) != BIT_ORDER:
            raise InputError(
                f"{place}: the codes are in bit order {str(facts['bit_order'])!r}; turn them with "
                "streamhash.codes.reverse_bits, and add them to a HammingIndex."
            )
        version = _whole(place, "version", facts.get("version", ""))
        if version > VERSION:
            raise InputError(
                f"{place}: the codes are in form {version}, this version reads up to {VERSION}; "
                "upgrade streamhash."
            )
    if n_bits is None and "n_bits" in facts:
        n_bits = _whole(place, "n_bits", facts["n_bits"])
    array = check_codes(codes, name=f"{place}: codes")
    width = array.shape[1]
    try:
        index = HammingIndex(8 * width if n_bits is None else n_bits)
        if width == code_bytes(index.n_bits):
            index.add(ids, array)
            return index
    except InputError as error:
        raise InputError(f"{place}: {error}") from error
    raise InputError(
        f"{place}: codes of {width} bytes came, and n_bits={n_bits} needs "
        f"{code_bytes(index.n_bits)}; pass the n_bits of these codes."
    )


def _whole(place: str, name: str, value: Any) -> int:
    if not str(value).isdecimal():
        raise InputError(
            f"{place}: it says {name}={str(value)!r}, which is no whole number; write it again "
            f"with {place.replace('from', 'to')}."
        )
    return int(value)
