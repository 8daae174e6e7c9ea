"""Items as Arrow has them, and back: codes, vectors, labels and metadata in columns."""

import ctypes
import json
from collections.abc import Callable, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from streamhash.codes import Codes
from streamhash.errors import FileError
from streamhash.optional import import_optional
from streamhash.search.directory import Coded, Keys as Keys
from streamhash.search.ids import Strings

if TYPE_CHECKING:
    import pyarrow as pa

CODE = "code_"  # the column with the codes of model N is called code_N


class Batch(NamedTuple):
    """Some items of a collection, in the order of adding; what was not asked for is None."""

    ids: Any  # array (n,)
    vectors: Any  # array (n, d)
    labels: Any  # list
    metadata: Any  # list
    codes: Any  # array (n, bytes), by the model that serves; None while there is none
    keys: Keys

    def some(self, places: Any) -> "Batch":
        """Return the items at these places."""

        def chosen(values: Any) -> Any:
            if isinstance(values, list):
                return [values[i] for i in places]
            return None if values is None else values[places]

        return Batch(*map(chosen, self))


def joined(batches: "Sequence[Batch]") -> Batch:
    """Return several batches as one."""

    def join(*values: Any) -> Any:
        if values[0] is None:
            return None
        if isinstance(values[0], list):
            return [each for part in values for each in part]
        return np.concatenate(values)

    return Batch(*map(join, *batches))


class Columns(NamedTuple):
    """Some items of a collection in columns, in the order of adding: no Python object an item."""

    keys: Keys
    ids: NDArray[np.int64] | Strings
    labels: Coded
    codes: Codes | None


def columns_of(table: Any) -> Columns:
    """Turn a record batch of items into columns."""
    code = next((name for name in table.schema.names if name.startswith(CODE)), None)
    return Columns(
        table["key"].to_numpy(),
        strings_of(table["id"]) if is_text(table["id"]) else table["id"].to_numpy(),
        coded(table["label"]),
        None if code is None else codes_of(table[code]),
    )


def is_text(column: Any) -> bool:
    """Whether a column holds strings."""
    return str(column.type) in ("string", "large_string")


def strings_of(array: Any) -> Strings:
    """Return a column of strings without gaps."""
    _, offsets, content = array.buffers()
    wide = np.int64 if str(array.type) == "large_string" else np.int32
    ends = np.frombuffer(offsets, wide)[array.offset : array.offset + len(array) + 1]
    text = np.frombuffer(content or b"", np.uint8)[ends[0] : ends[-1]]
    return Strings(text, ends.astype(np.int64) - int(ends[0]))


def coded(array: Any) -> Coded:
    """Return a column of stored labels; of equal ones only one is read."""
    encoded = array.dictionary_encode()
    numbers = encoded.indices.fill_null(-1).to_numpy().astype(np.int32, copy=False)
    return Coded(numbers, labels_from_json(encoded.dictionary.to_pylist()))


def batch_of(table: Any, order: Any = slice(None)) -> Batch:
    """Turn a table of items, or some of its rows in this order, into a batch."""
    names = table.schema.names
    code = next((name for name in names if name.startswith(CODE)), None)

    def column(name: str, read: Callable[[Any], Any]) -> Any:
        return read(table[name])[order] if name in names else None

    def texts(values: Any) -> NDArray[Any]:
        return np.fromiter(values.to_pylist(), object, len(values))

    def numbers_or_texts(values: Any) -> NDArray[Any]:
        return texts(values) if is_text(values) else np.asarray(values.to_numpy())

    ids = column("id", numbers_or_texts)
    labels, metadata = column("label", texts), column("metadata", texts)
    return Batch(
        ids,
        column("vector", vectors_of),
        None if labels is None else labels_from_json(labels.tolist()),
        None if metadata is None else from_json(metadata.tolist()),
        None if code is None else column(code, codes_of),
        table["key"].to_numpy()[order],
    )


