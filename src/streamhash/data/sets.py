"""Data sets by name or by path."""

import hashlib
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from streamhash.data.cards import CARDS, FILES, Card, missing
from streamhash.data.download import fetch as fetch_set
from streamhash.data.folders import find_files
from streamhash.data.mnist import read_mnist
from streamhash.data.synthetic import SyntheticStream
from streamhash.data.tables import read_table
from streamhash.errors import FileError, InputError, MissingDataError

__all__ = ["DataSet", "available", "load_data"]

Request = tuple[str, str | None, str | int | None]  # name or path, labels, column


@dataclass(frozen=True, eq=False)
class DataSet:
    """Features and labels with their card.

    Attributes
    ----------
    name : str
    X : (n, d) float32
    y : (n,) labels, or (n, C) matrix of 0 and 1
    card : where the data come from
    request : what ``load_data`` was asked for; None if the arrays came from elsewhere. A set with
        a request travels to another process as the request alone, and is loaded there.
    """

    name: str
    X: NDArray[np.float32] = field(repr=False)
    y: NDArray[Any] = field(repr=False)
    card: Card
    request: Request | None = field(default=None, repr=False)

    def __reduce__(self) -> tuple[Any, tuple[Any, ...]]:
        if self.request is not None:
            return _load_again, (self.request,)
        return DataSet, (self.name, self.X, self.y, self.card)


def load_data(
    name: str | Path,
    *,
    fetch: bool = False,
    labels: str | Path | None = None,
    column: str | int | None = None,
) -> DataSet:
    """Load a data set by name, or a person's own file with labels by path.

    Parameters
    ----------
    name : ``digits``, ``mnist``, ``cifar10-features``, ``miniplaces-features`` or ``synthetic``, or
        the path of a ``.npy``, ``.npz``, ``.parquet`` or ``.csv`` file. Named sets are looked for
        in the folder ``STREAMHASH_DATA``, then in the cache, and checked against their checksums.
    fetch : True downloads a public set that is missing
    labels, column : where a file's labels are, see :func:`read_table`

    >>> digits = load_data("digits")
    >>> digits.X.shape, digits.y.shape, digits.card.licence
    ((1797, 64), (1797,), 'CC BY 4.0')
    """
    if name not in CARDS:
        return _load_file(Path(name), labels, column)
    name = str(name)
    request = (name, None, None)
    if labels is not None or column is not None:
        raise InputError(
            f"load_data: labels and column are for files, and {name!r} has its own labels; leave "
            "them out."
        )
    if name == "digits":
        X, y = _digits()
        return DataSet(name, X, y, CARDS[name], request)
    if name == "synthetic":
        return DataSet(name, *SyntheticStream().take(CARDS[name].rows), CARDS[name], request)
    paths = find_files(name, FILES[name])
    if paths is None and fetch:
        fetch_set(name)
        paths = find_files(name, FILES[name])
    if paths is None:
        raise missing("load_data", name)
    card = replace(CARDS[name], where=str(paths[0].parent))
    X, y = read_mnist(paths) if name == "mnist" else _read_features(paths[0], card)
    return DataSet(name, X, y, card, request)


@lru_cache(maxsize=1)  # a worker meets one set many times
def _load_again(request: Request) -> DataSet:
    name, labels, column = request
    return load_data(name, labels=labels, column=column)


def available() -> list[Card]:
    """Return the card of every named set; ``card.here`` says if it is on this machine.

    >>> [card.name for card in available()]
    ['digits', 'mnist', 'cifar10-features', 'miniplaces-features', 'synthetic']
    """
    return [replace(card, where=_where(card)) for card in CARDS.values()]


def _where(card: Card) -> str | None:
    if card.name not in FILES:
        return card.where
    paths = find_files(card.name, FILES[card.name])
    return None if paths is None else str(paths[0].parent)


def _digits() -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    from sklearn.datasets import load_digits

    pixels, y = load_digits(return_X_y=True)
    return (pixels / 16).astype(np.float32), y.astype(np.int64)


def _read_features(path: Path, card: Card) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    try:
        with path.open("rb") as file:
            checksum = f"sha256:{hashlib.file_digest(file, 'sha256').hexdigest()}"
    except OSError as error:
        raise FileError(f"load_data: {path} cannot be read ({error}); check its rights.") from error
    if checksum != card.checksum:
        raise FileError(
            f"load_data: {path} is not the {card.name} file, its checksum is {checksum} instead of "
            f"{card.checksum}; copy it again, or load your own file by its path."
        )
    X, y = read_table(path)
    assert y is not None  # the checksum says that it is there
    return X, y.astype(np.int64)


def _load_file(path: Path, labels: str | Path | None, column: str | int | None) -> DataSet:
    if not path.suffix and not path.exists():
        raise MissingDataError(
            f"load_data: {str(path)!r} is neither a data set ({', '.join(CARDS)}) nor a file; pass "
            "one of these names, or the path of a .npy, .npz, .parquet or .csv file."
        )
    X, y = read_table(path, labels=labels, column=column)
    if y is None:
        raise InputError(
            f"load_data: {path} has no labels; pass labels= with a file of labels, or column= with "
            "the name of the label column."
        )
    with np.errstate(over="ignore"):  # beyond float32: infinite, and the hasher's to judge
        X = X.astype(np.float32, copy=False)
    classes = y.shape[1] if y.ndim == 2 else len(np.unique(y))
    card = Card(
        path.stem,
        rows=X.shape[0],
        features=X.shape[1],
        classes=classes,
        source=path.name,
        licence="that of the file's owner",
        note="read from a file",
        where=str(path.parent),
    )
    request = (
        str(path.absolute()),
        None if labels is None else str(Path(labels).absolute()),
        column,
    )
    return DataSet(path.stem, X, y, card, request)
