"""Items in Parquet files."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from streamhash.errors import InputError
from streamhash.files.items.piece import METADATA, Columns, Piece
from streamhash.files.parquet_table import is_list, list_rows, numbers, open_parquet

__all__ = ["parquet_rows"]


def parquet_rows(path: Path, columns: Columns, with_vectors: bool, size: int) -> Iterator[Piece]:
    """Read items from rows."""
    with open_parquet(path) as file:
        schema, place = file.schema_arrow, str(path)
        id_name, label = (columns.find(part, schema.names, place) for part in ("id", "label"))
        metadata = columns.find_metadata(schema.names, place)
        taken = {id_name, label, *metadata}
        rest = [name for name in schema.names if name not in taken]
        vector = _vector(schema, rest, columns, place) if with_vectors else []
        wanted = [*(name for name in (id_name, label) if name), *metadata, *vector]
        width: int | None = None
        done = 0
        for batch in file.iter_batches(batch_size=size, columns=wanted):
            rows: NDArray[Any] | None = None
            if with_vectors and is_list(schema.field(vector[0]).type):
                rows = list_rows(batch.column(vector[0]), width, path, vector[0], done)
            elif with_vectors:
                rows = np.column_stack([numbers(batch.column(name), path, name) for name in vector])
            width = None if rows is None else rows.shape[1]
            done += len(batch)
            yield Piece(
                rows,
                None if id_name is None else batch.column(id_name).to_pylist(),
                None if label is None else batch.column(label).to_pylist(),
                _metadata(batch, metadata, bool(columns.metadata), place),
            )


def _vector(schema: Any, rest: list[str], columns: Columns, place: str) -> list[str]:
    """Return the columns of the vector: one of lists, or all of the rest."""
    name = columns.find("vector", schema.names, place)
    if name is not None:
        return [name]
    lists = [name for name in rest if is_list(schema.field(name).type)]
    if len(lists) > 1:
        raise InputError(
            f"read_items: {place} has several columns of lists, {', '.join(lists)}; name the one "
            "that holds the vectors."
        )
    if not rest:
        raise InputError(f"read_items: {place} has no columns for vectors; save them with it.")
    return lists or rest


def _metadata(batch: Any, names: tuple[str, ...], is_named: bool, place: str) -> list[Any] | None:
    if not names:
        return None
    if is_named:
        parts = zip(*(batch.column(name).to_pylist() for name in names), strict=True)
        return [dict(zip(names, part, strict=True)) for part in parts]
    values = batch.column(METADATA).to_pylist()
    try:
        return [json.loads(value) if isinstance(value, str) else value for value in values]
    except json.JSONDecodeError as error:
        raise InputError(
            f"read_items: column {METADATA!r} of {place} holds texts that are not JSON; write them "
            "as JSON, or name the columns."
        ) from error
