"""A person's own files: features and labels from .npy, .npz, .parquet, .csv and .mat."""

import csv
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np
from numpy.typing import NDArray

from streamhash.errors import FileError, InputError, MissingDataError, StreamhashError
from streamhash.files.columns import as_labels, read_lines
from streamhash.files.csv_table import read_csv
from streamhash.files.mat_table import read_mat
from streamhash.files.parquet_table import read_parquet

__all__ = ["read_labels", "read_table", "reading"]

_NPY, _NPZ = b"\x93NUMPY", b"PK"  # how these files begin

Table = tuple[NDArray[Any], NDArray[Any] | None]


def read_table(
    path: str | Path, *, labels: str | Path | None = None, column: str | int | None = None
) -> Table:
    """Read features X (n, d) and labels y from a file; y is None where there are none.

    - ``.npy``: the features, memory-mapped as they are stored; labels come from ``labels``.
    - ``.npz``: arrays ``X`` and ``y``, or ``features`` and ``labels``; ``column`` names another
      array of labels.
    - ``.csv``: numbers, separated by comma, semicolon or tab, with or without a header row; an
      empty cell is NaN. ``column`` names the labels (a number from 0 if there is no header), else
      a column ``label`` or ``y`` is taken. All other columns are features, in order.
    - ``.parquet`` (needs pyarrow): as ``.csv``; but if there is a column of lists of numbers, then
      that one is the feature matrix, and plain columns beside it are left out.
    - ``.mat`` (needs h5py for MATLAB's format 7.3): fields ``X``, ``features`` or ``pca_feats``
      with ``y`` or ``labels`` of whole numbers; or ``trainCNN``, ``trainLabels``, ``testCNN`` and
      ``testLabels``. ``column`` names another field of labels. Items may be rows or columns: it
      is told from the number of labels.

    Labels are one a row, or a multi-label matrix (n, C) of 0 and 1 in ``.npy`` and ``.npz``
    (in ``.parquet`` a column of lists).
    Features are float32, and as stored in ``.npy``. Pickled objects are never loaded. NaN and
    infinities pass: the hasher judges them.

    Parameters
    ----------
    path : the file
    labels : a file of labels of its own: ``.npy``, or ``.txt`` or ``.csv`` with one a line. Then
        no column of ``path`` is taken for labels.
    column : name of the label column

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "items.csv")
    ...     _ = path.write_text("width,height,label\\n1,2,cat\\n3,4,dog\\n")
    ...     X, y = read_table(path)
    >>> X, y
    (array([[1., 2.], [3., 4.]], dtype=float32), array(['cat', 'dog'], dtype='<U3'))
    """
    path = Path(path)
    if labels is not None and column is not None:
        raise InputError(
            f"read_table: labels={str(labels)!r} and column={column!r} both name the labels; "
            "pass one of them."
        )
    reader = _READERS.get(path.suffix.lower())
    if reader is None:
        raise InputError(
            f"read_table: {path} does not end in .npy, .npz, .parquet, .csv or .mat; save it as "
            "one of these."
        )
    with reading(path):
        X, y = reader(path, None if column is None else str(column), labels is None)
    if X.ndim != 2 or X.dtype.kind not in "fiub":
        raise InputError(
            f"read_table: the features in {path} are {X.dtype} of shape {X.shape}; save numbers "
            "of shape (rows, features)."
        )
    if not X.size:
        raise InputError(f"read_table: {path} is empty, of shape {X.shape}; save at least one row.")
    if labels is not None:
        y = read_labels(Path(labels), len(X))
    elif y is not None:
        y = _check_labels(y, len(X), path)
    return X, y


def _read_npy(path: Path, column: str | None, _find_labels: bool) -> Table:
    if column is not None:
        raise InputError(
            f"read_table: column={column!r}, but {path} is one array without columns; pass the "
            "labels in a file of their own, labels=..."
        )
    _check_beginning(path, _NPY)
    return np.load(path, mmap_mode="r", allow_pickle=False), None


