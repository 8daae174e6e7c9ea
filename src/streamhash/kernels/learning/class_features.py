"""What SDOH's hash functions see of few rows, their class scores, in two loops.

What NumPy does in some forty steps, each of which takes a microsecond however few the rows are,
here takes a loop up to the scores, NumPy's exponentials, and a loop from there on:

    u = (x − mean of x) / length          the unit row
    f = (u, |z| / √m)                     or (z, |z|), with random projections z of u
    q = softmax(f A + b)                  probabilities of the classes
    ((q − q̄) / length, w f₁)              what is seen; f₁ are the linear features

The bits are those of NumPy: sums stand in its order, and what it would treat in a way of its own
(rows of extreme lengths or values, say) is left to it. In which order NumPy and BLAS sum depends
on how they were built; so whoever prepares this compares the two first (``SDOH``), and where they
differ, the other way is gone.

A block of random projections of a row is a Hadamard transform, as in ``random_projections``, but
here the blocks of one row stand side by side, as there the rows of one block do.
"""

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from streamhash.kernels.compile import exact_kernel, exact_part
from streamhash.kernels.learning.random_projections import (
    NEAR,
    Signs,
    plain_absolute_features,
    plain_linear_features,
)
from streamhash.kernels.learning.row_products import Ends, add_blocks

Floats = NDArray[np.float32]

SIDE_BY_SIDE = 8  # blocks side by side: a multiple of this, or of half of it if they are few
PAIRWISE = 128  # numbers that NumPy sums in one run, by eights


class ClassMap(NamedTuple):
    """What leads from rows of d features to what is seen of them, by C classes."""

    lowest: float  # what a row may hold,
    highest: float
    shortest: np.float32  # and how long it may be, about its mean
    longest: np.float32
    n_linear: int
    signs: Floats  # (3, p, width), of blocks side by side
    scales: Floats  # (width,)
    A: Floats  # (n_features, C)
    b: Floats  # (C,)
    blocks: Ends  # by which BLAS sums a product with it
    mean: Floats  # (C,), q̄
    row_weight: np.float32


def plain_class_features(X: Floats, signs: Signs, to: ClassMap) -> NDArray[np.float64]:
    """Return what is seen of rows X (n, d), (n, C + n_linear), in float64: the slow twin.

    ``signs`` (blocks, 3, p) are as they were drawn; of ``to``, weights and offsets are used.
    """
    d, n_linear = X.shape[1], to.n_linear
    m = len(to.A) - n_linear
    rows = X.astype(np.float64)
    rows -= rows.mean(axis=1, keepdims=True)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    linear = rows if n_linear == d else plain_linear_features(rows, signs[:1], n_linear)
    bent = plain_absolute_features(rows, signs if n_linear == d else signs[1:], m)
    Z = np.concatenate([linear, bent], axis=1) @ to.A + to.b
    Z = np.exp(Z - Z.max(axis=1, keepdims=True))
    Z = Z / Z.sum(axis=1, keepdims=True) - to.mean
    Z /= np.linalg.norm(Z, axis=1, keepdims=True)
    return np.concatenate([Z, float(to.row_weight) * linear], axis=1)


