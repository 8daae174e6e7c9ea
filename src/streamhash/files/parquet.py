"""Typed columns: Parquet, read with pyarrow."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from streamhash.files.columns import METADATA, Piece, Request, Table
from streamhash.frames import plain_value
from streamhash.optional import import_optional


@contextmanager
def open_parquet(request: Request) -> Iterator[Table]:
    """Open a file, to be read batch by batch."""
    parquet = import_optional(
        "pyarrow.parquet",
        extra="files",
        place=f"{request.place}: {request.path}",
        otherwise="save the table as .npz or .csv",
    )
    with parquet.ParquetFile(request.path) as file:
        schema = file.schema_arrow
        kinds = {name: schema.field(name).type for name in schema.names}
        taken = request.choose(
            schema.names, lambda name: _is_list(kinds[name]), lambda name: _is_number(kinds[name])
        )
        is_list = bool(taken.vectors) and _is_list(schema.field(taken.vectors[0]).type)
        id_name = taken.id if "id" in request.parts else None
        metadata = taken.metadata if "metadata" in request.parts else ()
        wanted = [*filter(None, (id_name, taken.label)), *metadata, *taken.vectors]

        def pieces(size: int) -> Iterator[Piece]:
            rows: NDArray[Any] | None = None
            done = 0
            for batch in file.iter_batches(batch_size=size, columns=wanted):
                if is_list:
                    width = None if rows is None else rows.shape[1]
                    rows = _list_rows(batch, taken.vectors[0], width, done, request)
                elif taken.vectors:
                    rows = np.column_stack(
                        [_numbers(batch.column(name), name, request) for name in taken.vectors]
                    )
                yield Piece(
                    rows,
                    None if id_name is None else batch.column(id_name).to_pylist(),
                    None if taken.label is None else batch.column(taken.label).to_pylist(),
                    _metadata(batch, metadata, done, request) if metadata else None,
                )
                done += len(batch)

        yield Table(request, taken, pieces, rows=file.metadata.num_rows, width=len(taken.vectors))


def _numbers(values: Any, name: str, request: Request) -> NDArray[Any]:
    """Return a column as numbers; a null is NaN."""
    import pyarrow

    kind = values.type
    if pyarrow.types.is_boolean(kind):
        values = values.cast(pyarrow.uint8())
    elif not _is_number(kind):
        raise request.error(
            f"has {kind} values from row 1 on in column {name!r}, where numbers are wanted; drop "
            f"the column, or pass column={name!r} if it holds the labels."
        )
    array: NDArray[Any] = values.to_numpy(zero_copy_only=False)
    return array


def _list_rows(
    batch: Any, name: str, width: float | None, done: int, request: Request
) -> NDArray[Any]:
    """Return a column of lists as a matrix, as wide as the ``done`` rows before."""
    import pyarrow.compute as compute

    values = batch.column(name)
    lengths = compute.list_value_length(values).to_numpy(zero_copy_only=False)  # null: NaN
    width = lengths[0] if width is None else width
    wrong = np.flatnonzero(lengths != width)
    if len(wrong):
        raise request.error(
            f"has {_count(lengths[wrong[0]])} in row {done + wrong[0] + 1}, column {name!r}, and "
            f"{_count(width)} in row 1; save rows of one length."
        )
    return _numbers(values.flatten(), name, request).reshape(len(values), int(width))


def _count(length: float) -> str:
    return "no list" if np.isnan(length) else f"{int(length)} numbers"


def _is_list(kind: Any) -> bool:
    from pyarrow import types

    return bool(types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind))


def _is_number(kind: Any) -> bool:
    from pyarrow import types

    return bool(types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind))


def _metadata(batch: Any, names: tuple[str, ...], done: int, request: Request) -> list[Any]:
    parts = [batch.column(name).to_pylist() for name in names]
    if names != (METADATA,):
        rows = ([*map(plain_value, values)] for values in zip(*parts, strict=True))
        return [dict(zip(names, values, strict=True)) for values in rows]
    return [
        request.from_json(cell or "null", done + i) if isinstance(cell, str) else cell
        for i, cell in enumerate(parts[0], start=1)
    ]
