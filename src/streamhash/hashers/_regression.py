"""Hash functions by ridge regression from all rows so far to codes: the last step of several."""

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from streamhash.base import Matrix, StreamPart
from streamhash.features import CenterScale, NormalizedHasher, RadialMap
from streamhash.learned import Array, Table
from streamhash.parameters import Maybe, Number, Span, Values, Whole, parameter
from streamhash.threads import single_threaded_blas

SMALLEST = 1e-14  # eigenvalue, beside the largest, that float64 can still tell from zero


class RegressionHasher(NormalizedHasher):
    """A hasher whose hash functions are W = (ZᵀZ + δI)⁻¹ ZᵀB, over all rows Z and their codes B.

    Rows are centred and of unit length, if ``normalize``; with ``n_anchors`` they then go through a
    kernel map, and its features are centred. Both sums are kept in float64, and W is worked out
    when it is asked for. A method says what B is: ``_start`` calls ``_start_sums``, ``_learn`` ends
    with ``_add``.
    """

    n_anchors: int | None = parameter(Maybe(Whole(1)), default=1000, search=Values(None, 1000))
    divisor: float = parameter(Number(above=0), default=4.0, search=Span(1, 12))
    ridge: float = parameter(Number(above=0), default=0.1, search=Span(0.001, 10))

    learns = Table(
        gram_=Array(np.float64, "D", "D"),
        cross_=Array(np.float64, "D", "k"),
        W_=Array(np.float32, "D", "k", optional=True),
    )

    def _feature_parts(self, d: int) -> list[StreamPart]:
        before = super()._feature_parts(d)
        if self.n_anchors is None:
            return before
        kernel = RadialMap(self.n_anchors, divisor=self.divisor)
        return [*before, kernel, CenterScale(scale=None)]

    def _start_sums(self, d: int) -> None:
        self.gram_ = np.zeros((d, d))
        self.cross_ = np.zeros((d, self.n_bits))

    def _add(self, Z: Matrix, B: NDArray[Any]) -> None:
        """Add rows (n, D) and their codes (n, k) to the sums."""
        self.gram_ = self.gram_ + Z.T @ Z
        self.cross_ = self.cross_ + Z.T @ B.astype(np.float32)
        self.__dict__.pop("W_", None)

    def settle(self) -> Self:
        """Work out the hash functions from the sums, if rows have come since."""
        if hasattr(self, "gram_") and not hasattr(self, "W_"):
            with single_threaded_blas():
                W = solve_ridge(self.gram_, self.cross_, self.ridge)
            self.W_: Matrix = W.astype(np.float32)
        return self

    def project_rows(self, X: Matrix) -> Matrix:
        """Project dense rows that were checked before."""
        self.settle()
        return super().project_rows(X)

    def _described(self) -> Any:
        self.settle()
        return super()._described()


def solve_ridge(
    A: NDArray[np.float64], B: NDArray[np.float64], ridge: float
) -> NDArray[np.float64]:
    """Return (A + δI)⁻¹ B for a Gram matrix A (D, D), however small δ is beside it."""
    ridged = A + ridge * np.eye(len(A))
    try:
        solved: NDArray[np.float64] = linalg.cho_solve(linalg.cho_factor(ridged), B)
    except np.linalg.LinAlgError:
        values, vectors = linalg.eigh(ridged)
        values = np.maximum(values, max(values[-1] * SMALLEST, ridge))
        solved = vectors @ (vectors.T @ B / values[:, None])
    return solved


def stage_regression(X: Matrix, B: NDArray[Any], ridge: float) -> Matrix:
    """Return (XᵀX + δI)⁻¹ XᵀB (d, k) of a stage alone, in the smaller of its two forms."""
    n, d = X.shape
    targets = B.astype(np.float32)
    A, T = (X @ X.T, targets) if n < d else (X.T @ X, X.T @ targets)
    ridged = A + np.float32(ridge) * np.eye(len(A), dtype=np.float32)
    solved: Matrix = linalg.solve(ridged, T, assume_a="pos", check_finite=False)
    return X.T @ solved if n < d else solved
