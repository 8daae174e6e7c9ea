"""Sketches of a stream: a few rows S whose SᵀS stands for AᵀA of all rows A that went by.

``FrequentDirections`` keeps l rows and, when they are full, takes their least important half away
(Liberty, KDD 2013; SketchHash). ``FastFrequentDirections`` first mixes a chunk of m rows into l/2
by a subsampled randomised Hadamard transform, and shrinks once a chunk (FROSH). ``centred`` makes
the rows that keep a sketch exactly centred on the mean of a stream that is never seen whole.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from streamhash.base import Matrix, Streaming
from streamhash.errors import InputError
from streamhash.features import unit_length
from streamhash.kernels.learning.hadamard import fold_block, hadamard_signs
from streamhash.learned import Array, Count, Generator, Table
from streamhash.parameters import SEED, Maybe, Rule, Whole, parameter

Doubles = NDArray[np.float64]
GUIDE_TOLERANCE = 1e-5  # of the largest eigenvalue of M, summed up in float32
RANK_TOLERANCE = 1e-10  # of the largest squared singular value: what float32 rows can carry


EVEN = Rule(
    "an even number from 2 to 1048576",
    lambda value: Whole(2, 1 << 20).allows(value) and value % 2 == 0,
)


class FrequentDirections(Streaming):
    """A sketch S of l rows: 0 ⪯ AᵀA − SᵀS ⪯ (2/l) ‖A‖² for any rows A, whatever their order.

    Rows go in as they are while there is room. When S is full, its squared singular values are
    lowered by the (l/2 + 1)-th, which empties half of it: one decomposition in l/2 rows. Putting
    rows in one by one, or many at once, is the same.

    Parameters
    ----------
    size : int, default=200
        Rows l of the sketch, even.

    Attributes
    ----------
    S_ : array (l, d)
        The sketch; rows that are still free are zero.
    n_filled_ : int
        How many rows are in use.
    """

    size: int = parameter(EVEN, default=200, kw_only=False)
    learns = Table(
        S_=Array(np.float32, "size", "d"),
        n_filled_=Count(0, "size"),
    )

    def add_rows(self, F: Matrix) -> None:
        """Put rows (n, d) in."""
        # A copy, since learned arrays are replaced and never written into.
        S = self.S_.copy() if hasattr(self, "S_") else np.zeros((self.size, F.shape[1]), np.float32)
        filled, start = getattr(self, "n_filled_", 0), 0
        while start < len(F):
            if filled == self.size:
                shrink(S)
                filled = self.size // 2
            n_new = min(self.size - filled, len(F) - start)
            S[filled : filled + n_new] = F[start : start + n_new]
            filled, start = filled + n_new, start + n_new
        self.S_: Matrix = S
        self.n_filled_ = filled

    def rows(self) -> Matrix:
        """Return the rows whose SᵀS stands for the stream's AᵀA."""
        return self.S_[: self.n_filled_]


