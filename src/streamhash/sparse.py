"""Sparse matrices as they come: looked at before SciPy's compiled loops, which trust them."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from streamhash.errors import InputError


def check_sparse(matrix: Any, *, place: str) -> None:
    """Refuse a sparse matrix with entries out of its shape.

    ``place`` is how an error calls it. SciPy crashes on such a matrix, or reads beside its arrays.
    """
    kind = getattr(matrix, "format", None)
    if not isinstance(kind, str):  # what else has a toarray
        return
    if not _CHECKS.get(kind, lambda _: True)(matrix):
        raise InputError(
            f"{place} is a sparse matrix ({kind}) with entries out of its shape {matrix.shape}; "
            "make it anew, as by scipy.sparse.csr_array((values, (rows, columns)), shape=shape)."
        )


def _fits_compressed(
    starts: NDArray[Any], indices: NDArray[Any], n_values: int, n: int, width: int
) -> bool:
    """Whether n rows, or columns, begin at ``starts`` among indices below ``width``."""
    return (
        starts.ndim == indices.ndim == 1
        and starts.dtype.kind == indices.dtype.kind == "i"
        and len(starts) == n + 1
        and n_values == len(indices)
        and starts[0] == 0
        and starts[-1] <= len(indices)
        and not (starts[1:] < starts[:-1]).any()
        and _is_within(indices, width)
    )


def _is_within(indices: NDArray[Any], width: int) -> bool:
    return len(indices) == 0 or (indices.min() >= 0 and bool(indices.max() < width))


def _fits_csr(matrix: Any) -> bool:
    n, d = matrix.shape
    return _fits_compressed(matrix.indptr, matrix.indices, len(matrix.data), n, d)


def _fits_csc(matrix: Any) -> bool:
    n, d = matrix.shape
    return _fits_compressed(matrix.indptr, matrix.indices, len(matrix.data), d, n)


def _fits_bsr(matrix: Any) -> bool:
    (n, d), (height, width) = matrix.shape, matrix.data.shape[1:]
    whole = min(height, width) > 0 and n % height == 0 and d % width == 0
    return whole and _fits_compressed(
        matrix.indptr, matrix.indices, len(matrix.data), n // height, d // width
    )


def _fits_coo(matrix: Any) -> bool:
    coordinates = getattr(matrix, "coords", None) or (matrix.row, matrix.col)
    return len(coordinates) == len(matrix.shape) and all(
        places.shape == matrix.data.shape and places.dtype.kind == "i" and _is_within(places, size)
        for places, size in zip(coordinates, matrix.shape, strict=True)
    )


def _fits_lil(matrix: Any) -> bool:
    n, d = matrix.shape
    return len(matrix.rows) == len(matrix.data) == n and all(
        len(places) == len(values) and _is_within(np.asarray(places, np.int64), d)
        for places, values in zip(matrix.rows, matrix.data, strict=True)
    )


# SciPy itself looks at the entries of the other kinds.
_CHECKS = {
    "csr": _fits_csr,
    "csc": _fits_csc,
    "bsr": _fits_bsr,
    "coo": _fits_coo,
    "lil": _fits_lil,
}
