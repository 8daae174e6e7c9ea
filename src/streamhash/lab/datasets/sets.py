"""Data sets by name, people's own files by path, and the protocol of the field.

The protocol says who asks, what is searched, and what is learned from: queries, database and stream
are split by :func:`split`, :func:`split_unseen` and :func:`split_by_time`; features are centred and
scaled by :func:`centre_unit`; :func:`pieces` makes a stream of arrays.
"""

import hashlib
import logging
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial
from itertools import chain
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from streamhash.errors import FileError, InputError, MissingDataError
from streamhash.files import Columns, open_table, read_table, read_whole
from streamhash.lab.datasets.cache import load_stored, store
from streamhash.lab.datasets.cards import CARDS, Card, cache_folder, find_files, missing
from streamhash.lab.datasets.download import download_unknown
from streamhash.lab.datasets.mnist import fetch_mnist, read_mnist
from streamhash.lab.datasets.streams import (
    BLOCK_ROWS,
    LongTailStream,
    PlacesLikeStream,
    SyntheticStream,
)
from streamhash.labels import check_labels
from streamhash.optional import imported_later
from streamhash.parameters import Choice, Maybe, Number, Rule, Whole, check_parameters

GENERATED: dict[str, SyntheticStream | PlacesLikeStream | LongTailStream] = {
    "synthetic": SyntheticStream(random_state=0),
    "places205-synthetic": PlacesLikeStream(random_state=0),
    "long-tail": LongTailStream(random_state=0),
}
IN_MEMORY_ROWS = 100_000  # of a made-up set that is drawn anew each time
CHUNK_ROWS = 16 * BLOCK_ROWS  # in memory while a larger set is written into the cache

ROWS_IN_FLOAT64 = 4096  # at a time, while means and lengths are taken
SPLIT_RULES: dict[str, Rule] = {
    "queries_per_class": Whole(1),
    "query_share": Maybe(Number(above=0, at_most=0.5)),
    "stream": Maybe(Whole(1)),
    "random_state": Maybe(Whole(0)),
}

Rows = NDArray[np.int64]

log = logging.getLogger("streamhash.lab.datasets")


class Request(NamedTuple):
    """What ``load_data`` was asked for, with absolute paths."""

    name: str  # of a data set, or the path of a file
    labels: str | None = None  # the file of labels
    column: str | int | None = None  # the column of labels
    rows: int | None = None
    columns: Columns = Columns()


@dataclass(frozen=True, eq=False)
class DataSet:
    """Features and labels with their card.

    Attributes
    ----------
    name : str
    X : (n, d) float32; of a large set a read-only memory map
    y : (n,) labels, or (n, C) matrix of 0 and 1
    card : where the data come from
    request : what ``load_data`` was asked for (``name``, ``labels``, ``column``, ``rows``,
        ``columns``); None if the arrays came from elsewhere. A set with a request travels to
        another process as the request alone, and is loaded there.
    stream_labels : labels as a stream gives them, some of them wrong, shaped as y; None if they are
        those in y. They are learned from, and y is judged by.
    """

    name: str
    X: NDArray[np.float32] = field(repr=False)
    y: NDArray[Any] = field(repr=False)
    card: Card
    request: Request | None = field(default=None, repr=False)
    stream_labels: NDArray[Any] | None = field(default=None, repr=False)

    def __reduce__(self) -> tuple[Any, tuple[Any, ...]]:
        if self.request is not None:
            return _load_again, (self.request,)
        return DataSet, (self.name, self.X, self.y, self.card, None, self.stream_labels)


