"""A collection's items for other programs: as a file of Parquet, NumPy or faiss, or in Milvus."""

import json
from collections.abc import Callable
from itertools import count
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from streamhash.classes import ClassTable
from streamhash.codes import code_bytes
from streamhash.errors import InputError
from streamhash.labels import each_label
from streamhash.live.arrow import code_array, to_json, vector_array
from streamhash.optional import import_optional
from streamhash.search import HammingIndex, to_arrow, to_faiss, to_numpy
from streamhash.storage import whole_file

if TYPE_CHECKING:
    from streamhash.live.collection import Collection, Contents

NAMES = ".ids.json"  # what the file with the ids of a faiss index ends in, where they are strings


def export(
    collection: "Collection", path: str | PathLike[str], *, vectors: bool, where: Any = None
) -> int:
    """Write the items, or those a filter is true of, in the form that the ending of ``path`` says.

    Returns how many.
    """
    place, to_milvus = Path(path), str(path).startswith("milvus://")
    write = _WRITERS.get(place.suffix.lower())
    if write is None and not to_milvus:
        raise InputError(
            f"Collection.export: {place} does not end in .parquet, .npz or .faiss; name it so, or "
            "pass milvus://host:port/name."
        )
    if vectors and (to_milvus or write is _write_faiss):
        raise InputError(
            f"Collection.export: {path} holds codes and ids only; leave out vectors, or write "
            ".parquet or .npz."
        )
    collection.model()  # without one there are no codes, and it says what to do
    if to_milvus or write is None:
        return export_to_milvus(collection, str(path), where=where)
    with collection.contents(vectors=vectors, where=where) as contents:
        return write(contents, place, vectors)


def _write_parquet(contents: "Contents", path: Path, vectors: bool) -> int:
    import pyarrow as pa
    import pyarrow.parquet as parquet

    numbers = _are_numbers(contents)
    label = pa.int64() if numbers else pa.string()
    kind = pa.float16() if contents.vector_type == "float16" else pa.float32()
    fields = {
        "id": pa.string() if contents.id_kind == "strings" else pa.int64(),
        "label": pa.list_(label) if contents.several_labels else label,
        "metadata": pa.string(),
        "code": pa.binary(code_bytes(contents.n_bits)),
        **({"vector": pa.list_(kind, contents.n_features)} if vectors else {}),
    }
    # What says of codes how they are to be read is in one place: an empty index has it, too.
    schema = pa.schema(fields, to_arrow(HammingIndex(contents.n_bits)).schema.metadata)
    n = 0
    with whole_file(path) as temporary, parquet.ParquetWriter(temporary, schema) as writer:
        for batch in contents.batches:
            labels = batch.labels if numbers else [*map(_text, batch.labels)]
            metadata = [to_json(each) for each in batch.metadata]
            columns = [batch.ids.tolist(), labels, metadata, code_array(batch.codes)]
            columns += [vector_array(batch.vectors)] if vectors else []
            writer.write_table(pa.table(dict(zip(fields, columns, strict=True)), schema))
            n += len(batch.ids)
    return n


def _write_numpy(contents: "Contents", path: Path, vectors: bool) -> int:
    index = HammingIndex(contents.n_bits)
    places: dict[Any, int] = {}
    labels: list[Any] = []
    rows = [np.empty((0, contents.n_features or 0), contents.vector_type)]
    for batch in contents.batches:
        index.add(batch.ids, batch.codes)
        places |= dict(zip(batch.ids.tolist(), count(len(labels))))
        labels += batch.labels
        rows += [batch.vectors] if vectors else []
    order = [places[each] for each in index.ids.tolist()]  # an index has an order of its own
    beside = _label_arrays(contents, [labels[i] for i in order])
    beside |= {"X": np.concatenate(rows)[order]} if vectors else {}
    to_numpy(index, path, beside=beside)
    return len(index)


def _label_arrays(contents: "Contents", labels: list[Any]) -> dict[str, NDArray[Any]]:
    """Return labels as NumPy has them: numbers or texts, or a 0/1 matrix and its names."""
    numbers = _are_numbers(contents)
    if contents.several_labels:
        table = ClassTable()
        y = table.matrix([each_label(label) for label in labels])[:, : len(table)]
        names = table.labels_ if numbers else [*map(str, table.labels_)]
        return {"y": y, "classes": np.array(names, np.int64 if numbers else np.str_)}
    if numbers and None not in labels:
        return {"y": np.array(labels, np.int64)}
    # NumPy knows no gap: an empty text stands for it.
    return {"y": np.array([_text(label) or "" for label in labels], np.str_)}


def _write_faiss(contents: "Contents", path: Path, _vectors: bool) -> int:
    faiss = import_optional("faiss", extra="faiss", place="Collection.export")
    index = HammingIndex(contents.n_bits)
    for batch in contents.batches:
        index.add(batch.ids, batch.codes)
    is_named = contents.id_kind == "strings"
    content = faiss.serialize_index_binary(to_faiss(index, numbered=is_named))
    if is_named:  # first, so that an index is never without its names
        with whole_file(path.with_name(path.name + NAMES)) as temporary:
            temporary.write_text(json.dumps(index.ids.tolist(), ensure_ascii=False), "utf-8")
    with whole_file(path) as temporary:
        temporary.write_bytes(content)
    return len(index)


def export_to_milvus(
    collection: "Collection",
    address: str,
    options: dict[str, Any] | None = None,
    *,
    where: Any = None,
) -> int:
    """Copy the codes of the model that serves to ``milvus://host:port/name``; return how many.

    They are in the Milvus collection ``name_model_N``, and the alias ``name`` means it from then
    on. Rows have ``key``, the number of the item in the order of ``collection.ids``, and ``code``.
    """
    from streamhash.live.backends.milvus import Server

    n = 0
    server = Server(address, options, place="Collection.export")
    server.refuse_taken()
    with collection.contents(vectors=False, where=where) as contents:
        table = server.table(contents.model, contents.n_bits)
        table.create()
        for batch in contents.batches:
            table.put(np.arange(n, n + len(batch.ids)), batch.codes)
            n += len(batch.ids)
        server.point_alias(contents.model)
    return n


def _are_numbers(contents: "Contents") -> bool:
    """Whether all labels are whole numbers that 64 bits hold."""
    return all(type(name) is int and -(2**63) <= name < 2**63 for name in contents.label_names)


def _text(label: Any) -> Any:
    if isinstance(label, tuple):
        return [*map(str, label)]
    return None if label is None else str(label)


_WRITERS: dict[str, Callable[["Contents", Path, bool], int]] = {
    ".parquet": _write_parquet,
    ".npz": _write_numpy,
    ".faiss": _write_faiss,
}
