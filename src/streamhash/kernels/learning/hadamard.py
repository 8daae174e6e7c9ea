"""Hadamard transforms of blocks of rows, for sketches that mix many rows into a few.

Sylvester's matrices: H_1 = [1], H_2m = [[H_m, H_m], [H_m, −H_m]], so that the entry of row r and
column c is −1 to the number of ones that r and c have in common in binary. Nothing is divided by
√m here.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from streamhash.kernels.compile import kernel

Floats = NDArray[np.float32]
TILE = 256  # columns at a time: a tile of 128 rows is 128 KB and stays in the second-level cache


def hadamard(X: NDArray[Any]) -> NDArray[Any]:
    """Return H_b X for rows X (b, d), b a power of two, in b log₂ b additions a column."""
    b, d = X.shape
    half = 1
    while half < b:
        pairs = X.reshape(b // (2 * half), 2, half, d)
        X = np.stack([pairs[:, 0] + pairs[:, 1], pairs[:, 0] - pairs[:, 1]], axis=1)
        half *= 2
    return X.reshape(b, d)


def hadamard_signs(rows: NDArray[np.int64], column: int) -> Floats:
    """Return the entries ±1 of some rows of H in one column."""
    shared = np.bitwise_count(rows & column).astype(np.int32)
    signs: Floats = (1 - 2 * (shared % 2)).astype(np.float32)
    return signs


def plain_fold_block(
    F: Floats, flips: Floats, picked: NDArray[np.int64], weights: Floats, Y: Floats
) -> None:
    """Add weights ∘ (H_b diag(flips) F)[picked] to Y (h, d), in the open: the slow twin.

    F (n, d) has at most b = len(flips) rows; those that are missing count as zeros.
    """
    T = np.zeros((len(flips), F.shape[1]), np.float32)
    T[: len(F)] = flips[: len(F), None] * F
    Y += weights[:, None] * hadamard(T)[picked]


@kernel
def fold_block(
    F: Floats, flips: Floats, picked: NDArray[np.int64], weights: Floats, Y: Floats
) -> None:
    """Do what ``plain_fold_block`` does, compiled, a tile of columns at a time."""
    n, d = F.shape
    b = len(flips)
    T = np.empty((b, TILE), np.float32)
    for first in range(0, d, TILE):
        width = min(TILE, d - first)
        for i in range(n):
            flip = flips[i]
            for j in range(width):
                T[i, j] = flip * F[i, first + j]
        T[n:] = 0
        half = 1
        while half < b:
            for start in range(0, b, 2 * half):
                for i in range(start, start + half):
                    upper, lower = T[i], T[i + half]
                    for j in range(width):
                        above, below = upper[j], lower[j]
                        upper[j] = above + below
                        lower[j] = above - below
            half *= 2
        for row in range(len(picked)):
            source, target, weight = T[picked[row]], Y[row], weights[row]
            for j in range(width):
                target[first + j] += weight * source[j]
