"""Labels of queries and database, brought into the two forms that kernels compare."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from streamhash.codes import to_words
from streamhash.errors import InputError
from streamhash.kernels.hamming import word_major
from streamhash.labels import as_numpy, check_labels, group

__all__ = ["Encoded", "encode"]

# Class numbers (n,), and masks of classes (words, n): without rows when labels are single.
Encoded = tuple[NDArray[np.int32], NDArray[np.uint64]]


def encode(
    query_labels: Any, database_labels: Any, n_queries: int, n_items: int, *, caller: str
) -> tuple[Encoded, Encoded]:
    """Encode both sides together, so that equal labels get equal numbers on either side."""
    try:
        queries = _check(query_labels, n_queries, f"{caller}: query_labels")
        items = _check(database_labels, n_items, f"{caller}: database_labels")
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
        numbers = group(np.concatenate([queries, items]))
    except TypeError as error:
        raise InputError(
            f"{caller}: labels that cannot be compared ({error}); pass numbers, strings or other "
            "plain values, without missing ones."
        ) from error
    return _numbers(numbers[:n_queries]), _numbers(numbers[n_queries:])


def _check(labels: Any, n: int, place: str) -> NDArray[Any]:
    labels = as_numpy(labels)
    if isinstance(labels, list | tuple):
        n_rows = len(labels)
        if len({isinstance(label, str) for label in labels}) == 2:
            # np.asarray would make strings of all, and 1 equal to "1".
            labels = np.fromiter(labels, object, n_rows)
    else:
        n_rows = labels.shape[0] if getattr(labels, "shape", ()) else np.size(labels)
    if n_rows != n:
        raise InputError(f"{place}: {n_rows} labels came for {n} codes; pass one label a code.")
    return check_labels(labels, n, place=place)


def _numbers(numbers: NDArray[np.int32]) -> Encoded:
    return np.array(numbers, np.int32), np.zeros((0, len(numbers)), np.uint64)


def _masks(matrix: NDArray[np.uint8]) -> Encoded:
    return np.zeros(len(matrix), np.int32), word_major(to_words(np.packbits(matrix, axis=1)))