def load_data(
    name: str | Path,
    *,
    fetch: bool = False,
    labels: str | Path | None = None,
    column: str | int | None = None,
    rows: int | None = None,
    columns: Columns = Columns(),  # noqa: B008  it cannot change
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
    rows : only so many of the first rows of a set that is made up, as ``synthetic``; None = all
    columns : the other columns of a file: ``Columns(features="x*")``, ``Columns(vector="emb")``

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
        return _load_file(Path(name), labels, column, columns)
    name = str(name)
    if labels is not None or column is not None or columns.named():
        raise InputError(
            f"load_data: labels and columns are for files, and {name!r} has its own labels; leave "
            "them out."
        )
    X, y, card = _load_named(CARDS[name], fetch, rows)
    made = GENERATED.get(name)
    labels_given = made.labels(len(X)) if isinstance(made, LongTailStream) else None
    return DataSet(name, X, y, card, Request(name, rows=rows), labels_given)


@lru_cache(maxsize=1)  # a worker meets one set many times
def _load_again(request: Request) -> DataSet:
    name, labels, column, rows, columns = request
    return load_data(name, labels=labels, column=column, rows=rows, columns=columns)


def fetch(name: str, *, mirrors: Sequence[str] | None = None, timeout: float = 30.0) -> Path:
    """Download a public data set into the cache and return its folder.

    Each file is checked (size and MD5 of its uncompressed bytes) before it is put in place, so
    that the cache never holds a part of a file. What is there already is not fetched again. No
    checksum is known of the features of the papers' authors, ``cifar10-vgg16`` and ``places205``:
    of these the length and the layout are checked, and the card of the loaded set has the checksum
    of what came.

    Parameters
    ----------
    name : ``"mnist"``, ``"cifar10-vgg16"`` or ``"places205"``, the sets with a public download
    mirrors : addresses to try in turn; None = the known public ones
    timeout : seconds without an answer until the next mirror is tried
    """
    if name not in CARDS:
        raise InputError(f"fetch: {name!r} is not a data set; pass one of {', '.join(CARDS)}.")
    if CARDS[name].where is not None:
        raise InputError(f"fetch: {name!r} needs no download; use load_data({name!r}).")
    if not CARDS[name].is_public:
        raise missing("fetch", name)
    folder, card = cache_folder() / name, CARDS[name]
    if name == "mnist":
        return fetch_mnist(folder, mirrors, timeout)
    download_unknown(
        folder / card.files[0],
        card.mirrors if mirrors is None else mirrors,
        partial(_check_layout, card=card),
        timeout=timeout,
        otherwise="get the file elsewhere and set STREAMHASH_DATA to its folder",
    )
    return folder


Loaded = tuple[NDArray[np.float32], NDArray[Any], Card]


def _load_named(card: Card, may_fetch: bool, rows: int | None) -> Loaded:
    if card.name == "digits":
        with imported_later("scipy.stats"):
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
    columns, parts = Columns(label=card.label_column), ("vector", "label")
    read = read_whole(path, columns=columns, parts=parts, place="load_data", log_columns=False)
    X, y = read.vectors, read.labels
    assert X is not None  # the checksum says that they are there
    assert y is not None
    return X, y if y.ndim == 2 else y.astype(np.int64), card


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
        with open_table(path, place="load_data", log_columns=False) as table:
            pieces = table.pieces(CHUNK_ROWS)
            first = next(pieces)
            _refuse_other(path, table, first, card)
            chunks: Any = ((piece.vectors, piece.labels) for piece in chain([first], pieces))
            about = {**known, "checksum": _checksum(path)}
            found = store(folder, (table.rows or 0, card.features), chunks, about)
    X, y, facts = found
    checksum = card.checksum or facts["checksum"]  # of the file as read, if none is known
    return X, y, replace(card, rows=len(X), classes=len(np.unique(y)), checksum=checksum)


def _check_layout(path: Path, card: Card) -> None:
    """Refuse a file that does not hold features and labels as those of a set do."""
    with open_table(path, format="mat", place="fetch", log_columns=False) as table:
        _refuse_other(path, table, next(table.pieces(CHUNK_ROWS)), card)


def _refuse_other(path: Path, table: Any, first: Any, card: Card) -> None:
    if table.width != card.features or first.labels is None or first.labels.ndim > 1:
        raise FileError(
            f"load_data: {path} is not the {card.name} file, it has {table.fields} where "
            f"{card.features} features with a label a row are wanted; copy it again, or "
            "load your own file by its path."
        )


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


def _load_file(
    path: Path, labels: str | Path | None, column: str | int | None, columns: Columns
) -> DataSet:
    if not path.suffix and not path.exists():
        raise MissingDataError(
            f"load_data: {str(path)!r} is neither a data set ({', '.join(CARDS)}) nor a file; pass "
            "one of these names, or the path of a .npy, .npz, .parquet, .csv, .jsonl or .mat file."
        )
    X, y = read_table(path, labels=labels, column=column, columns=columns)
    if y is None:
        raise InputError(
            f"load_data: {path} has no labels; pass labels=FILE with a file of labels, or "
            "column=NAME with the label column."
        )
    with np.errstate(over="ignore"):  # beyond float32: infinite, and the hasher's to judge
        X = X.astype(np.float32, copy=False)
    classes = y.shape[1] if y.ndim == 2 else len(np.unique(y))
    licence, note, where = "that of the file's owner", "read from a file", str(path.parent)
    n, width = X.shape
    card = Card(path.stem, n, width, classes, path.name, licence, note, where=where)
    labels = None if labels is None else str(Path(labels).absolute())
    return DataSet(
        path.stem, X, y, card, Request(str(path.absolute()), labels, column, None, columns)
    )


@dataclass(frozen=True, eq=False)
class Split:
    """Row numbers of one split.

    Attributes
    ----------
    queries : (n_queries,) the rows that ask
    database : (n_database,) the rows that are searched, in random order
    stream : (n_stream,) the rows that are learned from, in their order of arrival
    """

    queries: Rows
    database: Rows
    stream: Rows


def split(
    y: ArrayLike,
    *,
    queries_per_class: int = 100,
    query_share: float | None = None,
    stream: int | None = 20_000,
    random_state: int | None = None,
) -> Split:
    """Draw queries of every class, search all the rest, and learn from the start of the rest.

    The database is everything but the queries in random order, and the stream is its first rows:
    so a longer stream begins with a shorter one. The same ``random_state`` gives the same split,
    whatever the labels are called.

    Parameters
    ----------
    y : (n,) labels of any type, or an (n, C) matrix of 0 and 1. Rows of such a multi-label matrix
        belong to several classes, so there ``queries_per_class × C`` queries are drawn over all
        rows alike, and a class has as many of them as its share of the data gives it.
    queries_per_class : queries of each class (the paper's T: 100, Places205 20)
    query_share : for long tails: at most this share of a class's rows are queries, but one of a
        class of two rows or more, and none of a single row; None = T of every class, or an error
    stream : rows to learn from (the paper: 20,000, Places205 100,000); None = the whole database
    random_state : whole number that fixes the draw; None = another one each time

    >>> y = ["cat", "dog"] * 50
    >>> parts = split(y, queries_per_class=5, stream=40)
    >>> len(parts.queries), len(parts.database), len(parts.stream)
    (10, 90, 40)
    """
    check_parameters("split", locals(), SPLIT_RULES)
    per_class, rng = queries_per_class, np.random.default_rng(random_state)
    labels = _labels("split", y)
    if labels.ndim == 2:
        n, n_classes = labels.shape
        if per_class * n_classes >= n:
            raise InputError(
                f"split: queries_per_class={per_class} over {n_classes} classes are "
                f"{per_class * n_classes} queries, but y has only {n} rows; pass a smaller "
                "queries_per_class."
            )
        queries = rng.choice(n, per_class * n_classes, replace=False)
    else:
        classes = _rows_of_classes("split", labels)
        queries = _draw_queries("split", classes, per_class, rng, query_share)
    database = _shuffled_rest(np.arange(len(labels)), queries, rng)
    return Split(queries, database, _start("split", database, stream, "the database"))


def split_unseen(
    y: ArrayLike,
    *,
    unseen: float = 0.25,
    queries_per_class: int = 100,
    stream: int | None = 20_000,
    random_state: int | None = None,
) -> Split:
    """Learn from some classes, and ask and search only among the others.

    Classes are drawn at random: ``unseen`` of them, rounded half up as the reference does in
    MATLAB, so a quarter of 10 classes is 3. The stream is drawn from the seen classes in random
    order; of the unseen ones, ``queries_per_class`` rows each are queries and the rest is the
    database. Parameters are those of :func:`split`, with one label a row.

    >>> y = np.repeat(np.arange(10), 20)
    >>> parts = split_unseen(y, queries_per_class=5, stream=None)
    >>> len(set(y[parts.queries])), len(set(y[parts.stream]))
    (3, 7)
    """
    place = "split_unseen"
    rules = {**SPLIT_RULES, "unseen": Number(at_least=0, at_most=1)}
    check_parameters(place, {**locals(), "query_share": None}, rules)
    rng = np.random.default_rng(random_state)
    labels = _labels(place, y)
    if labels.ndim == 2:
        raise InputError(
            f"{place}: y is a multi-label matrix of shape {labels.shape}, whose rows can belong to "
            "seen and unseen classes at once; pass one label a row, or use split."
        )
    classes = _rows_of_classes(place, labels)
    n_unseen = int(np.floor(unseen * len(classes) + 0.5))
    if not 0 < n_unseen < len(classes):
        raise InputError(
            f"{place}: unseen={unseen!r} of {len(classes)} classes leaves {n_unseen} unseen and "
            f"{len(classes) - n_unseen} seen; pass a share that leaves some of both."
        )
    order = rng.permutation(len(classes))
    hidden = sorted(order[:n_unseen].tolist())
    queries = _draw_queries(place, [classes[c] for c in hidden], queries_per_class, rng)
    unseen_rows = np.concatenate([classes[c][1] for c in hidden])
    database = _shuffled_rest(unseen_rows, queries, rng)
    seen = [rows for c, (_, rows) in enumerate(classes) if c not in hidden]
    learned = rng.permutation(np.concatenate(seen))
    return Split(queries, database, _start(place, learned, stream, "the seen classes"))


def split_by_time(
    n: int, queries_from: int, *, stream: int | None = None, random_state: int | None = None
) -> Split:
    """Learn from the first rows of a set in order of time, search them, and ask with later ones.

    Nothing is drawn but the order of the database, which decides ties.

    Parameters
    ----------
    n : rows of the set
    queries_from : the row where the queries begin; all before it are the database
    stream : so many of the first rows are learned from, as they came; None = the whole database
    random_state : whole number that fixes the draw; None = another one each time

    >>> parts = split_by_time(10, 7, stream=3)
    >>> parts.stream, parts.queries, sorted(parts.database.tolist())
    (array([0, 1, 2]), array([7, 8, 9]), [0, 1, 2, 3, 4, 5, 6])
    """
    place = "split_by_time"
    rules = {"queries_from": Whole(1, n - 1), "stream": Maybe(Whole(1))}
    check_parameters(place, locals(), {**rules, "random_state": Maybe(Whole(0))})
    earlier = np.arange(queries_from)
    database = np.random.default_rng(random_state).permutation(earlier)
    learned = _start(place, earlier, stream, "the database")
    return Split(np.arange(queries_from, n), database, learned)


def _labels(place: str, y: Any) -> NDArray[Any]:
    labels = check_labels(y, len(y), place=place)
    if not labels.size:
        raise InputError(f"{place}: y has shape {labels.shape}; pass at least one label.")
    return labels


def _rows_of_classes(place: str, labels: NDArray[Any]) -> list[tuple[Any, Rows]]:
    """Return each class's label and its rows, in the labels' order."""
    try:
        names, numbers = np.unique(labels, return_inverse=True)
    except TypeError as error:
        raise InputError(
            f"{place}: the labels in y cannot be put in order ({error}); pass labels of one type."
        ) from error
    rows = np.argsort(numbers, kind="stable")
    starts = np.searchsorted(numbers[rows], np.arange(1, len(names)))
    return list(zip(names.tolist(), np.split(rows, starts), strict=True))


def queries_of_class(n: int, per_class: int, share: float | None) -> int:
    """Return how many of ``n`` rows of a class ask.

    >>> [queries_of_class(n, 100, 0.2) for n in (1, 2, 54, 5000)]
    [0, 1, 10, 100]
    """
    return per_class if share is None else min(per_class, max(int(share * n), int(n > 1)))


def _draw_queries(
    place: str,
    classes: list[tuple[Any, Rows]],
    per_class: int,
    rng: np.random.Generator,
    share: float | None = None,
) -> Rows:
    if share is not None:
        counts = [queries_of_class(len(rows), per_class, share) for _, rows in classes]
        parts = zip(classes, counts, strict=True)
        return np.concatenate([rng.choice(rows, n, replace=False) for (_, rows), n in parts])
    for name, rows in classes:
        # One row more than the queries: a query with nothing to find measures nothing.
        if len(rows) <= per_class:
            raise InputError(
                f"{place}: class {name!r} has {len(rows)} rows, but queries_per_class={per_class} "
                f"needs at least {per_class + 1}; pass a smaller queries_per_class or drop the "
                "class."
            )
    return np.concatenate([rng.choice(rows, per_class, replace=False) for _, rows in classes])


def _shuffled_rest(rows: Rows, taken: Rows, rng: np.random.Generator) -> Rows:
    return rng.permutation(np.setdiff1d(rows, taken, assume_unique=True))


def _start(place: str, rows: Rows, stream: int | None, of: str) -> Rows:
    if stream is None:
        return rows
    if stream > len(rows):
        raise InputError(
            f"{place}: stream={stream} is more than the {len(rows)} rows of {of}; pass a smaller "
            "stream, or None for all."
        )
    return rows[:stream]


def centre_unit(
    stream_X: ArrayLike,
    *others: ArrayLike,
    mean_from: Literal["start", "all"] = "start",
    n_start: int = 1000,
) -> tuple[NDArray[np.float32], ...]:
    """Subtract a mean from every row, then scale the row to length 1; zero rows stay zero.

    Parameters
    ----------
    stream_X : (n, d) rows to learn from, in their order of arrival
    others : further (m, d) arrays, such as database and queries, treated with the same mean
    mean_from : ``"start"`` takes the mean of the stream's first ``n_start`` rows, all that an
        online method can know when it begins. ``"all"`` takes it over all rows of all arrays, as
        the reference code of the field does: it is transductive (the queries take part), so use it
        only to reproduce published numbers.
    n_start : rows for ``"start"``; a shorter stream is used whole

    Returns
    -------
    A tuple of new float32 arrays, one for each that came, which are left as they are.

    >>> stream, queries = centre_unit([[3.0, 0.0], [1.0, 0.0]], [[2.0, 5.0], [2.0, 0.0]])
    >>> queries
    array([[0., 1.],
           [0., 0.]], dtype=float32)
    """
    check_parameters(
        "centre_unit", locals(), {"n_start": Whole(1), "mean_from": Choice("start", "all")}
    )
    names = ["stream_X", *(f"others[{i}]" for i in range(len(others)))]
    arrays = [np.asarray(array) for array in (stream_X, *others)]
    for name, array in zip(names, arrays, strict=True):
        if array.ndim != 2 or array.dtype.kind not in "fiub":
            raise InputError(
                f"centre_unit: {name} is {array.dtype} of shape {array.shape}; pass numbers of "
                "shape (rows, features)."
            )
        if array.shape[1] != arrays[0].shape[1]:
            raise InputError(
                f"centre_unit: {name} has {array.shape[1]} features, stream_X has "
                f"{arrays[0].shape[1]}; pass arrays of the same features."
            )
    if not len(arrays[0]):
        raise InputError("centre_unit: stream_X has no rows; pass at least one to take a mean.")
    mean = mean_row(*arrays) if mean_from == "all" else mean_row(arrays[0][:n_start])
    return tuple(unit_rows(array, mean) for array in arrays)


def mean_row(*arrays: NDArray[Any]) -> NDArray[np.float64]:
    """Return the mean over all rows of all arrays, block by block."""
    total = np.zeros(arrays[0].shape[1])
    for array in arrays:
        for first in range(0, len(array), ROWS_IN_FLOAT64):
            total += array[first : first + ROWS_IN_FLOAT64].sum(axis=0, dtype=np.float64)
    return total / sum(map(len, arrays))


def unit_rows(array: NDArray[Any], mean: NDArray[np.float64]) -> NDArray[np.float32]:
    """Subtract ``mean`` from every row and scale the row to length 1, block by block."""
    result = np.empty(array.shape, np.float32)
    for first in range(0, len(array), ROWS_IN_FLOAT64):
        block = array[first : first + ROWS_IN_FLOAT64] - mean  # float64
        length = np.linalg.norm(block, axis=1, keepdims=True)
        result[first : first + ROWS_IN_FLOAT64] = block / np.where(length == 0, 1, length)
    return result


def pieces(
    X: NDArray[Any], y: NDArray[Any], size: int
) -> Iterator[tuple[NDArray[Any], NDArray[Any]]]:
    """Yield consecutive (X, y) pieces of ``size`` rows, as views; the last may be shorter.

    >>> X, y = np.eye(5), np.arange(5)
    >>> [labels.tolist() for _, labels in pieces(X, y, 2)]
    [[0, 1], [2, 3], [4]]
    """
    check_parameters("pieces", locals(), {"size": Whole(1)})
    if len(X) != len(y):
        raise InputError(
            f"pieces: X has {len(X)} rows and y has {len(y)}; pass one label row for each row."
        )
    # A generator of its own, so that wrong arguments are refused at the call, not at the first use.
    return ((X[first : first + size], y[first : first + size]) for first in range(0, len(X), size))