def code_columns(number: int) -> list[str]:
    """Return the name of the column with the codes of a model; without one, none."""
    return [f"{CODE}{number}"] if number else []


def code_array(codes: Codes) -> "pa.Array":
    """Return codes (n, bytes) as a column."""
    pa = import_pyarrow()
    content = pa.py_buffer(np.ascontiguousarray(codes))
    return pa.FixedSizeBinaryArray.from_buffers(
        pa.binary(codes.shape[1]), len(codes), [None, content]
    )


def codes_of(column: Any) -> Codes:
    """Undo ``code_array``, of a column without gaps."""
    width = column.type.byte_width
    parts = [np.empty((0, width), np.uint8)]
    for chunk in getattr(column, "chunks", [column]):
        if chunk.null_count:
            raise FileError("items without a code: the collection is damaged; refresh it.")
        content = np.frombuffer(chunk.buffers()[1], np.uint8)
        parts.append(content.reshape(-1, width)[chunk.offset : chunk.offset + len(chunk)])
    return np.concatenate(parts)


def vector_array(vectors: NDArray[Any]) -> "pa.Array":
    """Return vectors (n, d) of float16 or float32 as a column."""
    pa = import_pyarrow()
    flat = pa.array(np.ascontiguousarray(vectors).ravel())
    return pa.FixedSizeListArray.from_arrays(flat, vectors.shape[1])


def vectors_of(column: Any) -> NDArray[Any]:
    """Undo ``vector_array``."""
    column = column.combine_chunks() if hasattr(column, "combine_chunks") else column
    flat = column.flatten().to_numpy(zero_copy_only=False)
    return np.asarray(flat).reshape(-1, column.type.list_size)


def to_json(value: Any) -> str | None:
    """Return stored metadata as JSON, None for None."""
    if value is None:
        return None
    text = json.dumps(value, ensure_ascii=False, sort_keys=True)
    # Version 0.1.0 took halves of surrogate pairs, which only escapes can say.
    return text if text.isprintable() else json.dumps(value, sort_keys=True)


def labels_to_json(labels: Sequence[Any]) -> list[str | None]:
    """Return stored labels as JSON, None for None; of equal ones only one is written."""
    if labels.count(None) == len(labels):
        return [None] * len(labels)
    known: dict[Any, str | None] = {}
    texts = []
    for label in labels:
        key = type(label), label  # as 1 is equal to True
        if key not in known:
            known[key] = to_json(label)
        texts.append(known[key])
    return texts


def from_json(texts: Sequence[str | None]) -> list[Any]:
    """Undo ``to_json``; of equal texts only one is read, and all different ones at once."""
    different = [*dict.fromkeys(text for text in texts if text is not None)]
    try:
        values = json.loads(f"[{','.join(different)}]")
    except RecursionError:
        values = [_shallow(text) for text in different]
    known: dict[str | None, Any] = {None: None}
    known.update(zip(different, values, strict=True))
    return [known[text] for text in texts]


def _shallow(text: str) -> Any:
    try:
        return json.loads(text)
    except RecursionError:  # version 0.1.0 took metadata of nearly a thousand levels
        return None


def labels_from_json(texts: Sequence[str | None]) -> list[Any]:
    """Return stored labels; several of an item are a tuple."""
    return [tuple(label) if isinstance(label, list) else label for label in from_json(texts)]


def release_unused() -> None:
    """Give the system back what Arrow and Lance have freed: both keep it, for the next time."""
    import_pyarrow().default_memory_pool().release_unused()
    trim = getattr(ctypes.pythonapi, "malloc_trim", None)  # of glibc, that Lance allocates by
    if trim is not None:
        trim(0)


@cache
def import_lance() -> Any:
    """Return Lance, or say how to get it."""
    return import_optional("lance", extra="live", place="a collection")


@cache
def import_pyarrow() -> Any:
    """Return pyarrow, or say how to get it."""
    return import_optional("pyarrow", extra="live", place="a collection")
