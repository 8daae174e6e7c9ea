"""The protocol of the field: who asks, what is searched, and what is learned from."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from streamhash.errors import InputError
from streamhash.lab.datasets._arguments import number, whole

__all__ = ["Split", "split", "split_unseen"]

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
    y: ArrayLike, *, queries_per_class: int = 100, stream: int | None = 20_000, seed: int = 0
) -> Split:
    """Draw queries of every class, search all the rest, and learn from the start of the rest.

    The database is everything but the queries in random order, and the stream is its first rows:
    so a longer stream begins with a shorter one. The same seed gives the same split, whatever
    the labels are called.

    Parameters
    ----------
    y : (n,) labels of any type, or an (n, C) matrix of 0 and 1. Rows of such a multi-label matrix
        belong to several classes, so there ``queries_per_class × C`` queries are drawn over all
        rows alike, and a class has as many of them as its share of the data gives it.
    queries_per_class : queries of each class (the paper's T: 100, Places205 20)
    stream : rows to learn from (the paper: 20,000, Places205 100,000); None = the whole database
    seed : whole number that fixes the draw

    >>> y = ["cat", "dog"] * 50
    >>> parts = split(y, queries_per_class=5, stream=40)
    >>> len(parts.queries), len(parts.database), len(parts.stream)
    (10, 90, 40)
    """
    per_class = whole("split", "queries_per_class", queries_per_class, least=1)
    rng = np.random.default_rng(whole("split", "seed", seed, least=0))
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
    database = rng.permutation(_without(np.arange(len(labels)), queries))
    return Split(queries, database, _start("split", database, stream, "the database"))


def split_unseen(
    y: ArrayLike,
    *,
    unseen: float = 0.25,
    queries_per_class: int = 100,
    stream: int | None = 20_000,
    seed: int = 0,
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
    share = number(
        place, "unseen", unseen, least=0, most=1, advice="pass a share of the classes, such as 0.25"
    )
    per_class = whole(place, "queries_per_class", queries_per_class, least=1)
    rng = np.random.default_rng(whole(place, "seed", seed, least=0))
    labels = _labels(place, y)
    if labels.ndim == 2:
        raise InputError(
            f"{place}: y is a multi-label matrix of shape {labels.shape}, whose rows can belong to "
            "seen and unseen classes at once; pass one label a row, or use split."
        )
    classes = _rows_of_classes(place, labels)
    n_unseen = int(np.floor(share * len(classes) + 0.5))
    if not 0 < n_unseen < len(classes):
        raise InputError(
            f"{place}: unseen={unseen!r} of {len(classes)} classes leaves {n_unseen} unseen and "
            f"{len(classes) - n_unseen} seen; pass a share that leaves some of both."
        )
    order = rng.permutation(len(classes))
    hidden = sorted(order[:n_unseen].tolist())
    queries = _draw_queries(place, [classes[c] for c in hidden], per_class, rng)
    database = rng.permutation(_without(np.concatenate([classes[c][1] for c in hidden]), queries))
    seen = rng.permutation(
        np.concatenate([rows for c, (_, rows) in enumerate(classes) if c not in hidden])
    )
    return Split(queries, database, _start(place, seen, stream, "the seen classes"))


def _labels(place: str, y: ArrayLike) -> NDArray[Any]:
    """Return y as numbered classes (n,), with the order of the labels, or as a 0/1 matrix."""
    try:
        labels = np.asarray(y)
    except ValueError as error:
        raise InputError(
            f"{place}: y has rows of different lengths; pass (n,) labels or an (n, C) matrix of 0 "
            "and 1."
        ) from error
    if labels.ndim not in (1, 2) or not labels.size:
        raise InputError(
            f"{place}: y has shape {labels.shape}; pass (n,) labels or an (n, C) matrix of 0 and 1."
        )
    if labels.ndim == 2 and not np.isin(labels, (0, 1)).all():
        raise InputError(
            f"{place}: y has shape {labels.shape} and values other than 0 and 1; pass (n,) labels "
            "or an (n, C) matrix of 0 and 1."
        )
    if labels.dtype.kind == "f" and np.isnan(labels).any():
        row = int(np.flatnonzero(np.isnan(labels))[0])
        raise InputError(f"{place}: y has no label at row {row} (NaN); drop the rows without one.")
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


def _without(rows: Rows, taken: Rows) -> Rows:
    return np.setdiff1d(rows, taken, assume_unique=True)


def _start(place: str, rows: Rows, stream: int | None, of: str) -> Rows:
    if stream is None:
        return rows
    n = whole(place, "stream", stream, least=1, advice="pass a number of rows, or None for all")
    if n > len(rows):
        raise InputError(
            f"{place}: stream={n} is more than the {len(rows)} rows of {of}; pass a smaller "
            "stream, or None for all."
        )
    return rows[:n]
