"""LSH: random projections, the floor that every learned method is compared with."""

from typing import Any

import numpy as np

from streamhash.base import (
    Matrix,
    OnlineHasher,
    StreamPart,
    new_generator,
    random_directions,
    row_product,
)
from streamhash.features import LONGEST, CenterScale
from streamhash.learned import Array, Table
from streamhash.parameters import Choice, parameter


class LSH(OnlineHasher):
    """Locality-sensitive hashing by random hyperplanes (Charikar, STOC 2002).

    Each bit tells on which side of a random hyperplane through the centre of the data an item
    lies. It learns the centre and nothing else: no labels. It wins when there is no time or no
    label to learn from, and loses to every supervised method otherwise.

    Cost per stage: one mean. State: W (d k) and the centre (d).

    Parameters
    ----------
    n_bits : int, default=32
        Code length k.
    batch_size : int, default=200
        Rows a stage; without effect on the result but for rounding.
    center : bool, default=True
        Take the running mean off the features; False for features that are centred already, as
        in the benchmark of the paper.
    features : "absolute", "fourier" or None, default=None
        Learn from random features of the instances (``RandomFeatures``), of this kind, or not.
    random_state : int, RandomState or None
        Seed of the hyperplanes.

    Attributes
    ----------
    W_ : array (d, k)
        The hyperplanes' normals, of unit length.
    parts_ : list
        What prepares the features: the running centre, if ``center``.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from streamhash import LSH
    >>> X, y = load_digits(return_X_y=True)
    >>> LSH(n_bits=16, random_state=0).fit(X).transform(X[:2]).shape
    (2, 2)
    """

    needs_labels = False
    multi_label = True
    reference = "Charikar, STOC 2002"
    year = 2002

    center: bool = parameter(Choice(True, False), default=True)

    learns = Table(W_=Array(np.float32, "D", "k"))

    def _feature_parts(self, d: int) -> list[StreamPart]:  # noqa: ARG002
        return [CenterScale(scale=None)] if self.center else []

    def _start(self, X: Matrix, y: Any) -> None:  # noqa: ARG002
        self.W_ = random_directions(X.shape[1], self.n_bits, new_generator(self.random_state))

    def _learn(self, X: Matrix, y: Any) -> None:
        pass  # only the running centre is learned, and the base has done that

    def _project(self, X: Matrix) -> Matrix:
        try:
            with np.errstate(over="raise"):
                return row_product(X, self.W_)
        except FloatingPointError:
            # A power of two changes no sign, and sums of what is left fit into float32.
            long = np.abs(X).max(axis=1, keepdims=True) > LONGEST
            return row_product(np.where(long, np.ldexp(X, -32), X), self.W_)
