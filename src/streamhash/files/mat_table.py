"""Features and labels in MATLAB files: which fields they are, and which way they lie."""

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from streamhash.errors import FileError, InputError
from streamhash.files.mat_file import MatFile, open_mat

__all__ = ["Part", "mat_parts", "read_mat"]

# The fields that are known: features and labels, of the training rows first.
_TRAIN_AND_TEST = (("trainCNN", "trainLabels"), ("testCNN", "testLabels"))
_FEATURES, _LABELS = ("X", "features", "pca_feats"), ("y", "labels")
_WANTED = f"{' or '.join(_FEATURES)} with {' or '.join(_LABELS)}, or " + ", ".join(
    name for pair in _TRAIN_AND_TEST for name in pair
)


class Part(NamedTuple):
    """A field of features with its labels (None = it has none), (n, d) once it is turned."""

    name: str
    turned: bool
    shape: tuple[int, int]
    y: NDArray[Any] | None


def read_mat(
    path: Path, column: str | None, find_labels: bool
) -> tuple[NDArray[Any], NDArray[Any] | None]:
    """Read a .mat as float32, chunk by chunk; ``find_labels`` False leaves its labels alone."""
    with open_mat(path, "read_table") as file:
        parts = mat_parts(file, column, find_labels)
        X = np.empty((sum(part.shape[0] for part in parts), parts[0].shape[1]), np.float32)
        done = 0
        # Beyond float32: infinite, and the hasher's to judge.
        with np.errstate(over="ignore", invalid="ignore"):
            for part in parts:
                for block in file.chunks(part.name, part.turned):
                    X[done : done + len(block)] = block
                    done += len(block)
    labels = [part.y for part in parts if part.y is not None]
    return X, np.concatenate(labels) if labels else None


def mat_parts(file: MatFile, column: str | None = None, find_labels: bool = True) -> list[Part]:
    """Return the fields of features, with labels read: one, or training and test rows."""
    found, at = file.shapes, f"{file.place}: {file.path}"
    if column is not None and column not in found:
        raise InputError(
            f"{file.place}: column={column!r} is not in {file.path}, which has {file.fields()}; "
            "pass one of these."
        )
    features = next((name for name in _FEATURES if name in found and name != column), None)
    pairs: list[tuple[str, str | None]]
    if features is not None:
        labels = column or next((name for name in _LABELS if name in found), None)
        pairs = [(features, labels)]
    elif column is None and all(name in found for pair in _TRAIN_AND_TEST for name in pair):
        pairs = list(_TRAIN_AND_TEST)
    else:
        raise FileError(
            f"{at} has {file.fields()}, where {_WANTED} are wanted; save it with these fields."
        )
    parts = [_part(file, x, y if find_labels else None) for x, y in pairs]
    widths = {part.shape[1] for part in parts}
    if len(widths) > 1:
        raise FileError(
            f"{at} has {file.fields()}, of several widths; save fields of the same features."
        )
    return parts


def _part(file: MatFile, x: str, y: str | None) -> Part:
    """Read the labels, and tell from their number which way the features lie."""
    shape, at = file.shapes[x], f"{file.place}: {file.path}"
    if len(shape) != 2 or 0 in shape:
        raise FileError(f"{at} has {file.fields()}; save {x} as a matrix with at least one row.")
    if y is None:
        return Part(x, False, (shape[0], shape[1]), None)
    labels = file.shapes[y]
    is_vector = len(labels) == 2 and 1 in labels
    # As MATLAB's users have it, rows are items; then all other ways.
    ways = [(False, False), (True, True), (True, False), (False, True)]
    for turned, labels_turned in ways:
        if is_vector:
            labels_turned = labels[1] != 1
        if len(labels) == 2 and shape[turned] == labels[labels_turned]:
            values = _as_labels(file, y, labels_turned)
            return Part(x, turned, (shape[turned], shape[not turned]), values)
    raise FileError(
        f"{at} has {file.fields()}; save as many labels in {y} as there are rows in {x}."
    )


def _as_labels(file: MatFile, name: str, turned: bool) -> NDArray[Any]:
    """Return MATLAB's doubles as whole numbers: (n,) labels, or an (n, C) matrix."""
    values = np.concatenate(list(file.chunks(name, turned)))
    with np.errstate(invalid="ignore"):  # NaN and infinity are refused below
        numbers = values.astype(np.int64)
    if (numbers != values).any():
        raise FileError(
            f"{file.place}: {file.path} has labels in {name} that are not whole numbers; number "
            "the classes."
        )
    return numbers[:, 0] if numbers.shape[1] == 1 else numbers
