"""Random Fourier features by Hadamard transforms: cosines of many frequencies, at p log p a block.

Frequencies come in blocks of p, the power of two that holds a row of d features (32 or more). With
H = Sylvester's matrix of order p divided by √p, and D₁, D₂, D₃ diagonals of random signs, H D₁ H D₂
H D₃ is an orthogonal matrix that is hard to tell from a random rotation (Yu et al., "Orthogonal
Random Features", NeurIPS 2016). Its rows, each stretched to the length of a Gaussian vector over
the bandwidth h, are frequencies ω with

    E[2 cos(ωᵀx + b) cos(ωᵀy + b)] ≈ exp(−‖x − y‖² / 2h²)        for phases b of any angle alike.

The compiled loop takes ROWS rows at a time, one beside the other: T (p, ROWS) holds their first
coordinates, then their second ones, and so on. So every step of the transform adds contiguous
numbers, and a row's features do not depend on its neighbours.
"""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from streamhash.kernels.compile import kernel, part
from streamhash.kernels.learning.hadamard import hadamard

Floats = NDArray[np.float32]
Signs = NDArray[np.int8]
ROWS = 16  # rows at a time
NEAR = 256  # of p numbers a row, so many stay in the first-level cache: 16 KB for all rows
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


def plain_angles(U: NDArray[Any], signs: Signs, lengths: Floats) -> NDArray[np.float64]:
    """Return ωᵀu (n, m) of rows U (n, d) in float64; of the identity, the matrix of frequencies.

    ``signs`` (⌈m/p⌉, 3, p) are D₁, D₂ and D₃ of each block, ``lengths`` (m,) those of the ω.
    """
    p, m = signs.shape[2], len(lengths)
    blocks = []
    for D in signs.astype(np.float64):
        Z = np.zeros((p, len(U)))
        Z[: U.shape[1]] = U.T
        for diagonal in D[::-1]:
            Z = hadamard(diagonal[:, None] * Z) / math.sqrt(p)
        blocks.append(Z.T)
    angles: NDArray[np.float64] = np.concatenate(blocks, axis=1)[:, :m] * lengths
    return angles


def plain_fourier_features(
    U: NDArray[Any], signs: Signs, lengths: Floats, phases: Floats
) -> NDArray[np.float64]:
    """Return √(2/m) cos(ωᵀu + b) (n, m) for phases b (m,), in float64: the slow twin."""
    angles = plain_angles(U, signs, lengths)
    features: NDArray[np.float64] = math.sqrt(2 / len(phases)) * np.cos(angles + phases)
    return features


def fourier_features(
    U: Floats, signs: Signs, lengths: Floats, phases: Floats, out: Floats, first: int = 0
) -> None:
    """Write what ``plain_fourier_features`` returns into columns first, ..., first + m − 1 of out.

    Compiled, in float32; ``out`` (n, ≥ first + m) is an array in C order, and the other columns
    stay as they are.
    """
    n_blocks, _, p = signs.shape
    m = len(lengths)
    # Angles in whole turns: what lies beyond one is then taken off exactly. The power of p stands
    # for the three roots that the transforms leave out.
    turns, shifts = np.zeros((2, n_blocks * p), np.float32)
    turns[:m] = lengths * (p**-1.5 / (2 * math.pi))
    shifts[:m] = phases / (2 * math.pi)
    # An array that is read-only would be another type to the compiled loop.
    rows = np.require(U, np.float32, ["C", "W"])
    _fill(rows, signs.astype(np.float32), turns, shifts, m, math.sqrt(2 / m), out, first)


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
def _transform(T: Any, weights: Any) -> None:
    """Replace T (p · ROWS,) by diag(weights) H_p T, nothing divided by √p.

    The steps of a Hadamard transform may be taken in any order: those over long distances come
    first, then all the others on a piece that stays in the cache.
    """
    p = len(weights)
    size = p
    while size > NEAR:
        for start in range(0, p, size):
            _pass_of_four(T, start, size // 4)
        size //= 4
    for piece in range(0, p, size):
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
    """Turn eight angles of every row into features."""
    R = T[start * ROWS : (start + 8) * ROWS]
    own = shifts[start : start + 8]
    for j in range(ROWS):
        for i in range(8):
            R[i * ROWS + j] = height * wave(R[i * ROWS + j] + own[i])


@kernel
def _fill(
    U: Any, signs: Any, turns: Any, shifts: Any, m: int, amplitude: float, out: Any, first: int
) -> None:
    n, d = U.shape
    n_blocks, _, p = signs.shape
    height = np.float32(amplitude)
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
            _transform(T, signs[block, 1])
            _transform(T, signs[block, 0])
            _transform(T, turns[here])
            n_here = min(p, m - block * p)
            for start in range(0, n_here, 8):
                _wave_eight(T, start, shifts[here], height)
                column, width = first + block * p + start, min(8, n_here - start)
                for r in range(filled):
                    target = out[top + r, column : column + width]
                    for i in range(width):
                        target[i] = T[(start + i) * ROWS + r]
