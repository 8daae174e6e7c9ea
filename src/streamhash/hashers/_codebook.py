"""Target codes of classes: a class gets its own when it first appears, and keeps it for good."""

import numpy as np
from numpy.typing import NDArray

from streamhash.base import Matrix, Streaming
from streamhash.errors import InputError
from streamhash.hashers._sketch import random_rotation
from streamhash.kernels.learning.hadamard import hadamard_signs
from streamhash.learned import Array, Count, Table
from streamhash.parameters import Choice, Whole, parameter

N_CLASSES = Whole(1, 1 << 20)  # of a matrix that is laid out when the first class comes
KINDS = ("permuted", "natural", "random", "spread", "orthogonal")
CANDIDATES = 64  # codewords drawn at a time, to take the one farthest from those given


class Codebook(Streaming):
    """Targets in {−1, +1}ᵏ for classes numbered 0, 1, 2, ... as they come; any number of them.

    Rows of a Hadamard matrix of size r* (Sylvester's, r* the smallest power of two that is at least
    k and ``n_classes``) are as far from each other as can be. Where r* ≠ k a row is brought to k
    bits by the signs of a Gaussian projection, zero counting as −1. When all rows are given, a
    matrix of twice the size with a projection of its own takes over; targets already given stay.
    Signs of k columns of a random orthogonal matrix go the same way.

    Parameters
    ----------
    n_bits : int
        Length k of the targets.
    kind : "permuted", "natural", "random", "spread" or "orthogonal"
        Rows of the Hadamard matrix in a random order, or in their own; random codewords; the random
        ones that lie farthest from those given before, out of 64 drawn each time; or the signs of
        the first k columns of a random orthogonal matrix.
    n_classes : int, default=1
        Classes expected: the first matrix has at least so many rows.

    Attributes
    ----------
    targets_ : array (classes, k)
        The targets given so far.
    size_ : int
        Size r* of the present matrix; 0 before the first, and with random codewords.
    order_ : array (r*,)
        The order of its rows.
    projection_ : array (r*, k) or (0, k)
        The present projection; no rows where r* = k. Signs of the orthogonal matrix, if it is one.
    """

    n_bits: int = parameter(Whole(1), kw_only=False)
    kind: str = parameter(Choice(*KINDS), default="permuted")
    n_classes: int = parameter(N_CLASSES, default=1)
    learns = Table(
        targets_=Array(np.float32, "C", "n_bits", signs=True),
        size_=Count(),
        order_=Array(np.int64, "size_", low=0, below="size_", optional=True),
        projection_=Array(np.float32, "projected", "n_bits", optional=True),
    )

    def known_sizes(self) -> dict[str, int]:
        """Return the sizes in the table ``learns`` that follow from the rest."""
        size = getattr(self, "size_", 0)
        is_projected = size != self.n_bits or self.kind == "orthogonal"
        return {"projected": size if is_projected else 0}

    def check_learned(self) -> None:
        """Refuse what was learned if it does not fit the class's own statement, ``learns``."""
        super().check_learned()
        if not self.has_learned():
            return
        drawn = self.kind in ("random", "spread")
        is_power = self.size_ > 0 and self.size_ & (self.size_ - 1) == 0
        fits = is_power or self.kind == "orthogonal"
        has_matrix = fits and hasattr(self, "order_") and hasattr(self, "projection_")
        if self.size_ != 0 and (drawn or not has_matrix):
            raise InputError(f"Codebook.size_ is {self.size_}, and there is no such matrix")
        if not drawn and len(self.targets_) > self.size_:
            raise InputError(f"Codebook: {len(self.targets_)} targets of {self.size_} rows")

    def targets(self, numbers: NDArray[np.int32], random: np.random.Generator) -> Matrix:
        """Return the targets (n, k) of classes by their numbers; new ones get theirs now."""
        if not hasattr(self, "targets_"):
            self.targets_, self.size_ = np.empty((0, self.n_bits), np.float32), 0
        for number in range(len(self.targets_), int(numbers.max(initial=-1)) + 1):
            drawn = self.kind in ("random", "spread")
            target = self._codeword(random) if drawn else self._row(number, random)
            self.targets_ = np.vstack([self.targets_, target])
        return self.targets_[numbers]

    def _row(self, number: int, random: np.random.Generator) -> Matrix:
        """Return the target (k,) of the class with this number, growing the matrix if need be."""
        return (self._orthogonal if self.kind == "orthogonal" else self._hadamard)(number, random)

    def _orthogonal(self, number: int, random: np.random.Generator) -> Matrix:
        if number >= self.size_:
            self.size_ = max(self.n_bits, self.n_classes, 2 * self.size_)
            self.order_ = np.arange(self.size_)
            Q = random_rotation(self.size_, random)[:, : self.n_bits]
            self.projection_ = np.where(Q < 0, np.float32(-1), np.float32(1))
        row: Matrix = self.projection_[number]
        return row

    def _hadamard(self, number: int, random: np.random.Generator) -> Matrix:
        if number >= self.size_:
            rows = max(self.n_bits, self.n_classes, number + 1)
            self.size_ = 1 << (rows - 1).bit_length()
            natural = self.kind == "natural"
            self.order_ = np.arange(self.size_) if natural else random.permutation(self.size_)
            size = 0 if self.size_ == self.n_bits else self.size_
            self.projection_ = random.standard_normal((size, self.n_bits), dtype=np.float32)
        row = hadamard_signs(np.arange(self.size_), int(self.order_[number]))  # H = Hᵀ
        if self.size_ == self.n_bits:
            return row
        return np.where(row @ self.projection_ > 0, np.float32(1), np.float32(-1))

    def _codeword(self, random: np.random.Generator) -> Matrix:
        """Return a random codeword (k,), or the farthest from those given of several."""
        n = CANDIDATES if self.kind == "spread" else 1
        drawn = (2 * random.integers(2, size=(n, self.n_bits)) - 1).astype(np.float32)
        # (n,)  k − 2 × distance to the nearest of those given
        nearness = (drawn @ self.targets_.T).max(axis=1, initial=-np.inf)
        farthest: Matrix = drawn[nearness.argmin()]
        return farthest
