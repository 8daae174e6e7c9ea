"""Candidates of a search scored exactly, by their vectors or by their projections.

Items that are found often are scored without being read: their vectors, and projections by the
model that serves, stay in memory within a bound.
"""

import threading
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from streamhash.base import OnlineHasher
from streamhash.live.arrow import Batch, Keys
from streamhash.live.search import SearchOptions
from streamhash.live.view import Answer

KEPT_BYTES = 256 * 2**20  # of vectors, or of projections
KEY_BYTES = 128  # that a row takes beside its numbers
SCORED_BYTES = 64 * 2**20  # of vectors that are scored at a time
LARGEST = float(np.finfo(np.float32).max)

Rows = NDArray[Any]  # float16 or float32


class RowCache:
    """Rows by key in a bounded number of bytes; of many, those not used lately go first."""

    def __init__(self, width: int, kind: Any, n_bytes: int = KEPT_BYTES) -> None:
        size = max(2, n_bytes // (width * np.dtype(kind).itemsize + KEY_BYTES))
        self._rows = np.empty((size, width), kind)  # the system gives memory as it is used
        self._keys = np.zeros(size, np.int64)  # 1 more than each is, 0 where there is none
        self._used = np.zeros(size, np.bool_)  # since the hand passed here
        self._places: dict[int, int] = {}
        self._hand = 0

    def __len__(self) -> int:
        return len(self._places)

    def filled(self, keys: Keys, read: Callable[[Keys], Rows | None]) -> Rows | None:
        """Return a row for each key, those not here as they are read; None if they cannot be."""
        get = self._places.get
        places = np.fromiter((get(key, -1) for key in keys.tolist()), np.int64, len(keys))
        missing = places < 0
        self._used[places[~missing]] = True
        if not missing.any():
            return self._rows[places]
        new = read(keys[missing])
        if new is None or missing.all():
            rows = new
        else:
            rows = self._rows[places]
            rows[missing] = new
        if new is not None:
            self.put(keys[missing], new)
        return rows

    def put(self, keys: Keys, rows: Rows) -> None:
        """Keep new rows, as many of them as half of all that there may be."""
        keys, rows = keys[: len(self._keys) // 2], rows[: len(self._keys) // 2]
        places = self._free(len(keys))
        for key in self._keys[places].tolist():
            self._places.pop(key - 1, None)
        self._keys[places], self._rows[places], self._used[places] = keys + 1, rows, False
        self._places.update(zip(keys.tolist(), places.tolist(), strict=True))

    def _free(self, n: int) -> Keys:
        """Choose places: the hand goes round, and passes over what was used since it was there."""
        found, size = [np.empty(0, np.int64)], len(self._keys)
        while n:
            passed = np.arange(self._hand, min(self._hand + n, size))
            self._hand = (self._hand + len(passed)) % size
            free = passed[~self._used[passed]]
            self._used[passed], self._used[free] = False, True
            found.append(free)
            n -= len(free)
        return np.concatenate(found)


class Scorer:
    """Scores what a search found; ``read`` reads the vectors of those keys that are stored."""

    def __init__(self, read: Callable[[Keys], Batch]) -> None:
        self._read = read
        self._vectors: RowCache | None = None
        self._projections: tuple[int, RowCache] | None = None  # by the model of this number
        self.forked()

    def forked(self) -> None:
        """Wait for no thread, in a child that has none of them."""
        self._lock = threading.Lock()

    def rescore(
        self, found: Answer, rows: Rows, model: OnlineHasher, k: int, options: SearchOptions
    ) -> Answer | None:
        """Return the best ``k`` of what was found; None if some of it is stored no more."""
        by_vectors = options.by == "vectors"
        queries = rows if by_vectors else model.project(rows)
        scores = np.full(found.keys.shape, np.nan, np.float32)
        at_once = max(1, SCORED_BYTES // max(1, found.keys.shape[1] * rows[:1].nbytes))
        for start in range(0, len(rows), at_once):
            some = slice(start, start + at_once)
            there = found.keys[some] >= 0
            keys, inverse = np.unique(found.keys[some][there], return_inverse=True)
            if len(keys) == 0:
                continue
            with self._lock:
                items = (
                    self._vectors_of(keys)
                    if by_vectors
                    else self._projections_of(keys, found.model, model)
                )
            if items is None:
                return None
            ends = np.cumsum(there.sum(axis=1))
            for query, row, mine, own in zip(
                queries[some], scores[some], np.split(inverse, ends[:-1]), there, strict=True
            ):
                if len(mine) == len(items):  # a copy less, of what may be a megabyte
                    row[own] = score(query, items, options.metric)[mine]
                else:
                    row[own] = score(query, items[mine], options.metric)
        order = np.argsort(scores if options.metric == "euclidean" else -scores, kind="stable")
        order = order[:, :k]  # what is not a number comes last, in the order it was found in
        return found._replace(scores=scores).with_each(
            lambda values: np.take_along_axis(values, order, axis=1)
        )

    def _vectors_of(self, keys: Keys) -> Rows | None:
        """Return the vectors of items, None if one of them is stored no more."""
        if self._vectors is None:
            some = self._read(keys[:1]).vectors
            self._vectors = RowCache(some.shape[1], some.dtype)
        return self._vectors.filled(keys, self._read_all)

    def _read_all(self, keys: Keys) -> Rows | None:
        batch = self._read(keys)
        return None if len(batch.keys) < len(keys) else batch.vectors

    def _projections_of(self, keys: Keys, number: int, model: OnlineHasher) -> Rows | None:
        """Return the projections of items by a model, so too."""
        if self._projections is None or self._projections[0] != number:
            self._projections = number, RowCache(model.n_bits, np.float32)

        def project(keys: Keys) -> Rows | None:
            vectors = self._vectors_of(keys)
            return None if vectors is None else model.project(np.asarray(vectors, np.float32))

        return self._projections[1].filled(keys, project)


def nearest(
    rows: Rows, batches: Iterable[Batch], k: int, metric: str
) -> tuple[NDArray[np.float32], Keys]:
    """Score all items, and return the scores and keys of the best ``k`` for each row, (n, k)."""
    scores = np.full((len(rows), k), np.nan, np.float32)
    keys = np.full((len(rows), k), -1, np.int64)
    for batch in batches:
        for i, row in enumerate(rows):
            new = np.concatenate([scores[i], score(row, batch.vectors, metric)])
            named = np.concatenate([keys[i], batch.keys])
            # What is not a number comes last, and what is no item after that.
            worse = (named < 0, new if metric == "euclidean" else -new)
            first = np.lexsort((worse[1], worse[0]))[:k]
            scores[i], keys[i] = new[first], named[first]
    return scores, keys


def score(query: Rows, items: Rows, metric: str) -> NDArray[np.float32]:
    """Score items (n, d) for a query (d,): by float64, so that no order of adding up matters.

    >>> score(np.float32([3, 4]), np.float32([[6, 8], [4, -3], [0, 0]]), "cosine")
    array([ 1.,  0., nan], dtype=float32)
    """
    query, items = query.astype(np.float64), items.astype(np.float64)
    if metric == "euclidean":
        values = np.sqrt(np.square(items - query).sum(axis=1))
    else:
        values = items @ query
    if metric == "cosine":
        lengths = np.sqrt(np.einsum("nd,nd->n", items, items)) * np.sqrt(query @ query)
        with np.errstate(invalid="ignore"):  # without a length, there is no direction
            values = values / lengths
    return np.asarray(np.clip(values, -LARGEST, LARGEST), np.float32)
