"""A radial-basis kernel map whose width follows the distances between its anchors."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from streamhash.base import Matrix, StreamPart
from streamhash.parameters import Number, Whole

__all__ = ["AnchorsRule", "RadialMap"]


class AnchorsRule:
    """How many anchors to take from the stream, or the anchors themselves."""

    def allows(self, value: Any) -> bool:
        """Whether ``value`` keeps the rule."""
        if not isinstance(value, np.ndarray):
            return Whole(1).allows(value)
        numbers = value.ndim == 2 and value.size > 0 and value.dtype.kind in "fiu"
        return bool(numbers and np.isfinite(value).all())

    def __str__(self) -> str:
        return "a whole number from 1 up, or a finite array (anchors, features)"


class RadialMap(StreamPart):
    """Map rows to exp(−‖x − a‖² / 2η) for anchors a, η from the anchors' mean squared distance.

    The anchors are the first instances of the stream, as they come: a feature whose anchor has not
    come yet is 0, and once all have come the map stays as it is. Nothing looks ahead, unless rows
    to be the anchors are given by ``set_anchors``.

    Parameters
    ----------
    n_anchors : int, default=300
        Number of anchors m, the dimension of the map.
    divisor : float, default=6.0
        η is the mean squared distance of two anchors divided by this.

    Attributes
    ----------
    anchors_ : array (m, d)
        The anchors, seen from the first row; those still to come are zero.
    origin_ : array (d,)
        The first row: distances are taken from here, lest features far from zero lose digits.
    n_filled_ : int
        How many anchors have come.
    sum_, squares_ : array (d,), float
        Sum of the anchors, and of their squared lengths, as seen from the origin.
    """

    anchors_: Matrix
    origin_: Matrix
    n_filled_: int
    sum_: NDArray[np.float64]
    squares_: float

    rules = {"n_anchors": Whole(1), "divisor": Number(above=0)}  # noqa: RUF012

    def __init__(self, n_anchors: int = 300, *, divisor: float = 6.0) -> None:
        self.n_anchors = n_anchors
        self.divisor = divisor

    def learn_rows(self, X: Matrix) -> None:
        """Take rows (n, d) as anchors while there is room."""
        self.follow_rows(X[: self.n_anchors - getattr(self, "n_filled_", 0)])

    def follow_rows(self, X: Matrix) -> Matrix:
        """Learn rows (n, d) one after the other, and map each (n, m) as it comes."""
        filled = getattr(self, "n_filled_", 0)
        n_new = min(len(X), self.n_anchors - filled)
        if n_new == 0:
            return self.map_rows(X)
        if filled == 0:
            self.origin_ = X[0].copy()
            self.anchors_ = np.zeros((self.n_anchors, X.shape[1]), np.float32)
            self.sum_, self.squares_ = np.zeros(X.shape[1]), 0.0
        new = X[:n_new] - self.origin_
        anchors = self.anchors_.copy()
        anchors[filled : filled + n_new] = new
        # (n_new, d) and (n_new,): as they were after each new row
        sums = self.sum_ + np.cumsum(new, axis=0, dtype=np.float64)
        squares = self.squares_ + np.cumsum(np.square(new, dtype=np.float64).sum(axis=1))
        counts = np.arange(filled + 1, filled + n_new + 1)
        self.anchors_, self.n_filled_ = anchors, filled + n_new
        self.sum_, self.squares_ = sums[-1], float(squares[-1])
        inverse = self._inverse(counts, sums, squares)
        return np.concatenate(
            [self._features(X[:n_new], counts, inverse), self.map_rows(X[n_new:])]
        )

    def set_anchors(self, rows: Matrix) -> None:
        """Take these rows (m, d) as the anchors."""
        self.follow_rows(rows)

    def map_rows(self, X: Matrix) -> Matrix:
        """Map rows (n, d) to kernel values (n, m)."""
        there = np.array([self.n_filled_])
        inverse = self._inverse(there, self.sum_[None], np.array([self.squares_]))
        return self._features(X, there, inverse)

    def _inverse(self, counts: NDArray[Any], sums: NDArray[Any], squares: NDArray[Any]) -> Matrix:
        """1 / 2η for so many anchors with these sums; 0 if they are all the same."""
        pairs = counts * (counts - 1.0)
        # Σ_{i≠j} ‖a_i − a_j‖² = 2 (n Σ ‖a‖² − ‖Σ a‖²)
        apart = 2 * (counts * squares - np.square(sums).sum(axis=1))
        known = apart > 1e-12 * counts * squares  # what is less is rounding
        eta = np.divide(apart, pairs * self.divisor, out=np.ones(len(counts)), where=known)
        inverse: Matrix = np.where(known, 0.5 / eta, 0.0).astype(np.float32)
        return inverse

    def _features(self, X: Matrix, counts: NDArray[Any], inverse: Matrix) -> Matrix:
        """Kernel values (n, m); row i sees the first counts[i] anchors and its own width."""
        rows = X - self.origin_
        lengths = np.einsum("ij,ij->i", rows, rows)[:, None]  # (n, 1)
        features = np.asarray(rows @ self.anchors_.T, np.float32)  # (n, m)
        features *= -2
        features += lengths
        features += np.einsum("ij,ij->i", self.anchors_, self.anchors_)
        np.maximum(features, 0, out=features)  # ‖x − a‖²
        features *= -inverse[:, None]
        np.exp(features, out=features)
        if len(counts) > 1 or counts[0] < self.n_anchors:
            features *= np.arange(self.n_anchors) < counts[:, None]
        return features
