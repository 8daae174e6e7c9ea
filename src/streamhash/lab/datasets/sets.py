"""Data sets by name, and people's own files by path."""

import hashlib
import logging
import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from streamhash.errors import FileError, InputError, MissingDataError
from streamhash.files import open_table, read_table
from streamhash.lab.datasets.cache import load_stored, store
from streamhash.lab.datasets.cards import CARDS, Card, cache_folder, find_files, missing
from streamhash.lab.datasets.mnist import fetch_mnist, read_mnist
from streamhash.lab.datasets.streams import BLOCK_ROWS, PlacesLikeStream, SyntheticStream
from streamhash.parameters import Maybe, Whole, check_parameters

__all__ = ["DataSet", "Request", "fetch", "load_data"]

GENERATED: dict[str, SyntheticStream | PlacesLikeStream] = {
    "synthetic": SyntheticStream(random_state=0),
    "places205-synthetic": PlacesLikeStream(random_state=0),
}
IN_MEMORY_ROWS = 100_000  # of a made-up set that is drawn anew each time
CHUNK_ROWS = 16 * BLOCK_ROWS  # in memory while a larger set is written into the cache

log = logging.getLogger("streamhash.lab.datasets")


class Request(NamedTuple):
    """What ``load_data`` was asked for, with absolute paths."""

    name: str  # of a data set, or the path of a file
    labels: str | None = None  # the file of labels
    column: str | int | None = None  # the column of labels
    rows: int | None = None