class FastFrequentDirections(FrequentDirections):
    """Frequent directions of rows that a randomised Hadamard transform has mixed, m into h ≤ l/2.

    For each chunk F of m rows, with fresh random signs ε and h rows Ω drawn of the Hadamard matrix
    H_m, Y = h^−½ H_m[Ω] diag(ε) F stands for it: YᵀY is FᵀF in expectation. H_m is the Kronecker
    product of H_{m/b} and H_b; so rows are taken in blocks of b: the block is transformed by H_b,
    and row r = r₁ b + r₂ of the outcome is row r₂ of that, times H_{m/b}[r₁, block], added up over
    the blocks. No chunk is ever stored: Y grows in the lower half of S, beside it wait fewer than b
    rows. When a chunk is full, S is shrunk, which empties its lower half.

    Mixing blurs strong directions most. With ``guides`` q > 0, what the first q directions G of S
    say of a chunk is gathered exactly: C = F Gᵀ, K = Cᵀ F and M = Cᵀ C. Then
    FᵀF = Kᵀ M⁻¹ K + Fᵀ (1 − P) F, with P the projection onto the columns of C: q rows M^−½ K for
    the first term, and the h = l/2 − q rows Y − (Y Gᵀ) M⁻¹ K, the mixture of (1 − P) F, for the
    second. To have guides from the start, the first l rows go in unmixed.

    Parameters
    ----------
    size : int, default=200
        Rows l of the sketch, even.
    chunk : int or None, default=None
        Rows m of a chunk, a power of two of at least l/2 (else the next one is taken). None: the
        smallest of at least d.
    guides : int, default=0
        Directions q that are gathered exactly, below l/2.
    random_state : int, RandomState or None
        Seed of signs and rows.

    Attributes
    ----------
    S_ : array (l, d)
        The sketch of the chunks before (l/2 rows); K (q) and Y (h) of the current one. While the
        first rows come, those.
    n_filled_ : int
        How many of the first l rows have come; only if there are guides.
    M_ : array (q, q)
        M of the current chunk.
    waiting_ : array (b, d)
        The rows of the block that is not full yet, zero where they are still to come.
    n_in_chunk_ : int
        Rows of the current chunk so far, those that wait included.
    flips_ : array (m,)
        Signs ε of the current chunk.
    picked_ : array (h,)
        Rows Ω of H_m of the current chunk.
    random_ : Generator
        Where the next ones come from.
    """

    chunk: int | None = parameter(Maybe(Whole(1, 1 << 24)), default=None)
    guides: int = parameter(Whole(0), default=0)
    random_state: Any = parameter(SEED, default=None)
    learns = Table(
        M_=Array(np.float32, "guides", "guides"),
        waiting_=Array(np.float32, "b", "d"),
        n_in_chunk_=Count(),
        flips_=Array(np.int8, "m", signs=True),
        picked_=Array(np.int64, "h", low=0, below="m"),
        random_=Generator(),
    )

    def known_sizes(self) -> dict[str, int]:
        """Return the sizes in the table ``learns`` that follow from the rest."""
        S = getattr(self, "S_", None)
        h = self.size // 2 - self.guides
        if not isinstance(S, np.ndarray) or S.ndim != 2:
            return {"h": h}
        m, b = self._sizes(S.shape[1])
        return {"h": h, "m": m, "b": b}

    def check_learned(self) -> None:
        """Refuse what was learned if it does not fit the class's own statement, ``learns``."""
        super().check_learned()
        if self.has_learned() and (
            self.n_in_chunk_ >= len(self.flips_)
            or (not self.guides and self.n_filled_ < self.size)
            or (self.n_filled_ < self.size and self.n_in_chunk_)
        ):
            raise InputError("FastFrequentDirections: more rows are in a chunk than can be")

    def check_parameters(self) -> None:
        """Refuse parameters that break their rules."""
        super().check_parameters()
        if 2 * self.guides >= self.size:
            raise InputError(
                f"FastFrequentDirections: guides={self.guides} must be less than half of "
                f"size={self.size}."
            )

    def _sizes(self, d: int) -> tuple[int, int]:
        """Return the rows m of a chunk and b of a block."""
        half = self.size // 2
        m = next_power_of_two(max(half, d if self.chunk is None else self.chunk))
        return m, min(m, next_power_of_two(half + 1) // 2)  # the largest power of two up to l/2

    def _begin(self, d: int) -> None:
        m, b = self._sizes(d)
        self.S_ = np.zeros((self.size, d), np.float32)
        self.n_filled_ = 0 if self.guides else self.size
        self.M_: Matrix = np.zeros((self.guides, self.guides), np.float32)
        self.waiting_: Matrix = np.zeros((b, d), np.float32)
        self.random_ = np.random.default_rng(self.random_state)
        self._draw(m)

    def add_rows(self, F: Matrix) -> None:
        """Put rows (n, d) in."""
        if not hasattr(self, "S_"):
            self._begin(F.shape[1])
        S, M, waiting = self.S_.copy(), self.M_.copy(), self.waiting_.copy()
        F = self._first_rows(F, S)
        b, m, start = len(waiting), len(self.flips_), 0
        while start < len(F):
            there = self.n_in_chunk_ % b
            new = F[start : start + b - there]
            if len(new) == b:
                self._fold(new, self.n_in_chunk_ // b, S, M)
            else:
                waiting[there : there + len(new)] = new
                if there + len(new) == b:
                    self._fold(waiting, self.n_in_chunk_ // b, S, M)
                    waiting[:] = 0
            start += len(new)
            self.n_in_chunk_ += len(new)
            if self.n_in_chunk_ == m:
                self._join(S, M)
                shrink(S)
                M[:] = 0
                self._draw(m)
        self.S_, self.M_, self.waiting_ = S, M, waiting

    def rows(self) -> Matrix:
        """Return S with the chunk so far: the rows that are still to come count as zeros."""
        if self.n_filled_ < self.size:
            return self.S_[: self.n_filled_]
        n_waiting = self.n_in_chunk_ % len(self.waiting_)
        if not n_waiting and not self.guides:
            return self.S_
        S, M = self.S_.copy(), self.M_.copy()
        if n_waiting:
            self._fold(self.waiting_[:n_waiting], self.n_in_chunk_ // len(self.waiting_), S, M)
        self._join(S, M)
        return S

    def _draw(self, m: int) -> None:
        self.n_in_chunk_ = 0
        self.flips_: NDArray[np.int8] = (2 * self.random_.integers(2, size=m) - 1).astype(
            np.int8
        )  # ε
        h = self.size // 2 - self.guides
        self.picked_ = self.random_.choice(m, h, replace=False)  # Ω

    def _first_rows(self, F: Matrix, S: Matrix) -> Matrix:
        """Fill S with the first rows of the stream, and return those beyond."""
        n_new = min(self.size - self.n_filled_, len(F))
        if n_new:
            S[self.n_filled_ : self.n_filled_ + n_new] = F[:n_new]
            self.n_filled_ += n_new
            if self.n_filled_ == self.size:
                shrink(S)
        return F[n_new:]

    def _fold(self, F: Matrix, block: int, S: Matrix, M: Matrix) -> None:
        """Add what a block of rows (up to b, d) is in K, M and Y."""
        b, q, half = len(self.waiting_), self.guides, self.size // 2
        r1, r2 = np.divmod(self.picked_, b)  # H_m[r] = H_{m/b}[r₁] ⊗ H_b[r₂]
        weights = hadamard_signs(r1, block) * np.float32(len(r1) ** -0.5)
        flips = self.flips_[block * b : (block + 1) * b].astype(np.float32)
        fold_block(F, flips, r2, weights, S[half + q :])
        if q:
            C = F @ unit_length(S[:q]).T  # (n, q)
            S[half : half + q] += C.T @ F
            M += C.T @ C

    def _join(self, S: Matrix, M: Matrix) -> None:
        """Turn K and Y in S, in place, into rows that stand for the chunk."""
        q, half = self.guides, self.size // 2
        if not q:
            return
        G, K, Y = unit_length(S[:q]), S[half : half + q], S[half + q :]
        squares, U = np.linalg.eigh(M.astype(np.float64))
        there = squares > GUIDE_TOLERANCE * squares[-1]  # the others are left to the mixture
        U = (U[:, there] / np.sqrt(squares[there])).astype(np.float32)  # M⁻¹ = U Uᵀ
        exact = U.T @ K  # (q or fewer, d)
        Y -= (Y @ G.T @ U) @ exact
        K[:] = 0
        K[: len(exact)] = exact


def shrink(S: Matrix) -> None:
    """Lower the squared singular values of S (l, d), in place, by the (l/2 + 1)-th of them."""
    half = len(S) // 2
    squares, U = _decompose(S.astype(np.float64))
    # Σ' Vᵀ = (Σ'/Σ) Uᵀ S with Σ'² = max(Σ² − δ, 0)
    ratios = np.zeros(half)
    there = squares[:half] > RANK_TOLERANCE * squares[0]
    ratios[there] = np.sqrt(1 - squares[half] / squares[:half][there])  # (l/2,)
    S[:half] = (U[:, :half] * ratios).T.astype(np.float32) @ S  # (l/2, d)
    S[half:] = 0


def principal_directions(S: Matrix, k: int) -> Doubles:
    """Return the first k right singular vectors of S (n, d) as columns, fewer if S has lower rank.

    Of the two signs each may have, the one that makes its largest entry positive.
    """
    rows = _nonzero(S).astype(np.float64)
    if not len(rows):
        return np.zeros((S.shape[1], 0))
    squares, U = _decompose(rows)
    rank = min(k, int((squares > RANK_TOLERANCE * squares[0]).sum()))
    V: Doubles = rows.T @ (U[:, :rank] / np.sqrt(squares[:rank]))  # (d, rank)
    largest = np.abs(V).argmax(axis=0)
    V *= np.sign(V[largest, np.arange(rank)])
    return V


def _decompose(S: Doubles) -> tuple[Doubles, Doubles]:
    """Return squared singular values, largest first, and left singular vectors of S (n, d)."""
    squares, U = np.linalg.eigh(S @ S.T)
    return np.maximum(squares[::-1], 0), U[:, ::-1]


def _nonzero(F: Matrix) -> Matrix:
    there = F.any(axis=1)
    return F if there.all() else F[there]


def centred(A: Matrix, mean: Doubles, n_before: int) -> tuple[Matrix, Doubles]:
    """Return the rows that bring a stage A (n, d) into a centred sketch, and the new mean.

    The stage about its own mean, and one row more: c = √(N n / (N + n)) (m_A − μ). The scatter of
    both together about their common mean is the sum of both scatters and c cᵀ, so the sketch is
    centred as if the whole stream had been there at once.
    """
    n = len(A)
    own = A.mean(axis=0, dtype=np.float64)  # m_A (d,)
    shift = own - mean
    F = np.zeros((n + 1, A.shape[1]), np.float32)
    np.subtract(A, own.astype(np.float32), out=F[:n])
    if n_before:
        F[n] = np.sqrt(n_before * n / (n_before + n)) * shift  # c (d,)
    return _nonzero(F), mean + n / (n_before + n) * shift


def random_rotation(k: int, random: np.random.Generator) -> Doubles:
    """Draw a k × k orthogonal matrix, each as likely as any other."""
    Q, upper = np.linalg.qr(random.standard_normal((k, k)))
    rotation: Doubles = Q * np.sign(np.diag(upper))
    return rotation


def polar(M: NDArray[Any]) -> Doubles:
    """Return the matrix with orthonormal rows that is nearest to M (p, k), p ≤ k."""
    P, _, Qt = np.linalg.svd(M, full_matrices=False)
    nearest: Doubles = P @ Qt
    return nearest


def turned_to_signs(Z: Matrix, T: Doubles, turns: int) -> Doubles:
    """Turn T (p, k), whose rows stay orthonormal, so that Z T nears its own signs: ITQ's passes."""
    for _ in range(turns):
        B = np.where(Z @ T.astype(np.float32) > 0, np.float32(1), np.float32(-1))  # (n, k)
        T = polar(Z.T @ B)  # (p, k)  R = P Qᵀ of the SVD P Ω Qᵀ
    return T


def next_power_of_two(n: int) -> int:
    """Return the smallest power of two of at least n."""
    return 1 << (n - 1).bit_length()
