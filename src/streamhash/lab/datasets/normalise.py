"""Centred rows of unit length: the preparation that most of the compared methods expect."""

from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from streamhash.errors import InputError
from streamhash.lab.datasets._arguments import matrix, whole

__all__ = ["centre_unit", "mean_row", "unit_rows"]

_BLOCK = 4096  # rows in float64 at a time


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
    n_start = whole("centre_unit", "n_start", n_start, least=1)
    arrays = [matrix("centre_unit", "stream_X", stream_X)]
    arrays += [matrix("centre_unit", f"others[{i}]", other) for i, other in enumerate(others)]
    stream = arrays[0]
    if not len(stream):
        raise InputError("centre_unit: stream_X has no rows; pass at least one to take a mean.")
    for i, other in enumerate(arrays[1:]):
        if other.shape[1] != stream.shape[1]:
            raise InputError(
                f"centre_unit: others[{i}] has {other.shape[1]} features, stream_X has "
                f"{stream.shape[1]}; pass arrays of the same features."
            )
    if mean_from == "start":
        mean = mean_row(stream[:n_start])
    elif mean_from == "all":
        mean = mean_row(*arrays)
    else:
        raise InputError(f"centre_unit: mean_from={mean_from!r} is unknown; pass 'start' or 'all'.")
    return tuple(unit_rows(array, mean) for array in arrays)


def mean_row(*arrays: NDArray[Any]) -> NDArray[np.float64]:
    """Return the mean over all rows of all arrays, block by block."""
    total = np.zeros(arrays[0].shape[1])
    for array in arrays:
        for first in range(0, len(array), _BLOCK):
            total += array[first : first + _BLOCK].sum(axis=0, dtype=np.float64)
    return total / sum(map(len, arrays))


def unit_rows(array: NDArray[Any], mean: NDArray[np.float64]) -> NDArray[np.float32]:
    """Subtract ``mean`` from every row and scale the row to length 1, block by block."""
    result = np.empty(array.shape, np.float32)
    for first in range(0, len(array), _BLOCK):
        block = array[first : first + _BLOCK] - mean  # float64
        length = np.linalg.norm(block, axis=1, keepdims=True)
        result[first : first + _BLOCK] = block / np.where(length == 0, 1, length)
    return result
