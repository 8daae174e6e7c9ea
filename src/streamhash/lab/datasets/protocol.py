"""The protocol of the field: who asks, what is searched, and what is learned from.

Queries, database and stream are split by :func:`split` and :func:`split_unseen`; features are
centred and scaled by :func:`centre_unit`; :func:`pieces` makes a stream of arrays.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from streamhash.errors import InputError
from streamhash.labels import check_labels
from streamhash.parameters import Choice, Maybe, Number, Rule, Whole, check_parameters

__all__ = ["Split", "centre_unit", "mean_row", "pieces", "split", "split_unseen", "unit_rows"]

ROWS_IN_FLOAT64 = 4096  # at a time, while means and lengths are taken
SPLIT_RULES: dict[str, Rule] = {
    "queries_per_class": Whole(1),
    "stream": Maybe(Whole(1)),
    "random_state": Maybe(Whole(0)),
}

Rows = NDArray[np.int64]


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
        queries = _draw_queries("split", _rows_of_classes("split", labels), per_class, rng)
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
    check_parameters(place, locals(), rules)
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


def _draw_queries(
    place: str, classes: list[tuple[Any, Rows]], per_class: int, rng: np.random.Generator
) -> Rows:
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