def _read_npz(path: Path, column: str | None, find_labels: bool) -> Table:
    _check_beginning(path, _NPZ)
    # Opened here, as NumPy leaves a broken archive open.
    with path.open("rb") as file, np.load(file, allow_pickle=False) as archive:
        names = list(archive.files)
        x_name = next((name for name in ("X", "features") if name in names), None)
        y_name = column or next((name for name in ("y", "labels") if name in names), None)
        if x_name is None:
            raise InputError(
                f"read_table: {path} has no array 'X' or 'features', only {names}; save the "
                "features under one of these names."
            )
        if column is not None and column not in names:
            raise InputError(
                f"read_table: column={column!r} is not in {path}, which has {names}; pass one of "
                "these."
            )
        X = archive[x_name]
        y = archive[y_name] if find_labels and y_name is not None else None
    return X.astype(np.float32, copy=False) if X.dtype.kind in "fiub" else X, y


def _check_beginning(path: Path, magic: bytes) -> None:
    """Refuse a foreign file here, as NumPy takes whatever it does not know for a pickle."""
    with path.open("rb") as file:
        if file.read(len(magic)) != magic:
            raise ValueError("it does not begin as one")


_READERS: dict[str, Callable[[Path, str | None, bool], Table]] = {
    ".npy": _read_npy,
    ".npz": _read_npz,
    ".parquet": read_parquet,
    ".csv": read_csv,
    ".mat": read_mat,
}


def read_labels(path: Path, n: int) -> NDArray[Any]:
    """Read the labels of ``n`` rows from a file of their own."""
    return _check_labels(_read_labels(path, n), n, path)


def _read_labels(path: Path, n: int) -> NDArray[Any]:
    suffix = path.suffix.lower()
    if suffix not in (".npy", ".txt", ".csv"):
        raise InputError(
            f"read_table: labels={str(path)!r} does not end in .npy, .txt or .csv; save one label "
            "a line."
        )
    with reading(path):
        if suffix == ".npy":
            _check_beginning(path, _NPY)
            array: NDArray[Any] = np.load(path, allow_pickle=False)
            return array
        lines = read_lines(path)
        if suffix == ".csv" and len(lines) == n + 1 and _is_title(lines[0], lines[1:]):
            lines = lines[1:]
        return as_labels(lines, path)


def _is_title(first: str, rest: list[str]) -> bool:
    """Tell a header from a label: it is no number, and the text appears nowhere else."""
    return first not in rest and not first.lstrip("+-").isdigit()


def _check_labels(y: NDArray[Any], n: int, path: Path) -> NDArray[Any]:
    if y.ndim == 2 and y.shape[1] == 1:
        y = y[:, 0]
    if y.ndim not in (1, 2) or y.dtype.kind not in "fiubUS":
        raise InputError(
            f"read_table: the labels in {path} are {y.dtype} of shape {y.shape}; save (n,) labels "
            "or an (n, C) matrix of 0 and 1."
        )
    if len(y) != n:
        raise InputError(
            f"read_table: {path} has {len(y)} labels for {n} rows of features; save one for each."
        )
    if y.ndim == 2:
        if not np.isin(y, (0, 1)).all():
            raise InputError(
                f"read_table: the labels in {path} have shape {y.shape} and values other than 0 "
                "and 1; save (n,) labels or an (n, C) matrix of 0 and 1."
            )
        y = y.astype(np.uint8)
    return y


@contextmanager
def reading(path: Path) -> Iterator[None]:
    """Turn whatever a reader meets in a broken file into one FileError."""
    if not path.exists():
        raise MissingDataError(f"read_table: there is no file {path}; check the path.")
    try:
        yield
    except StreamhashError:
        raise
    # RuntimeError: an encrypted or unsupported .npz. MemoryError: a header that promises too much.
    except (
        OSError,
        EOFError,
        ValueError,
        RuntimeError,
        MemoryError,
        BadZipFile,
        zlib.error,
        csv.Error,
    ) as error:
        reason = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        if "pickle" in reason or "Python objects" in reason:  # NumPy's two wordings
            raise FileError(
                f"read_table: {path} holds pickled Python objects, which are never loaded, as "
                "they can run code; save arrays of numbers (or text, for labels)."
            ) from error
        raise FileError(
            f"read_table: {path} cannot be read as {path.suffix} ({reason}); save it again, or "
            "copy it again if it came from elsewhere."
        ) from error