def side_by_side(signs: Signs, n_linear: int, n_features: int, d: int) -> tuple[Floats, Floats]:
    """Return signs (3, p, width) and scales (width,) of blocks that stand side by side."""
    n_blocks, _, p = signs.shape
    step = SIDE_BY_SIDE if n_blocks > SIDE_BY_SIDE // 2 else SIDE_BY_SIDE // 2
    width = -(-n_blocks // step) * step
    beside = np.zeros((3, p, width), np.float32)
    beside[:, :, :n_blocks] = signs.transpose(1, 2, 0)
    scales = np.full(width, (n_features - n_linear) ** -0.5 / p)
    if 0 < n_linear < d:
        scales[0] = n_linear**-0.5 / p
    return beside, scales.astype(np.float32)


def class_features(X: Floats, to: ClassMap) -> Floats | None:
    """Return what is seen of rows X (n, d), (n, C + n_linear); None if one is not ordinary."""
    F = np.empty((len(X), len(to.A)), np.float32)
    Z = np.zeros((len(X), len(to.b)), np.float32)
    # An array that is read-only would be another type to the compiled loops.
    rows = X if X.flags.carray else np.require(X, np.float32, ["C", "W"])
    low, high, shortest, longest, n_linear = to[:5]
    if not _score(rows, low, high, shortest, longest, n_linear, *to[5:10], F, Z):
        return None
    np.exp(Z, out=Z)
    seen = np.empty((len(X), len(to.b) + n_linear), np.float32)
    if not _see(Z, F, shortest, longest, to.mean, to.row_weight, seen):
        return None
    return seen


@exact_kernel
def _score(
    X: Any,
    lowest: float,
    highest: float,
    shortest: Any,
    longest: Any,
    n_linear: int,
    signs: Any,
    scales: Any,
    A: Any,
    b: Any,
    blocks: Any,
    F: Any,
    Z: Any,
) -> bool:
    """Write features into F and scores, less the largest of each row, into Z (n, C), of zeros."""
    n, d = X.shape
    p, width = signs.shape[1:]
    T, u = np.empty(p * width, np.float32), np.empty(d, np.float32)
    for r in range(n):
        x = X[r]
        low, high = x[0], x[0]
        for i in range(d):
            low, high = min(low, x[i]), max(high, x[i])
        if not (low >= lowest and high <= highest):
            return False
        mean = sum_of(x) / np.float32(d)
        for i in range(d):
            u[i] = x[i] - mean
        if not _bring_to_unit(u, shortest, longest):
            return False
        first = 0  # block of absolute values
        if n_linear == d:
            F[r, :d] = u
        else:
            first = min(n_linear, 1)
        _transform_blocks(u, signs, T)
        for i in range(n_linear if first else 0):
            F[r, i] = T[i * width] * scales[0]
        at, end = n_linear, F.shape[1]
        for block in range(first, width):
            scale = scales[block]
            for i in range(min(p, end - at)):
                F[r, at + i] = abs(T[i * width + block] * scale)
            at = min(at + p, end)
    add_blocks(F, A, blocks, Z)
    for r in range(n):
        z = Z[r]
        high = z[0] + b[0]
        for i in range(len(b)):
            z[i] += b[i]
            high = max(high, z[i])
        for i in range(len(b)):
            z[i] -= high
    return True


@exact_kernel
def _see(
    E: Any, F: Any, shortest: Any, longest: Any, mean: Any, row_weight: Any, seen: Any
) -> bool:
    """Write what is seen of rows, of whose scores E (n, C) has the exponentials."""
    n, n_classes = E.shape
    for r in range(n):
        s = seen[r, :n_classes]
        total = sum_of(E[r])
        for i in range(n_classes):
            s[i] = E[r, i] / total - mean[i]
        if not _bring_to_unit(s, shortest, longest):
            return False
        for i in range(seen.shape[1] - n_classes):
            seen[r, n_classes + i] = row_weight * F[r, i]
    return True


# ------------------------------------------------------------------------------ in NumPy's order


@exact_kernel
def sum_of(x: Any) -> Any:
    """Sum numbers as NumPy does: pairwise, and by eights where they are few."""
    n = len(x)
    total = np.float32(0)
    if n < 8:
        for i in range(n):
            total += x[i]
        return total
    if n > PAIRWISE:
        half = n // 2
        half -= half % 8
        return sum_of(x[:half]) + sum_of(x[half:])
    r0, r1, r2, r3, r4, r5, r6, r7 = x[0], x[1], x[2], x[3], x[4], x[5], x[6], x[7]
    whole = n - n % 8
    for i in range(8, whole, 8):
        r0, r1, r2, r3 = r0 + x[i], r1 + x[i + 1], r2 + x[i + 2], r3 + x[i + 3]
        r4, r5, r6, r7 = r4 + x[i + 4], r5 + x[i + 5], r6 + x[i + 6], r7 + x[i + 7]
    total = ((r0 + r1) + (r2 + r3)) + ((r4 + r5) + (r6 + r7))
    for i in range(whole, n):
        total += x[i]
    return total


@exact_part
def sum_of_squares(x: Any) -> Any:
    """Sum squares as np.einsum does: four sums, of every fourth number, by sixteens."""
    n = len(x)
    s0, s1, s2, s3 = np.float32(0), np.float32(0), np.float32(0), np.float32(0)
    whole = n - n % 16
    for i in range(0, whole, 16):
        for j in (12, 8, 4, 0):
            a, b, c, d = x[i + j], x[i + j + 1], x[i + j + 2], x[i + j + 3]
            s0, s1, s2, s3 = s0 + a * a, s1 + b * b, s2 + c * c, s3 + d * d
    for i in range(whole, n - n % 4, 4):
        a, b, c, d = x[i], x[i + 1], x[i + 2], x[i + 3]
        s0, s1, s2, s3 = s0 + a * a, s1 + b * b, s2 + c * c, s3 + d * d
    rest = n - n % 4
    if rest < n:
        s0 += x[rest] * x[rest]
    if rest + 1 < n:
        s1 += x[rest + 1] * x[rest + 1]
    if rest + 2 < n:
        s2 += x[rest + 2] * x[rest + 2]
    return (s0 + s1) + (s2 + s3)


@exact_part
def _bring_to_unit(x: Any, shortest: Any, longest: Any) -> bool:
    """Divide numbers by their length, if that is an ordinary one."""
    length = np.float32(math.sqrt(sum_of_squares(x)))
    if not (length > shortest and length < longest):
        return False
    for i in range(len(x)):
        x[i] /= length
    return True


# ------------------------------------------------------------------------------- blocks of one row


@exact_part
def _two(T: Any, start: int, half: int, width: int) -> None:
    """Replace two runs of ``half`` coordinates each by their sum and difference."""
    size, at = half * width, start * width
    a, b = T[at : at + size], T[at + size : at + 2 * size]
    for j in range(size):
        above, below = a[j], b[j]
        a[j] = above + below
        b[j] = above - below


@exact_part
def _four(T: Any, start: int, quarter: int, width: int) -> None:
    """Transform four runs of ``quarter`` coordinates each."""
    size, at = quarter * width, start * width
    a, b = T[at : at + size], T[at + size : at + 2 * size]
    c, d = T[at + 2 * size : at + 3 * size], T[at + 3 * size : at + 4 * size]
    for j in range(size):
        plus, minus = a[j] + b[j], a[j] - b[j]
        other_plus, other_minus = c[j] + d[j], c[j] - d[j]
        a[j] = plus + other_plus
        b[j] = minus + other_minus
        c[j] = plus - other_plus
        d[j] = minus - other_minus


@exact_part
def _hadamard(T: Any, p: int, width: int) -> None:
    """Replace T (p · width,) by H_p T, in the order of steps of ``random_projections``."""
    size = p
    while size > NEAR:
        for start in range(0, p, size):
            _four(T, start, size // 4, width)
        size //= 4
    run = size
    while run >= 32:
        for start in range(0, p, run):
            _four(T, start, run // 4, width)
        run //= 4
    if run == 16:
        for start in range(0, p, run):
            _two(T, start, 8, width)
    for start in range(0, p, 8):
        _two(T, start, 1, width)
        _two(T, start + 2, 1, width)
        _two(T, start + 4, 1, width)
        _two(T, start + 6, 1, width)
        _two(T, start, 2, width)
        _two(T, start + 4, 2, width)
        _two(T, start, 4, width)


@exact_kernel
def _transform_blocks(u: Any, signs: Any, T: Any) -> None:
    """Write p times the projections of a row, block beside block, into T (p · width,)."""
    p, width = signs.shape[1:]
    for i in range(p):
        x = u[i] if i < len(u) else np.float32(0)
        for block in range(width):
            T[i * width + block] = signs[2, i, block] * x
    for turn in (1, 0):
        _hadamard(T, p, width)
        own = signs[turn].reshape(p * width)
        for j in range(p * width):
            T[j] *= own[j]
    _hadamard(T, p, width)
