"""NumPy's files: .npy is one array, mapped into memory; .npz has features, labels and ids."""

import math
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import repeat
from pathlib import Path
from typing import Any

import numpy as np
from numpy.lib import format as npy_format
from numpy.typing import NDArray

from streamhash.errors import InputError
from streamhash.files.columns import Piece, Request, Table, Taken, check_labels
from streamhash.storage import read_array_header, read_member

NPZ_NAMES = {
    "vector": ("X", "features", "vectors"),
    "id": ("ids", "id"),
    "label": ("y", "labels", "label"),
}
CLASSES = ("classes", "topics")  # names of the columns of a 0/1 matrix of labels


def load_npy(path: Path, mmap_mode: Any = None) -> NDArray[Any]:
    """Load an array; what NumPy does not know it would take for a pickle, so look first."""
    with path.open("rb") as file:
        if file.read(6) != b"\x93NUMPY":
            raise ValueError("it does not begin as one")
        file.seek(0)
        shape, _, dtype = _header(file)
        if math.prod(shape) * dtype.itemsize > path.stat().st_size - file.tell():
            raise ValueError("it ends in the middle")
    array: NDArray[Any] = np.load(path, mmap_mode=mmap_mode, allow_pickle=False)
    return array


@contextmanager
def open_npy(request: Request) -> Iterator[Table]:
    """Map features into memory, as they are stored."""
    if request.columns.named():
        raise InputError(
            f"{request.place}: {request.name} is one array, without a column "
            f"{request.columns.named()[0]!r}; pass the labels in a file of their own, labels=FILE."
        )
    X = load_npy(request.path, "r")
    check_features(X.shape, X.dtype, request)
    rows, width = X.shape
    yield Table(request, Taken(), lambda size: array_pieces(X, None, size), rows, width, X)


def array_pieces(X: NDArray[Any], y: NDArray[Any] | None, size: int) -> Iterator[Piece]:
    """Cut arrays into pieces."""
    for start in range(0, len(X), size):
        rows = slice(start, start + size)
        yield Piece(np.array(X[rows]), labels=None if y is None else y[rows])


@contextmanager
def open_npz(request: Request) -> Iterator[Table]:
    """Open an archive: its features are read piece by piece, ids and labels as a whole."""
    with zipfile.ZipFile(request.path) as archive:
        members = {name.removesuffix(".npy"): name for name in archive.namelist()}
        names = {part: request.find(part, [*members], usual) for part, usual in NPZ_NAMES.items()}
        request.matching(request.columns.ignore, [*members])
        x_name, id_name, y_name = (
            name if part in request.parts else None for part, name in names.items()
        )
        if request.columns.metadata:
            raise request.error("has no metadata; use JSON lines or Parquet.")
        if request.columns.features:
            raise request.error("holds the features in one array; name it: Columns(vector='…').")
        if x_name is None and "vector" in request.parts:
            raise request.error(
                f"has no array 'X' or 'features', only {[*members]}; save the features under one "
                "of these names."
            )
        ids = None if id_name is None else read_member(archive, members[id_name])
        y = None if y_name is None else read_member(archive, members[y_name])
        shape = None if x_name is None else _shape(archive, members[x_name], request)
        n = next((len(part) for part in (shape and range(shape[0]), ids, y) if part is not None), 0)
        if ids is not None and len(ids) != n:
            text = f"have {sorted([len(ids), n])} rows; save as many ids as vectors."
            raise request.error(text, at="the arrays of ")
        is_matrix = y is not None and y.ndim == 2
        y = None if y is None else check_labels(y, n, request)
        class_name = next((name for name in CLASSES if name in members), None)
        classes = None
        if class_name is not None and y is not None and is_matrix:
            y, classes = y.reshape(n, -1), read_member(archive, members[class_name]).tolist()
            if len(classes) != y.shape[1]:
                text = f"have {y.shape[1]} columns and {len(classes)} names; save a name for each."
                raise request.error(text, at="the labels in ")

        def pieces(size: int) -> Iterator[Piece]:
            chunks = repeat(None) if x_name is None else _rows(archive, members[x_name], size)
            # Rows before starts: so they are read to the end of the array, where its checksum is.
            for X, start in zip(chunks, range(0, n, size), strict=False):
                part = slice(start, start + size)
                some = None if ids is None else ids[part].tolist()
                yield Piece(X, some, None if y is None else y[part])

        known = {*names.values(), class_name if classes is not None else None}
        ignored = tuple(name for name in members if name not in known)
        taken = Taken(names["id"], () if x_name is None else (x_name,), y_name, ignored=ignored)
        rows, width = shape or (None, None)
        yield Table(request, taken, pieces, rows, width, classes=classes)


def _shape(archive: zipfile.ZipFile, name: str, request: Request) -> tuple[int, int]:
    with archive.open(name) as member:
        shape, _, dtype = read_array_header(member, archive.getinfo(name).file_size, name)
    check_features(shape, dtype, request)
    return shape[0], shape[1]


def _header(member: Any) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    major, _ = npy_format.read_magic(member)
    read = [npy_format.read_array_header_1_0, npy_format.read_array_header_2_0][major > 1]
    shape, by_columns, dtype = read(member)
    if dtype.hasobject:
        raise ValueError("pickled objects")
    return shape, by_columns, dtype


def _rows(archive: zipfile.ZipFile, name: str, size: int) -> Iterator[NDArray[Any]]:
    """Yield the rows of an array piece by piece; one that is stored by columns is read whole."""
    with archive.open(name) as member:
        (n, width), by_columns, dtype = _header(member)
        step = max(1, n if by_columns else size)
        for start in range(0, n, step):
            some = min(step, n - start)
            rows = np.frombuffer(member.read(some * width * dtype.itemsize), dtype)
            rows = rows.reshape(width, some).T if by_columns else rows.reshape(some, width)
            yield from (rows[i : i + size] for i in range(0, some, size))
        member.read(1)  # the end, where zipfile compares the checksum


def check_features(shape: tuple[int, ...], dtype: np.dtype[Any], request: Request) -> None:
    """Refuse what is no matrix of numbers."""
    if len(shape) != 2 or dtype.kind not in "fiub":
        text = f"are {dtype} of shape {shape}; save numbers of shape (rows, features)."
        raise request.error(text, at="the features in ")
