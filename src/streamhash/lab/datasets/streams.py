"""Arrays as streams."""

from collections.abc import Iterator
from typing import Any

from numpy.typing import NDArray

from streamhash.errors import InputError
from streamhash.lab.datasets._arguments import whole

__all__ = ["pieces"]


def pieces(
    X: NDArray[Any], y: NDArray[Any], size: int
) -> Iterator[tuple[NDArray[Any], NDArray[Any]]]:
    """Yield consecutive (X, y) pieces of ``size`` rows, as views; the last may be shorter.

    >>> import numpy as np
    >>> X, y = np.eye(5), np.arange(5)
    >>> [labels.tolist() for _, labels in pieces(X, y, 2)]
    [[0, 1], [2, 3], [4]]
    """
    size = whole("pieces", "size", size, least=1)
    if len(X) != len(y):
        raise InputError(
            f"pieces: X has {len(X)} rows and y has {len(y)}; pass one label row for each row."
        )
    # A generator of its own, so that wrong arguments are refused at the call, not at the first use.
    return ((X[first : first + size], y[first : first + size]) for first in range(0, len(X), size))
