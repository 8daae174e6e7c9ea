"""Labels of queries and database, brought into the two forms that kernels compare."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from streamhash.codes import to_words
from streamhash.errors import InputError
from streamhash.labels import check_labels, group

__all__ = ["Encoded", "encode"]

# Class numbers (n,), and masks of classes (words, n): without rows when labels are single.
Encoded = tuple[NDArray[np.int32], NDArray[np.uint64]]


def encode(
    query_labels: Any, database_labels: Any, n_queries: int, n_items: int, *, caller: str
) -> tuple[Encoded, Encoded]:
    """Encode both sides together, so that equal labels get equal numbers on either side."""
    queries = check_labels(query_labels, n_queries, place=caller, name="query_labels", rows="codes")
    items = check_labels(
        database_labels, n_items, place=caller, name="database_labels", rows="codes"
    )
    if queries.shape[1:] != items.shape[1:]:
        raise InputError(
            f"{caller}: query_labels of shape {queries.shape} and database_labels of shape "
            f"{items.shape} differ in kind; pass one label each for both, or two 0/1 matrices "
            "with the same classes as columns."
        )
    if queries.ndim == 2:
        return _masks(queries), _masks(items)
    if queries.dtype.kind != items.dtype.kind:  # else NumPy would turn 1 into "1"
        queries, items = queries.astype(object), items.astype(object)
    try:
        numbers = group(np.concatenate([queries, items]))
    except InputError as error:
        raise InputError(f"{caller}: {error}") from error
    return _numbers(numbers[:n_queries]), _numbers(numbers[n_queries:])


def _numbers(numbers: NDArray[np.int32]) -> Encoded:
    return np.array(numbers, np.int32), np.zeros((0, len(numbers)), np.uint64)


def _masks(matrix: NDArray[np.uint8]) -> Encoded:
    return np.zeros(len(matrix), np.int32), to_words(np.packbits(matrix, axis=1)).T.copy()
