"""A radial-basis kernel map on anchors taken from the stream's first instances."""

import numpy as np

from streamhash.base import Matrix, StreamPart
from streamhash.hashers._scaling import unit_length
from streamhash.parameters import Number, Whole

__all__ = ["AnchorMap"]


class AnchorMap(StreamPart):
    """Map rows to exp(−‖u(x) − u(a)‖² / h) for anchors a, the first instances of the stream.

    u takes off the anchors' mean and brings a row to unit length: distances lie between 0 and 4
    whatever the units of the features are, so one width h does for all data. Nothing looks ahead:
    the first ``n_anchors`` rows become the anchors as they come, a feature whose anchor has not
    come yet is 0, and once all have come the map stays as it is.

    Parameters
    ----------
    n_anchors : int, default=1000
        Number of anchors m, the dimension of the map.
    bandwidth : float, default=0.4
        Width h.

    Attributes
    ----------
    anchors_ : array (m, d)
        The anchors; those still to come are zero.
    n_filled_ : int
        How many have come.
    mean_ : array (d,)
        Their mean.
    directions_ : array (m, d)
        u(a) of the anchors.
    """

    anchors_: Matrix
    n_filled_: int
    mean_: Matrix
    directions_: Matrix

    rules = {"n_anchors": Whole(1), "bandwidth": Number(above=0)}  # noqa: RUF012

    def __init__(self, n_anchors: int = 1000, *, bandwidth: float = 0.4) -> None:
        self.n_anchors = n_anchors
        self.bandwidth = bandwidth

    def learn_rows(self, X: Matrix) -> None:
        """Take rows (n, d) as anchors while there is room."""
        filled = getattr(self, "n_filled_", 0)
        new = X[: self.n_anchors - filled]
        if not len(new):
            return
        anchors = np.zeros((self.n_anchors, X.shape[1]), np.float32)
        if filled:
            anchors[:filled] = self.anchors_[:filled]
        anchors[filled : filled + len(new)] = new
        self.anchors_ = anchors
        self.n_filled_ = filled + len(new)
        there = anchors[: self.n_filled_]
        self.mean_ = there.mean(axis=0, dtype=np.float64).astype(np.float32)
        self.directions_ = np.zeros_like(anchors)
        self.directions_[: self.n_filled_] = unit_length(there - self.mean_)

    def map_rows(self, X: Matrix) -> Matrix:
        """Map rows (n, d) to kernel values (n, m)."""
        rows = unit_length(X - self.mean_)
        # Of unit rows: ‖u − v‖² = 2 − 2 u·v. A zero row, the mean itself, is as far from all.
        features = np.zeros((len(X), self.n_anchors), np.float32)
        nearness = features[:, : self.n_filled_]
        np.matmul(rows, self.directions_[: self.n_filled_].T, out=nearness)
        nearness -= 1
        nearness *= np.float32(2 / self.bandwidth)
        np.exp(nearness, out=nearness)
        return features