@dataclass(frozen=True, eq=False)
class DataSet:
    """Features and labels with their card.

    Attributes
    ----------
    name : str
    X : (n, d) float32; of a large set a read-only memory map
    y : (n,) labels, or (n, C) matrix of 0 and 1
    card : where the data come from
    request : what ``load_data`` was asked for (``name``, ``labels``, ``column``, ``rows``); None if
        the arrays came from elsewhere. A set with a request travels to another process as the
        request alone, and is loaded there.
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
    name : a set that :func:`available` lists, such as ``mnist``, or the path of a file that
        :func:`streamhash.files.read_table` reads. Named sets are looked for in the folder
        ``STREAMHASH_DATA``, then in the cache, and checked against their checksums. Large ones
        are made or converted at their first use, into the cache, and memory-mapped.
    fetch : True downloads a public set that is missing
    labels, column : where a file's labels are
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
    if labels is not None or column is not None:
        raise InputError(
            f"load_data: labels and column are for files, and {name!r} has its own labels; leave "
            "them out."
        )
    X, y, card = _load_named(CARDS[name], fetch, rows)
    return DataSet(name, X, y, card, Request(name, rows=rows))


@lru_cache(maxsize=1)  # a worker meets one set many times
def _load_again(request: Request) -> DataSet:
    name, labels, column, rows = request
    return load_data(name, labels=labels, column=column, rows=rows)


def fetch(name: str, *, mirrors: Sequence[str] | None = None, timeout: float = 30.0) -> Path:
    """Download a public data set into the cache and return its folder.

    Each file is checked (size and MD5 of its uncompressed bytes) before it is put in place, so
    that the cache never holds a part of a file. What is there already is not fetched again.

    Parameters
    ----------
    name : ``"mnist"``, the set with a public download
    mirrors : addresses to try in turn; None = the known public ones
    timeout : seconds without an answer until the next mirror is tried
    """
    if name not in CARDS:
        raise InputError(f"fetch: {name!r} is not a data set; pass one of {', '.join(CARDS)}.")
    if CARDS[name].where is not None:
        raise InputError(f"fetch: {name!r} needs no download; use load_data({name!r}).")
    if not CARDS[name].is_public:
        raise missing("fetch", name)
    return fetch_mnist(cache_folder() / name, mirrors, timeout)


Loaded = tuple[NDArray[np.float32], NDArray[Any], Card]


def _load_named(card: Card, may_fetch: bool, rows: int | None) -> Loaded:
    if card.name == "digits":
        from sklearn.datasets import load_digits

        pixels, digits = load_digits(return_X_y=True)
        return (pixels / 16).astype(np.float32), digits.astype(np.int64), card
    if card.name in GENERATED:
        X, y = _generate(card.name, card.rows, rows)
        return X, y, replace(card, rows=len(X))
    paths = find_files(card)
    if paths is None and may_fetch:
        fetch(card.name)
        paths = find_files(card)
    if paths is None:
        raise missing("load_data", card.name)
    card = replace(card, where=str(paths[0].parent))
    if card.name == "mnist":
        return *read_mnist(paths), card
    return _convert(paths[0], card) if paths[0].suffix == ".mat" else _read(paths[0], card)


def _read(path: Path, card: Card) -> Loaded:
    """Read a file of features whose checksum is known."""
    found = _checksum(path)
    if found != card.checksum:
        raise FileError(
            f"load_data: {path} is not the {card.name} file, its checksum is {found} instead of "
            f"{card.checksum}; copy it again, or load your own file by its path."
        )
    X, y = read_table(path)
    assert y is not None  # the checksum says that it is there
    return X, y.astype(np.int64), card


def _checksum(path: Path) -> str:
    """Return the SHA-256 of a file, as cards have it."""
    try:
        with path.open("rb") as file:
            return f"sha256:{hashlib.file_digest(file, 'sha256').hexdigest()}"
    except OSError as error:
        raise FileError(f"load_data: {path} cannot be read ({error}); check its rights.") from error


def _convert(path: Path, card: Card) -> Loaded:
    """Read a large file from the cache, where it is written at its first use."""
    status = path.stat()
    known = {"file": str(path.resolve()), "bytes": status.st_size, "modified": status.st_mtime_ns}
    folder = f"{card.name}/{hashlib.sha256(repr(known).encode()).hexdigest()[:12]}"
    found = load_stored(folder)
    if found is None:
        log.warning(
            "streamhash: converting %s for quick use, into %s (only the first time)",
            *(path.name, cache_folder() / card.name),
        )
        with open_table(path, place="load_data") as table:
            pieces = table.pieces(CHUNK_ROWS)
            first = next(pieces)
            if table.width != card.features or first.labels is None or first.labels.ndim > 1:
                raise FileError(
                    f"load_data: {path} is not the {card.name} file, it has {table.fields} where "
                    f"{card.features} features with a label a row are wanted; copy it again, or "
                    "load your own file by its path."
                )
            chunks: Any = ((piece.vectors, piece.labels) for piece in chain([first], pieces))
            about = {**known, "checksum": _checksum(path)}
            found = store(folder, (table.rows or 0, table.width), chunks, about)
    X, y, facts = found
    checksum = card.checksum or facts["checksum"]  # of the file as read, if none is known
    return X, y, replace(card, rows=len(X), classes=len(np.unique(y)), checksum=checksum)


def _generate(name: str, most: int, rows: int | None) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return the first rows of a made-up set (None = all).

    A set of many rows is written into the cache at its first use and memory-mapped. A shorter one
    is then a part of it.
    """
    check_parameters("load_data", {"rows": rows}, {"rows": Maybe(Whole(1))})
    stream, rows = GENERATED[name], most if rows is None else rows
    if rows > most:
        raise InputError(
            f"load_data: rows={rows} is more than the {most} that {name!r} has; pass at most as "
            f"many, or use {type(stream).__name__}, which has no end."
        )
    if most <= IN_MEMORY_ROWS:
        return stream.take(rows)
    # The first rows tell apart what other versions of this code or of NumPy would draw.
    X, y = stream.take(BLOCK_ROWS)
    made_by = hashlib.sha256(X.tobytes() + y.tobytes()).hexdigest()[:12]
    n = next((n for n in _stored_sizes(name, made_by) if n >= rows), None)
    found = None if n is None else load_stored(f"{name}/{n}-rows-{made_by}")
    if found is None:
        log.warning(
            "streamhash: making %s, %s rows, in %s (only the first time)",
            *(name, f"{rows:,}", cache_folder() / name),
        )
        chunks, about = stream.pieces(rows, CHUNK_ROWS), {"made_by": repr(stream)}
        found = store(f"{name}/{rows}-rows-{made_by}", (rows, X.shape[1]), chunks, about)
    return found[0][:rows], found[1][:rows]


def _stored_sizes(name: str, made_by: str) -> list[int]:
    """Return how many rows each set in the cache has that was made by the same code."""
    pattern = re.compile(rf"(\d+)-rows-{made_by}")
    found = (pattern.fullmatch(path.name) for path in (cache_folder() / name).glob("*-rows-*"))
    return sorted(int(match[1]) for match in found if match)


def _load_file(path: Path, labels: str | Path | None, column: str | int | None) -> DataSet:
    if not path.suffix and not path.exists():
        raise MissingDataError(
            f"load_data: {str(path)!r} is neither a data set ({', '.join(CARDS)}) nor a file; pass "
            "one of these names, or the path of a .npy, .npz, .parquet, .csv, .jsonl or .mat file."
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
    licence, note, where = "that of the file's owner", "read from a file", str(path.parent)
    n, width = X.shape
    card = Card(path.stem, n, width, classes, path.name, licence, note, where=where)
    labels = None if labels is None else str(Path(labels).absolute())
    return DataSet(path.stem, X, y, card, Request(str(path.absolute()), labels, column))
