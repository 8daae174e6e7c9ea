"""Random Fourier features by Hadamard transforms: cosines of many frequencies, at p log p a block.

Frequencies come in blocks of p, the power of two that holds a row of d features (8 or more). With
H = Sylvester's matrix of order p divided by √p, and D₁, D₂, D₃ diagonals of random signs, H D₁ H D₂
H D₃ is an orthogonal matrix that is hard to tell from a random rotation (Yu et al., "Orthogonal
Random Features", NeurIPS 2016). Its rows, each stretched to the length of a Gaussian vector over
the bandwidth h, are frequencies ω with

    E[2 cos(ωᵀx + b) cos(ωᵀy + b)] ≈ exp(−‖x − y‖² / 2h²)        for phases b of any angle alike.

The compiled loop takes a few rows at a time, one beside the other, so that every step of the
transform is one addition of contiguous numbers and a row's features do not depend on its
neighbours.
"""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from streamhash.kernels.compile import kernel, part
from streamhash.kernels.learning.hadamard import hadamard

Floats = NDArray[np.float32]
Signs = NDArray[np.int8]
LANES = 16  # rows at a time
NEAR = 256  # of the p numbers of these rows, so many stay in the first-level cache
SMALLEST_BLOCK = 8  # what the last pass of the transform takes at once
# sin 2πs = s (c₀ + c₁ s² + ... + c₄ s⁸) to 5e-8 for −1/4 ≤ s ≤ 1/4.
SINE = tuple(map(np.float32, (6.283185, -41.341656, 81.601006, -76.54978, 39.536705)))


def block_size(d: int) -> int:
    """Return p, the power of two that holds d features.

    >>> block_size(1), block_size(784), block_size(1024)
    (8, 1024, 1024)
    """
    return max(SMALLEST_BLOCK, 1 << (d - 1).bit_length())


def plain_fourier_features(
    U: NDArray[Any], signs: Signs, lengths: Floats, phases: Floats
) -> NDArray[np.float64]:
    """Return √(2/m) cos(ωᵀu + b) (n, m) of rows U (n, d) in float64: the slow twin.

    ``signs`` (⌈m/p⌉, 3, p) are D₁, D₂ and D₃ of each block, ``lengths`` (m,) those of the
    frequencies, ``phases`` (m,) the b.
    """
    p, m = signs.shape[2], len(lengths)
    blocks = []
    for D in signs.astype(np.float64):
        Z = np.zeros((p, len(U)))
        Z[: U.shape[1]] = U.T
        for diagonal in D[::-1]:
            Z = hadamard(diagonal[:, None] * Z) / math.sqrt(p)
        blocks.append(Z.T)
    Z = np.concatenate(blocks, axis=1)[:, :m]
    features: NDArray[np.float64] = math.sqrt(2 / m) * np.cos(lengths * Z + phases)
    return features


def fourier_features(
    U: Floats, signs: Signs, lengths: Floats, phases: Floats, out: Floats, first: int = 0
) -> None:
    """Write what ``plain_fourier_features`` returns into columns first, ..., first + m − 1 of out.

    Compiled, in float32; ``out`` (n, ≥ first + m) is an array in C order, and the other columns
    stay as they are.
    """
    p, m = signs.shape[2], len(lengths)
    # Angles in whole turns: what lies beyond one is then taken off exactly. The root of p is that
    # of three matrices H.
    per_turn = 1 / (2 * math.pi)
    turns = (lengths * (per_turn * p**-1.5)).astype(np.float32)
    shifts = (phases * per_turn).astype(np.float32)
    rows = np.require(U, np.float32, "CW")  # a read-only array would be compiled for once more
    _fill(rows, signs.astype(np.float32), turns, shifts, math.sqrt(2 / m), out, first)


@part
def wave(turns: np.float32) -> np.float32:
    """Return the cosine of an angle in whole turns, to 2e-7."""
    quarter = np.float32(0.25)
    s = quarter - abs(turns - np.rint(turns))  # cos 2πt = sin 2π(1/4 − |t|)
    x = s * s
    return s * (SINE[0] + x * (SINE[1] + x * (SINE[2] + x * (SINE[3] + x * SINE[4]))))


@kernel
def cosines(turns: Floats, out: Floats) -> None:
    """Fill out (n,) with the cosines of angles (n,) in whole turns, as the features have them."""
    for i in range(len(turns)):
        out[i] = wave(turns[i])


