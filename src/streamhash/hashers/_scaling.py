"""Centre and scale learned online, so that a method need not know the units of the features."""

import numpy as np
from numpy.typing import NDArray

from streamhash.base import Matrix, StreamPart
from streamhash.parameters import Choice

__all__ = ["CenterScale", "unit_length"]


class CenterScale(StreamPart):
    """Take off the running mean, then scale: online, and exactly scale-free.

    Mean and mean squared distance from it are those of all rows so far, gathered in float64 by
    merging each piece with what was before (Chan, Golub and LeVeque 1979). Features times 1024, or
    divided by it, give the same output to the last bit.

    Parameters
    ----------
    center : bool, default=True
        Take off the running mean.
    scale : "rms", "unit" or None, default="rms"
        Divide by the root mean square distance from the mean; or bring each row to unit length
        (a row of zeros stays so); or neither.

    Attributes
    ----------
    n_rows_ : int
        Rows so far.
    mean_ : array (d,)
        Their mean, float64.
    spread_ : float
        Their mean squared distance from it, if the scale is "rms".
    """

    n_rows_: int
    mean_: NDArray[np.float64]
    spread_: float

    rules = {  # noqa: RUF012
        "center": Choice(True, False),
        "scale": Choice("rms", "unit", None),
    }

    def __init__(self, *, center: bool = True, scale: str | None = "rms") -> None:
        self.center = center
        self.scale = scale

    def learn_rows(self, X: Matrix) -> None:
        """Merge the mean and spread of these rows (n, d) into the running ones."""
        share = len(X) / (getattr(self, "n_rows_", 0) + len(X))
        mean = X.mean(axis=0, dtype=np.float64)
        before = getattr(self, "mean_", mean)
        shift = mean - before
        if self.scale == "rms":
            spread = float(np.square(X - mean.astype(np.float32)).sum(dtype=np.float64) / len(X))
            between = share * (1 - share) * float(shift @ shift)
            self.spread_ = (1 - share) * getattr(self, "spread_", 0.0) + share * spread + between
        self.mean_ = before + share * shift
        self.n_rows_ = getattr(self, "n_rows_", 0) + len(X)

    def follow_rows(self, X: Matrix) -> Matrix:
        """Learn rows (n, d) one after the other, and map each by what is known as it comes.

        So a method that learns one by one gets the same rows however the stream is cut.
        """
        if self.scale == "rms" or not self.center:
            return np.concatenate([self._follow_one(X[i : i + 1]) for i in range(len(X))])
        before = getattr(self, "n_rows_", 0)
        mean = getattr(self, "mean_", X[0].astype(np.float64))
        away = X - mean  # (n, d)  float64
        counts = np.arange(before + 1, before + len(X) + 1)[:, None]
        shifts = np.cumsum(away, axis=0) / counts  # (n, d)  how far each row has moved the mean
        self.mean_ = mean + shifts[-1]
        self.n_rows_ = before + len(X)
        rows: Matrix = (away - shifts).astype(np.float32)
        return unit_length(rows) if self.scale == "unit" else rows

    def _follow_one(self, row: Matrix) -> Matrix:
        self.learn_rows(row)
        return self.map_rows(row)

    def map_rows(self, X: Matrix) -> Matrix:
        """Centre and scale rows (n, d)."""
        if self.center:
            X = X - self.mean_.astype(np.float32)
        if self.scale == "rms":
            X = X / np.float32(self.spread_**0.5 or 1.0)
        elif self.scale == "unit":
            X = unit_length(X)
        return X


def unit_length(X: Matrix) -> Matrix:
    """Bring rows to unit length; a row of zeros stays so."""
    lengths = np.sqrt(np.einsum("ij,ij->i", X, X))
    lengths[lengths == 0] = 1
    rows: Matrix = X / lengths[:, None]
    return rows
