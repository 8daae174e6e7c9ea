"""A radial-basis kernel map on anchors taken from the stream's first instances."""

import numpy as np

from streamhash.base import Matrix, StreamPart
from streamhash.parameters import Number, Whole

__all__ = ["AnchorMap"]


class AnchorMap(StreamPart):
    """Map rows to exp(−‖x − a‖² / h) for anchors a, the first instances of the stream.

    No looking ahead: the first ``n_anchors`` rows become the anchors as they come, and a feature
    whose anchor has not come yet is 0. The width h is ``bandwidth`` times the mean squared distance
    between two rows, settled with the anchors: so the map is scale-free.

    Parameters
    ----------
    n_anchors : int, default=1000
        Number of anchors m, the dimension of the map.
    bandwidth : float, default=0.25
        Width h in units of the mean squared distance between two rows.

    Attributes
    ----------
    anchors_ : array (m, d)
        The anchors; those still to come are zero.
    n_filled_ : int
        How many have come.
    mean_square_ : float
        Mean squared distance between two of the rows that the anchors came from.
    """

    anchors_: Matrix
    n_filled_: int
    mean_square_: float

    rules = {"n_anchors": Whole(1), "bandwidth": Number(above=0)}  # noqa: RUF012

    def __init__(self, n_anchors: int = 1000, *, bandwidth: float = 0.25) -> None:
        self.n_anchors = n_anchors
        self.bandwidth = bandwidth

    def learn_rows(self, X: Matrix) -> None:
        """Take rows (n, d) as anchors while there is room."""
        filled = getattr(self, "n_filled_", 0)
        new = X[: self.n_anchors - filled]
        if not len(new):
            return
        if filled:
            anchors = self.anchors_.copy()
        else:
            anchors = np.zeros((self.n_anchors, X.shape[1]), np.float32)
        anchors[filled : filled + len(new)] = new
        self.anchors_ = anchors
        self.n_filled_ = filled + len(new)
        there = anchors[: self.n_filled_].astype(np.float64)
        # Mean over all pairs of ‖a − b‖² is twice the mean squared distance from the mean.
        self.mean_square_ = 2 * float(np.square(there - there.mean(axis=0)).sum(axis=1).mean())

    def map_rows(self, X: Matrix) -> Matrix:
        """Map rows (n, d) to kernel values (n, m)."""
        anchors = self.anchors_[: self.n_filled_]
        squares = np.einsum("ij,ij->i", X, X)[:, None] + np.einsum("ij,ij->i", anchors, anchors)
        distances = np.maximum(squares - 2 * (X @ anchors.T), 0)
        width = np.float32(self.bandwidth * self.mean_square_ or 1.0)
        features = np.zeros((len(X), self.n_anchors), np.float32)
        np.exp(-distances / width, out=features[:, : self.n_filled_])
        return features
