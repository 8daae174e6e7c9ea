"""Where a cell takes place: who asks, what is searched, and what is learned from.

Data of up to a gigabyte are put in order once; larger sets stay where they are, mostly a
memory-mapped file, and are gathered piece by piece, so that memory stays bounded.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from streamhash.base import OnlineHasher
from streamhash.codes import Codes
from streamhash.lab.datasets import DataSet, Split, mean_row, split, split_unseen, unit_rows
from streamhash.lab.plan import Plan

__all__ = ["Arena", "set_up"]

Matrix = NDArray[np.float32]
PIECE = 20_000  # rows of a large set that are held at once: a multiple of every default stage
HELD_WHOLE = 2**30  # bytes


@dataclass(frozen=True, eq=False)
class Gathered:
    """Rows of a large set in some order, prepared only when a slice of them is taken."""

    X: Matrix
    rows: NDArray[np.int64]
    mean: NDArray[np.float64] | None

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, part: slice) -> Matrix:
        return _prepare(self.X[self.rows[part]], self.mean)


@dataclass(frozen=True, eq=False)
class Arena:
    """Features and labels of the three parts of a split."""

    stream: Matrix | Gathered
    stream_labels: NDArray[Any]
    database: Matrix | Gathered
    database_labels: NDArray[Any]
    queries: Matrix | Gathered
    query_labels: NDArray[Any]

    def encode(self, hasher: OnlineHasher) -> tuple[Codes, Any, Codes, Any]:
        """Return codes and labels, in the order that the metrics take them."""
        return (
            _encode(hasher, self.queries),
            self.query_labels,
            _encode(hasher, self.database),
            self.database_labels,
        )

    def learn(self, hasher: OnlineHasher, start: int, stop: int) -> None:
        """Teach a part of the stream, whose ends are ends of stages."""
        whole_stages = max(1, PIECE // hasher.batch_size) * hasher.batch_size
        for part in _pieces(start, stop, whole_stages):
            hasher.partial_fit(self.stream[part], self.stream_labels[part])


def set_up(plan: Plan) -> Arena:
    """Split the data as the plan says and prepare the features; the last arena is kept."""
    facts = (plan.split, plan.seed, plan.stream, plan.queries_per_class, plan.features)
    return _set_up(plan.data, plan.test_seeds, *facts)


@lru_cache(maxsize=1)  # cells that differ in the method only follow one another
def _set_up(
    data: DataSet,
    test_seeds: int,
    kind: str,
    seed: int,
    stream: int,
    queries_per_class: int,
    features: str,
) -> Arena:
    choices: dict[str, Any] = {"queries_per_class": queries_per_class, "stream": stream}
    if kind == "unseen":
        parts = split_unseen(data.y, random_state=seed, **choices)
    elif kind == "validation":
        parts = _validation(data, seed, test_seeds, choices)
    else:
        parts = split(data.y, random_state=seed, **choices)
    X, y = data.X, data.y
    mean = mean_row(X) if features == "centre_unit" else None

    def table(rows: NDArray[np.int64]) -> Matrix | Gathered:
        gathered = Gathered(X, rows, mean)
        return gathered if X.nbytes > HELD_WHOLE else gathered[:]

    database = table(parts.database)
    is_start = np.array_equal(parts.stream, parts.database[: len(parts.stream)])
    learned = database if is_start else table(parts.stream)  # often the start of the database
    return Arena(
        learned,
        y[parts.stream],
        database,
        y[parts.database],
        table(parts.queries),
        y[parts.queries],
    )


def _validation(data: DataSet, seed: int, test_seeds: int, choices: dict[str, Any]) -> Split:
    """Split the stream of seed 0 again, without any row that is a query of a test seed.

    What remains is all that a person who learns from that stream has: queries, database and
    stream of the search for settings come from it alone.
    """
    usual = [split(data.y, random_state=test_seed, **choices) for test_seed in range(test_seeds)]
    asked = np.concatenate([parts.queries for parts in usual])
    pool = usual[0].stream[~np.isin(usual[0].stream, asked)]
    inner = split(
        data.y[pool], queries_per_class=choices["queries_per_class"], stream=None, random_state=seed
    )
    return Split(pool[inner.queries], pool[inner.database], pool[inner.stream])


def _prepare(rows: Matrix, mean: NDArray[np.float64] | None) -> Matrix:
    return np.asarray(rows) if mean is None else unit_rows(rows, mean)


def _encode(hasher: OnlineHasher, table: Matrix | Gathered) -> Codes:
    return np.concatenate([hasher.transform(table[part]) for part in _pieces(0, len(table), PIECE)])


def _pieces(start: int, stop: int, size: int) -> Iterator[slice]:
    for first in range(start, stop, size):
        yield slice(first, min(first + size, stop))
