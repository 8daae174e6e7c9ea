"""Data sets by name or by path."""

from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from streamhash.errors import FileError, InputError, MissingDataError
from streamhash.files import read_table
from streamhash.lab.datasets.cards import CARDS, FILES, Card, missing
from streamhash.lab.datasets.converted import CONVERTED, convert
from streamhash.lab.datasets.download import fetch as fetch_set
from streamhash.lab.datasets.folders import find_files
from streamhash.lab.datasets.generated import GENERATED, generate
from streamhash.lab.datasets.mnist import read_mnist
from streamhash.lab.datasets.stored import checksum

__all__ = ["DataSet", "available", "is_named", "load_data"]

# Name or path, labels, column, rows.
Request = tuple[str, str | None, str | int | None, int | None]


@dataclass(frozen=True, eq=False)
class DataSet:
    """Features and labels with their card.

    Attributes
    ----------
    name : str
    X : (n, d) float32; of a large set a read-only memory map
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
    rows: int | None = None,
) -> DataSet:
    """Load a data set by name, or a person's own file with labels by path.

    Parameters
    ----------
    name : a set that :func:`available` lists, such as ``mnist``, or the path of a ``.npy``,
        ``.npz``, ``.parquet``, ``.csv`` or ``.mat`` file. Named sets are looked for in the folder
        ``STREAMHASH_DATA``, then in the cache, and checked against their checksums. Large ones
        are made or converted at their first use, into the cache, and memory-mapped.
    fetch : True downloads a public set that is missing
    labels, column : where a file's labels are, see :func:`read_table`
    rows : only so many of the first rows of ``synthetic`` or ``places205-synthetic``; None = all

    >>> digits = load_data("digits")
    >>> digits.X.shape, digits.y.shape, digits.card.licence
    ((1797, 64), (1797,), 'CC BY 4.0')
    """
    if rows is not None and name not in GENERATED:
        raise InputError(
            f"load_data: rows is for sets that are made up ({', '.join(GENERATED)}), and "
            f"{str(name)!r} is not; leave it out, and take a part of X and y."
        )
    if name not in CARDS:
        return _load_file(Path(name), labels, column)
    name = str(name)
    request = (name, None, None, rows)
    if labels is not None or column is not None:
        raise InputError(
            f"load_data: labels and column are for files, and {name!r} has its own labels; leave "
            "them out."
        )
    if name == "digits":
        X, y = _digits()
        return DataSet(name, X, y, CARDS[name], request)
    if name in GENERATED:
        X, y = generate(name, rows, CARDS[name].rows)
        return DataSet(name, X, y, replace(CARDS[name], rows=len(X)), request)
    paths = find_files(name, FILES[name])
    if paths is None and fetch:
        fetch_set(name)
        paths = find_files(name, FILES[name])
    if paths is None:
        raise missing("load_data", name)
    card = replace(CARDS[name], where=str(paths[0].parent))
    if name in CONVERTED:
        return _load_converted(paths[0], card, request)
    X, y = read_mnist(paths) if name == "mnist" else _read_features(paths[0], card)
    return DataSet(name, X, y, card, request)


@lru_cache(maxsize=1)  # a worker meets one set many times
def _load_again(request: Request) -> DataSet:
    name, labels, column, rows = request
    return load_data(name, labels=labels, column=column, rows=rows)


def is_named(name: str | Path) -> bool:
    """Whether a name is that of a data set, and there is no file of that name.

    >>> is_named("digits"), is_named("items.csv")
    (True, False)
    """
    return name in CARDS and not Path(name).exists()


def available() -> list[Card]:
    """Return the card of every named set; ``card.here`` says if it is on this machine.

    >>> [card.name for card in available()]
    ['digits', 'mnist', 'cifar10-features', 'cifar10-vgg16', 'cifar10-images',
     'miniplaces-features', 'places205', 'places205-synthetic', 'synthetic']
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


def _load_converted(path: Path, card: Card, request: Request) -> DataSet:
    X, y, about = convert(card.name, path)
    card = replace(
        card,
        rows=len(X),
        classes=len(np.unique(y)),
        checksum=card.checksum or about["checksum"],  # of the file as read, if none is known
    )
    return DataSet(card.name, X, y, card, request)


def _read_features(path: Path, card: Card) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    found = checksum(path)
    if found != card.checksum:
        raise FileError(
            f"load_data: {path} is not the {card.name} file, its checksum is {found} instead of "
            f"{card.checksum}; copy it again, or load your own file by its path."
        )
    X, y = read_table(path)
    assert y is not None  # the checksum says that it is there
    return X, y.astype(np.int64)


def _load_file(path: Path, labels: str | Path | None, column: str | int | None) -> DataSet:
    if not path.suffix and not path.exists():
        raise MissingDataError(
            f"load_data: {str(path)!r} is neither a data set ({', '.join(CARDS)}) nor a file; pass "
            "one of these names, or the path of a .npy, .npz, .parquet, .csv or .mat file."
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
        None,
    )
    return DataSet(path.stem, X, y, card, request)
