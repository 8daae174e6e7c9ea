"""Items in NumPy's files, and in data sets."""

import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.lib import format as npy_format
from numpy.typing import NDArray

from streamhash.errors import InputError
from streamhash.files.items.piece import Columns, Piece
from streamhash.files.tables import read_table
from streamhash.lab.datasets.sets import load_data

__all__ = ["npy_rows", "npz_rows", "set_rows"]

VECTORS, IDS, LABELS = ("X", "features", "vectors"), ("ids", "id"), ("y", "labels", "label")


def npy_rows(path: Path, labels: Path | None, size: int) -> Iterator[Piece]:
    """Read vectors from a file that is mapped, with the labels of another."""
    X, y = read_table(path, labels=labels)
    return _cut(X, y, size)


def set_rows(name: str, size: int) -> Iterator[Piece]:
    """Read a data set."""
    data = load_data(name)
    return _cut(data.X, data.y, size)


def _cut(X: NDArray[Any], y: NDArray[Any] | None, size: int) -> Iterator[Piece]:
    for start in range(0, len(X), size):
        piece = slice(start, start + size)
        yield Piece(np.array(X[piece]), labels=None if y is None else _labels(y[piece]))


def npz_rows(path: Path, columns: Columns, with_vectors: bool, size: int) -> Iterator[Piece]:
    """Read the arrays of an archive: vectors piece by piece, ids and labels as a whole."""
    with path.open("rb") as file, zipfile.ZipFile(file) as archive:
        names = [name.removesuffix(".npy") for name in archive.namelist()]
        x_name, id_name, y_name = (
            _find(wanted, guesses, names, path)
            for wanted, guesses in (
                (columns.vector, VECTORS),
                (columns.id, IDS),
                (columns.label, LABELS),
            )
        )
        if columns.metadata:
            raise InputError(f"read_items: {path} has no metadata; use JSON lines or Parquet.")
        if x_name is None and with_vectors:
            raise InputError(
                f"read_items: {path} has no array 'X' or 'features', only {names}; name the one "
                "that holds the vectors."
            )
        with np.load(file, allow_pickle=False) as arrays:
            ids = None if id_name is None else arrays[id_name]
            labels = None if y_name is None else arrays[y_name]
        lengths = {len(array) for array in (ids, labels) if array is not None}
        if x_name is not None and with_vectors:
            with archive.open(f"{x_name}.npy") as member:
                n, pieces = _array_rows(member, path, size)
                _check_lengths(lengths | {n}, path)
                yield from _join(pieces, ids, labels)
        else:
            _check_lengths(lengths, path)
            yield from _join(iter([None]), ids, labels)


def _find(wanted: str | None, guesses: tuple[str, ...], names: list[str], path: Path) -> str | None:
    if wanted is not None and wanted not in names:
        raise InputError(
            f"read_items: {wanted!r} is not in {path}, which has {', '.join(names)}; pass one of "
            "these."
        )
    return wanted or next((name for name in guesses if name in names), None)


def _check_lengths(lengths: set[int], path: Path) -> None:
    if len(lengths) > 1:
        raise InputError(
            f"read_items: the arrays of {path} have {sorted(lengths)} rows; save as many ids and "
            "labels as vectors."
        )


def _array_rows(member: Any, path: Path, size: int) -> tuple[int, Iterator[NDArray[Any]]]:
    """Return how many rows an array has, and the rows piece by piece."""
    version = npy_format.read_magic(member)
    header = (
        npy_format.read_array_header_1_0 if version == (1, 0) else npy_format.read_array_header_2_0
    )
    shape, is_columns, dtype = header(member)
    if len(shape) != 2 or dtype.kind not in "fiub" or is_columns:
        raise InputError(
            f"read_items: the vectors in {path} are {dtype} of shape {shape}"
            f"{', column by column' if is_columns else ''}; save numbers of shape (rows, features) "
            "row by row (np.ascontiguousarray)."
        )

    def rows() -> Iterator[NDArray[Any]]:
        for start in range(0, shape[0], size):
            n = min(size, shape[0] - start)
            content = member.read(n * shape[1] * dtype.itemsize)
            yield np.frombuffer(content, dtype).reshape(n, shape[1])

    return shape[0], rows()


def _join(
    pieces: Iterator[NDArray[Any] | None], ids: NDArray[Any] | None, labels: NDArray[Any] | None
) -> Iterator[Piece]:
    start = 0
    for rows in pieces:
        part = slice(start, None if rows is None else start + len(rows))
        start = part.stop or 0
        yield Piece(
            rows,
            None if ids is None else ids[part].tolist(),
            None if labels is None else _labels(labels[part]),
        )


def _labels(y: NDArray[Any]) -> list[Any]:
    """Return labels, of which an empty text is none."""
    return [None if isinstance(label, str) and not label else label for label in y.tolist()]
