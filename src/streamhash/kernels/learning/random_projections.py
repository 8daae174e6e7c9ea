"""Random projections by Hadamard transforms: many at p log p a block, and features made of them.

Directions come in blocks of p, the power of two that holds a row of d features (32 or more). With
H = Sylvester's matrix of order p divided by √p, and D₁, D₂, D₃ diagonals of random signs, H D₁ H D₂
H D₃ is an orthogonal matrix that is hard to tell from a random rotation (Yu et al., "Orthogonal
Random Features", NeurIPS 2016). Its rows times √p are directions r, and z = rᵀu has the mean square
‖u‖². Three kinds of features are made of m such z:

    linear      z / √m                      E ‖features‖² = ‖u‖²
    absolute    |z| / √m                    the same
    fourier     √(2/m) cos(ℓ z/√p + b)      inner products about exp(−‖u − v‖² / 2h²)

where ℓ is the length of a Gaussian vector over the bandwidth h, and the phases b are of any angle
alike.

The compiled loop takes ROWS rows at a time, one beside the other: T (p, ROWS) holds their first
coordinates, then their second ones, and so on. So every step of the transform adds contiguous
numbers, and a row's features do not depend on its neighbours.
"""

import math
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from streamhash.kernels.compile import kernel, part
from streamhash.kernels.learning.hadamard import hadamard

Floats = NDArray[np.float32]
Signs = NDArray[np.int8]
ROWS = 16  # rows at a time
LINEAR, ABSOLUTE, FOURIER = range(3)
NEAR = 256  # of p numbers a row, so many stay in the first-level cache: 16 KB for all rows
RUN = 32  # features of a row written at a time: whole lines of the cache
# With blocks of 8 the kernel of rows along an axis is off by up to .05, with 16 by .005, with 32 by
# less than .002: three rounds of so few signs are no random rotation.
SMALLEST_BLOCK = 32
# sin 2πs = s (c₀ + c₁ s² + ... + c₄ s⁸) to 5e-8 for −1/4 ≤ s ≤ 1/4.
SINE = tuple(map(np.float32, (6.283185, -41.341656, 81.601006, -76.54978, 39.536705)))


def block_size(d: int) -> int:
    """Return p, the power of two that holds d features.

    >>> block_size(1), block_size(784), block_size(1024)
    (32, 1024, 1024)
    """
    return max(SMALLEST_BLOCK, 1 << (d - 1).bit_length())


def plain_projections(U: NDArray[Any], signs: Signs, m: int) -> NDArray[np.float64]:
    """Return z (n, m) of rows U (n, d) in float64; of the identity, the matrix of directions.

    ``signs`` (⌈m/p⌉, 3, p) are D₁, D₂ and D₃ of each block.
    """
    p = signs.shape[2]
    blocks = []
    for D in signs.astype(np.float64):
        Z = np.zeros((p, len(U)))
        Z[: U.shape[1]] = U.T
        for diagonal in D[::-1]:
            Z = hadamard(diagonal[:, None] * Z) / math.sqrt(p)
        blocks.append(Z.T)
    z: NDArray[np.float64] = math.sqrt(p) * np.concatenate(blocks, axis=1)[:, :m]
    return z


def plain_linear_features(U: NDArray[Any], signs: Signs, m: int) -> NDArray[np.float64]:
    """Return z / √m (n, m), in float64: the slow twin."""
    return plain_projections(U, signs, m) / math.sqrt(m)


def plain_absolute_features(U: NDArray[Any], signs: Signs, m: int) -> NDArray[np.float64]:
    """Return |z| / √m (n, m), in float64: the slow twin."""
    return np.abs(plain_linear_features(U, signs, m))


def plain_fourier_features(
    U: NDArray[Any], signs: Signs, lengths: Floats, phases: Floats
) -> NDArray[np.float64]:
    """Return √(2/m) cos(ℓ z/√p + b) (n, m) for ℓ and b (m,), in float64: the slow twin."""
    m, p = len(lengths), signs.shape[2]
    angles = plain_projections(U, signs, m) * (lengths / math.sqrt(p))
    features: NDArray[np.float64] = math.sqrt(2 / m) * np.cos(angles + phases)
    return features


# The compiled ones write what their twins return into columns first, ..., first + m − 1 of ``out``,
# an array in C order, in float32; its other columns stay as they are.