@part
def _pass_of_two(T: Any, start: int, half: int) -> None:
    """Replace two runs of ``half`` rows each by their sum and difference."""
    size = half * LANES
    a = T[start * LANES : start * LANES + size]
    b = T[start * LANES + size : start * LANES + 2 * size]
    for j in range(size):
        above, below = a[j], b[j]
        a[j] = above + below
        b[j] = above - below


@part
def _pass_of_four(T: Any, start: int, quarter: int) -> None:
    """Transform four runs of ``quarter`` rows each: two steps in one pass through memory."""
    size, at = quarter * LANES, start * LANES
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
    """Transform eight rows that follow each other, then multiply each by its weight."""
    w0, w1, w2, w3 = weights[start], weights[start + 1], weights[start + 2], weights[start + 3]
    w4, w5, w6, w7 = weights[start + 4], weights[start + 5], weights[start + 6], weights[start + 7]
    R = T[start * LANES : (start + 8) * LANES]
    for j in range(LANES):
        r0, r1, r2, r3 = R[j], R[j + LANES], R[j + 2 * LANES], R[j + 3 * LANES]
        r4, r5, r6, r7 = R[j + 4 * LANES], R[j + 5 * LANES], R[j + 6 * LANES], R[j + 7 * LANES]
        r0, r1, r2, r3 = r0 + r1, r0 - r1, r2 + r3, r2 - r3
        r4, r5, r6, r7 = r4 + r5, r4 - r5, r6 + r7, r6 - r7
        r0, r1, r2, r3 = r0 + r2, r1 + r3, r0 - r2, r1 - r3
        r4, r5, r6, r7 = r4 + r6, r5 + r7, r4 - r6, r5 - r7
        R[j] = w0 * (r0 + r4)
        R[j + LANES] = w1 * (r1 + r5)
        R[j + 2 * LANES] = w2 * (r2 + r6)
        R[j + 3 * LANES] = w3 * (r3 + r7)
        R[j + 4 * LANES] = w4 * (r0 - r4)
        R[j + 5 * LANES] = w5 * (r1 - r5)
        R[j + 6 * LANES] = w6 * (r2 - r6)
        R[j + 7 * LANES] = w7 * (r3 - r7)


@kernel
def _transform(T: Any, weights: Any) -> None:
    """Replace T (p · LANES,) by diag(weights) H_p T, nothing divided by √p.

    The steps of a Hadamard transform may be taken in any order: those over long distances come
    first, then all the others on a piece that stays in the cache.
    """
    p = len(weights)
    size = p
    while size > NEAR:
        for start in range(0, p, size):
            _pass_of_two(T, start, size // 2)
        size //= 2
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


@kernel
def _fill(
    U: Any, signs: Any, turns: Any, shifts: Any, amplitude: float, out: Any, first: int
) -> None:
    n, d = U.shape
    n_blocks, _, p = signs.shape
    m = len(turns)
    height = np.float32(amplitude)
    rows = np.zeros(p * LANES, np.float32)  # rows of U, side by side
    T = np.empty(p * LANES, np.float32)
    scales = np.zeros(p, np.float32)
    chunk = np.empty(8 * LANES, np.float32)
    for top in range(0, n, LANES):
        filled = min(LANES, n - top)
        if filled < LANES:
            rows[:] = 0
        for r in range(filled):
            row = U[top + r]
            for i in range(d):
                rows[i * LANES + r] = row[i]
        for block in range(n_blocks):
            D = signs[block]
            for i in range(p):
                sign = D[2, i]
                source, target = rows[i * LANES : (i + 1) * LANES], T[i * LANES : (i + 1) * LANES]
                for j in range(LANES):
                    target[j] = sign * source[j]
            _transform(T, D[1])
            _transform(T, D[0])
            n_here = min(p, m - block * p)
            scales[:n_here] = turns[block * p : block * p + n_here]
            _transform(T, scales)
            for i in range(0, n_here, 8):
                width = min(8, n_here - i)
                for k in range(width):
                    shift = shifts[block * p + i + k]
                    source = T[(i + k) * LANES : (i + k + 1) * LANES]
                    target = chunk[k * LANES : (k + 1) * LANES]
                    for j in range(LANES):
                        target[j] = height * wave(source[j] + shift)
                column = first + block * p + i
                for r in range(filled):
                    for k in range(width):
                        out[top + r, column + k] = chunk[k * LANES + r]
