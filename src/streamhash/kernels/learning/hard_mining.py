"""Least mean squares towards the codewords of classes, where bits that are near weigh less (ATHOH).

With e = Wᵀx − t for a row x of class c and its codeword t, and the mean square S_c of the e of that
class so far, bit by bit:

    w = max(0, 1 − φ(e) / T)      φ: normal density of mean 0 and deviation √S_c (or S_c)
    W  ←  W − s x (w ∘ e)ᵀ        before it, if ``twice``, W ← W − s x eᵀ, whose e this one sees

A row's step hangs on Wᵀx and the S_c alone, so that a block of rows needs W only once, as in
``sequential.py``. With a teacher, W ← W + λ (r − r') x tᵀ as well: r = (k − t · Wᵀx) / 2k is how
far the row is from its codeword, r' how far the teacher was from its own after its step.
"""

import math
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from streamhash.kernels.compile import kernel

Floats = TypeVar("Floats", NDArray[np.float32], NDArray[np.float64])
Doubles = NDArray[np.float64]
ROWS = 64  # of a block
DENSITY = 1 / math.sqrt(2 * math.pi)


def mine_hard_bits(
    X: Floats,
    W: Floats,
    T: Floats,
    classes: NDArray[np.int32],
    counts: Doubles,
    squares: Doubles,
    *,
    step: float,
    threshold: float,
    root: bool,
    twice: bool,
    teacher: Doubles | None = None,
    distil: float = 0.0,
) -> tuple[Floats, Doubles, Doubles, Doubles]:
    """Return W (d, k) after a step for each row of X (n, d) towards its codeword in T (n, k).

    And the ``counts`` (C,) and mean ``squares`` (C, k) of the classes with these rows, and how far
    from their codewords rows were after their steps (n,), which is what ``teacher`` is. A threshold
    of infinity is for bits that all weigh the same. Nothing that is passed in is written into.
    """
    counts, squares = counts.copy(), squares.copy()
    after = np.zeros(len(X))
    if teacher is None:
        teacher, distil = np.zeros(len(X)), 0.0
    for start in range(0, len(X), ROWS):
        block = slice(start, start + ROWS)
        rows = X[block]
        Z = rows @ W  # (m, k)
        G = np.zeros_like(Z)
        arrays = Z, rows @ rows.T, T[block].copy(), classes[block].copy(), counts, squares
        rule = step, threshold, root, twice, distil
        _mine(arrays, rule, teacher[block].copy(), G, after[block])
        moved = rows.T @ G
        moved += W
        W = moved
    return W, counts, squares, after


def plain_mine_hard_bits(
    X: Floats,
    W: Floats,
    T: Floats,
    classes: NDArray[np.int32],
    counts: Doubles,
    squares: Doubles,
    *,
    step: float,
    threshold: float,
    root: bool,
    twice: bool,
    teacher: Doubles | None = None,
    distil: float = 0.0,
) -> tuple[Floats, Doubles, Doubles, Doubles]:
    """Return what ``mine_hard_bits`` returns, row by row and in the open: the slow twin."""
    counts, squares, after = counts.copy(), squares.copy(), np.zeros(len(X))
    for i, (x, t, c) in enumerate(zip(X, T, classes, strict=True)):
        e = (x @ W - t).astype(np.float64)  # (k,)
        counts[c] += 1
        squares[c] += (e * e - squares[c]) / counts[c]
        deviation = np.sqrt(squares[c]) if root else squares[c]
        safe = np.where(deviation > 0, deviation, 1)
        density = DENSITY * np.exp(-((e / safe) ** 2) / 2) / safe
        w = np.where(deviation > 0, np.maximum(0, 1 - density / threshold), 0)
        if twice:
            W = W - np.outer(x, (step * e).astype(W.dtype))
            e = x @ W - t
        g = -step * w * e
        if teacher is not None:
            g = g + distil * (_away(x @ W, t) - teacher[i]) * t
        W = W + np.outer(x, g.astype(W.dtype))
        after[i] = _away(x @ W, t)
    return W, counts, squares, after


def codeword_distance(X: Floats, W: Floats, T: Floats) -> Doubles:
    """Return how far rows are from their codewords (n,): 0 where Wᵀx is t, and 1 where it is −t."""
    distances: Doubles = (1 - np.einsum("ij,ij->i", X @ W, T, dtype=np.float64) / W.shape[1]) / 2
    return distances


def _away(z: Any, t: Any) -> float:
    return float((1 - z @ t / len(t)) / 2)


@kernel
def _mine(arrays: Any, rule: Any, teacher: Any, G: Any, after: Any) -> None:
    """Fill in G (m, k), the steps of a block, and errors (and use Z as a place to work in)."""
    Z, K, T, classes, counts, squares = arrays
    step, threshold, root, twice, distil = rule
    m, k = Z.shape
    for i in range(m):
        z, t, g, of_class = Z[i], T[i], G[i], squares[classes[i]]
        for j in range(i):
            nearness, before = K[i, j], G[j]
            for r in range(k):
                z[r] += nearness * before[r]
        counts[classes[i]] += 1
        count, length = counts[classes[i]], float(K[i, i])
        product = 0.0
        for r in range(k):
            e = float(z[r]) - float(t[r])
            of_class[r] += (e * e - of_class[r]) / count
            deviation = math.sqrt(of_class[r]) if root else of_class[r]
            w = 0.0
            if deviation > 0.0:
                density = DENSITY * math.exp(-((e / deviation) ** 2) / 2) / deviation
                w = max(0.0, 1.0 - density / threshold)
            first = -step * e if twice else 0.0
            e += first * length
            product += float(t[r]) * (float(t[r]) + e)
            g[r] = first - step * w * e
        pull = distil * ((1.0 - product / k) / 2 - teacher[i])
        product = 0.0
        for r in range(k):
            g[r] += pull * t[r]
            product += float(t[r]) * (float(z[r]) + float(g[r]) * length)
        after[i] = (1.0 - product / k) / 2