def linear_features(U: Floats, signs: Signs, m: int, out: Floats, first: int = 0) -> None:
    """Write what ``plain_linear_features`` returns into ``out``."""
    _write(LINEAR, U, signs, _even_columns(len(signs), signs.shape[2], m), m, out, first)


def absolute_features(U: Floats, signs: Signs, m: int, out: Floats, first: int = 0) -> None:
    """Write what ``plain_absolute_features`` returns into ``out``."""
    _write(ABSOLUTE, U, signs, _even_columns(len(signs), signs.shape[2], m), m, out, first)


def fourier_features(
    U: Floats, signs: Signs, lengths: Floats, phases: Floats, out: Floats, first: int = 0
) -> None:
    """Write what ``plain_fourier_features`` returns into ``out``."""
    # Angles in whole turns: what lies beyond one is then taken off exactly.
    n_blocks, _, p = signs.shape
    turns = lengths / (2 * math.pi * math.sqrt(p))
    columns = _columns(n_blocks, p, turns, phases / (2 * math.pi))
    _write(FOURIER, U, signs, columns, len(lengths), out, first)


def _columns(n_blocks: int, p: int, scales: Any, shifts: Any) -> Floats:
    """Return what columns are multiplied by, and what is added to them (2, n_blocks · p)."""
    columns = np.zeros((2, n_blocks * p), np.float32)
    columns[:, : len(scales)] = scales / p, shifts  # z is what the transforms give, divided by p
    return columns


@lru_cache(8)  # for single rows, whose features take little longer than this
def _even_columns(n_blocks: int, p: int, m: int) -> Floats:
    return _columns(n_blocks, p, np.full(m, m**-0.5), np.zeros(m))


def _write(
    kind: int, U: Floats, signs: Signs, columns: Floats, m: int, out: Floats, first: int
) -> None:
    """Make m features of a kind of the columns of z."""
    # An array that is read-only would be another type to the compiled loop.
    rows = np.require(U, np.float32, ["C", "W"])
    _fill(kind, rows, signs.astype(np.float32), columns[0], columns[1], m, out, first)


@part
def wave(turns: Any) -> Any:
    """Return the cosine of an angle in whole turns, to 2e-7."""
    quarter = np.float32(0.25)
    s = quarter - abs(turns - np.rint(turns))  # cos 2πt = sin 2π(1/4 − |t|)
    x = s * s
    return s * (SINE[0] + x * (SINE[1] + x * (SINE[2] + x * (SINE[3] + x * SINE[4]))))


@part
def _pass_of_two(T: Any, start: int, half: int) -> None:
    """Replace two runs of ``half`` coordinates each by their sum and difference."""
    size = half * ROWS
    a = T[start * ROWS : start * ROWS + size]
    b = T[start * ROWS + size : start * ROWS + 2 * size]
    for j in range(size):
        above, below = a[j], b[j]
        a[j] = above + below
        b[j] = above - below


@part
def _pass_of_four(T: Any, start: int, quarter: int) -> None:
    """Transform four runs of ``quarter`` coordinates each: two steps in one pass through memory."""
    size, at = quarter * ROWS, start * ROWS
    a, b = T[at : at + size], T[at + size : at + 2 * size]
    c, d = T[at + 2 * size : at + 3 * size], T[at + 3 * size : at + 4 * size]
    for j in range(size):
        plus, minus = a[j] + b[j], a[j] - b[j]
        other_plus, other_minus = c[j] + d[j], c[j] - d[j]
        a[j] = plus + other_plus
        b[j] = minus + other_minus
        c[j] = plus - other_plus
        d[j] = minus - other_minus


@part
def _pass_of_eight(T: Any, start: int, weights: Any) -> None:
    """Transform eight coordinates that follow each other, and multiply each by its weight."""
    w0, w1, w2, w3 = weights[start], weights[start + 1], weights[start + 2], weights[start + 3]
    w4, w5, w6, w7 = weights[start + 4], weights[start + 5], weights[start + 6], weights[start + 7]
    R = T[start * ROWS : (start + 8) * ROWS]
    for j in range(ROWS):
        r0, r1, r2, r3 = R[j], R[j + ROWS], R[j + 2 * ROWS], R[j + 3 * ROWS]
        r4, r5, r6, r7 = R[j + 4 * ROWS], R[j + 5 * ROWS], R[j + 6 * ROWS], R[j + 7 * ROWS]
        r0, r1, r2, r3 = r0 + r1, r0 - r1, r2 + r3, r2 - r3
        r4, r5, r6, r7 = r4 + r5, r4 - r5, r6 + r7, r6 - r7
        r0, r1, r2, r3 = r0 + r2, r1 + r3, r0 - r2, r1 - r3
        r4, r5, r6, r7 = r4 + r6, r5 + r7, r4 - r6, r5 - r7
        R[j] = w0 * (r0 + r4)
        R[j + ROWS] = w1 * (r1 + r5)
        R[j + 2 * ROWS] = w2 * (r2 + r6)
        R[j + 3 * ROWS] = w3 * (r3 + r7)
        R[j + 4 * ROWS] = w4 * (r0 - r4)
        R[j + 5 * ROWS] = w5 * (r1 - r5)
        R[j + 6 * ROWS] = w6 * (r2 - r6)
        R[j + 7 * ROWS] = w7 * (r3 - r7)


