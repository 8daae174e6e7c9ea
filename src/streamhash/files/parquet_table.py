"""Tables of typed columns: .parquet, read with pyarrow."""

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from streamhash.errors import InputError
from streamhash.files.columns import as_labels, choose_columns
from streamhash.optional import import_optional

__all__ = ["is_list", "list_rows", "numbers", "open_parquet", "read_parquet"]

_BATCH = 16_384  # rows in memory beside the result


def read_parquet(
    path: Path, column: str | None, find_labels: bool
) -> tuple[NDArray[Any], NDArray[Any] | None]:
    """Read a .parquet; ``find_labels`` False takes all columns for features."""
    with open_parquet(path) as file:
        schema = file.schema_arrow
        names, label = choose_columns(schema.names, column, find_labels, path)
        lists = [name for name in names if is_list(schema.field(name).type)]
        if len(lists) > 1:
            raise InputError(
                f"read_table: {path} has several columns of lists, {', '.join(lists)}; save the "
                "one that holds the features, without the others."
            )
        features = lists or names
        wanted = features if label is None else [*features, label]
        X: NDArray[np.float32] | None = None
        labels: list[Any] = []
        done = 0
        for batch in file.iter_batches(batch_size=_BATCH, columns=wanted):
            if lists:
                width = None if X is None else X.shape[1]
                block = list_rows(batch.column(lists[0]), width, path, lists[0], done)
            else:
                block = np.column_stack(
                    [numbers(batch.column(name), path, name) for name in features]
                )
            if X is None:
                X = np.empty((file.metadata.num_rows, block.shape[1]), np.float32)
            with np.errstate(over="ignore"):  # beyond float32: infinite, and the hasher's to judge
                X[done : done + len(block)] = block
            if label is not None:
                labels += batch.column(label).to_pylist()
            done += len(block)
    if X is None:
        X = np.empty((0, len(features)), np.float32)
    return X, None if label is None else as_labels(labels, path)


def open_parquet(path: Path) -> Any:
    """Open a file, to be read batch by batch."""
    parquet = import_optional(
        "pyarrow.parquet",
        extra="files",
        place=f"read_table: {path}",
        otherwise="save the table as .npz or .csv",
    )
    return parquet.ParquetFile(path)


def numbers(values: Any, path: Path, name: str) -> NDArray[Any]:
    """Return an arrow column as numbers; a null is NaN."""
    import pyarrow

    kind = values.type
    if pyarrow.types.is_boolean(kind):
        values = values.cast(pyarrow.uint8())
    elif not (pyarrow.types.is_integer(kind) or pyarrow.types.is_floating(kind)):
        raise InputError(
            f"read_table: {path} has {kind} values from row 1 on in column {name!r}, where "
            f"numbers are wanted; drop the column, or pass column={name!r} if it holds the labels."
        )
    array: NDArray[Any] = values.to_numpy(zero_copy_only=False)
    return array


def list_rows(values: Any, width: float | None, path: Path, name: str, done: int) -> NDArray[Any]:
    """Return an arrow column of lists as a matrix, as wide as the ``done`` rows before."""
    import pyarrow.compute as compute

    lengths = compute.list_value_length(values).to_numpy(zero_copy_only=False)  # null: NaN
    width = lengths[0] if width is None else width
    wrong = np.flatnonzero(lengths != width)
    if len(wrong):
        raise InputError(
            f"read_table: {path} has {_count(lengths[wrong[0]])} in row {done + wrong[0] + 1}, "
            f"column {name!r}, and {_count(width)} in row 1; save rows of one length."
        )
    return numbers(values.flatten(), path, name).reshape(len(values), int(width))


def _count(length: float) -> str:
    return "no list" if np.isnan(length) else f"{int(length)} numbers"


def is_list(kind: Any) -> bool:
    """Whether values of this type are lists."""
    from pyarrow import types

    return bool(types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind))
