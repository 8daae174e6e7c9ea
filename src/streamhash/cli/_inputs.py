"""Files that verbs read: features with labels, and codes."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from streamhash.base import OnlineHasher
from streamhash.codes import Codes, code_bytes
from streamhash.files import read_table
from streamhash.lab.datasets import is_named, load_data

__all__ = ["encode_pieces", "read_codes", "read_input"]

PIECE = 8192  # rows encoded between two steps of the progress bar


def read_input(
    name: str, labels: Path | None = None, label_column: str | None = None
) -> tuple[NDArray[Any], NDArray[Any] | None]:
    """Read features and labels of a file, or of a data set by its name."""
    if is_named(name):
        data = load_data(name, labels=labels, column=label_column)
        return data.X, data.y
    return read_table(name, labels=labels, column=label_column)


def read_codes(model: OnlineHasher, name: str, label_column: str | None = None) -> Codes:
    """Read codes, or read features and encode them.

    A ``.npy`` of uint8 as wide as the model's codes holds codes; all else are features.
    """
    X, _ = read_input(name, label_column=label_column)
    if name.endswith(".npy") and X.dtype == np.uint8 and X.shape[1] == code_bytes(model.n_bits):
        return np.array(X)
    return np.concatenate(list(encode_pieces(model, X)))


def encode_pieces(model: OnlineHasher, X: NDArray[Any]) -> Iterator[Codes]:
    """Encode rows piece by piece, so that a mapped file is never in memory as a whole."""
    return (model.transform(X[start : start + PIECE]) for start in range(0, len(X), PIECE))