@kernel
def _transform(T: Any, weights: Any, needed: int) -> None:
    """Replace T (p · ROWS,) by diag(weights) H_p T, nothing divided by √p, up to ``needed`` of p.

    The steps of a Hadamard transform may be taken in any order: those over long distances come
    first, then all the others on a piece that stays in the cache.
    """
    p = len(weights)
    size = p
    while size > NEAR:
        for start in range(0, p, size):
            _pass_of_four(T, start, size // 4)
        size //= 4
    for piece in range(0, needed, size):
        run = size
        while run >= 32:
            for start in range(piece, piece + size, run):
                _pass_of_four(T, start, run // 4)
            run //= 4
        if run == 16:
            for start in range(piece, piece + size, run):
                _pass_of_two(T, start, 8)
        for start in range(piece, piece + size, 8):
            _pass_of_eight(T, start, weights)


# The loops over eight coordinates below are unrolled first, which makes the bodies of those over
# ROWS long enough for LLVM to vectorise them instead of unrolling them too.


@part
def _flip_eight(rows: Any, start: int, signs: Any, T: Any) -> None:
    """Copy eight coordinates into T, each with its sign."""
    source = rows[start * ROWS : (start + 8) * ROWS]
    target = T[start * ROWS : (start + 8) * ROWS]
    own = signs[start : start + 8]
    for j in range(ROWS):
        for i in range(8):
            target[i * ROWS + j] = own[i] * source[i * ROWS + j]


@part
def _wave_eight(T: Any, start: int, shifts: Any, height: Any) -> None:
    """Turn eight angles of every row into cosines."""
    R = T[start * ROWS : (start + 8) * ROWS]
    own = shifts[start : start + 8]
    for j in range(ROWS):
        for i in range(8):
            R[i * ROWS + j] = height * wave(R[i * ROWS + j] + own[i])


@part
def _unsign_eight(T: Any, start: int) -> None:
    """Take the signs off eight coordinates of every row."""
    R = T[start * ROWS : (start + 8) * ROWS]
    for j in range(8 * ROWS):
        R[j] = abs(R[j])


@kernel
def _fill(
    kind: int, U: Any, signs: Any, weights: Any, shifts: Any, m: int, out: Any, first: int
) -> None:
    n, d = U.shape
    n_blocks, _, p = signs.shape
    height = np.float32(math.sqrt(2 / m))
    rows = np.zeros(p * ROWS, np.float32)  # (p, ROWS): rows of U side by side
    T = np.empty(p * ROWS, np.float32)
    for top in range(0, n, ROWS):
        filled = min(ROWS, n - top)
        if filled < ROWS:
            rows[:] = 0
        for r in range(filled):
            row = U[top + r]
            for i in range(d):
                rows[i * ROWS + r] = row[i]
        for block in range(n_blocks):
            here = slice(block * p, (block + 1) * p)
            for i in range(0, p, 8):
                _flip_eight(rows, i, signs[block, 2], T)
            n_here = min(p, m - block * p)
            _transform(T, signs[block, 1], p)
            _transform(T, signs[block, 0], p)
            _transform(T, weights[here], n_here)
            for start in range(0, n_here, RUN):
                width = min(RUN, n_here - start)
                for i in range(start, start + width, 8):
                    if kind == FOURIER:
                        _wave_eight(T, i, shifts[here], height)
                    elif kind == ABSOLUTE:
                        _unsign_eight(T, i)
                column = first + block * p + start
                for r in range(filled):
                    target = out[top + r, column : column + width]
                    for i in range(width):
                        target[i] = T[(start + i) * ROWS + r]
