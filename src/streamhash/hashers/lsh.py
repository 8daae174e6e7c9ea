"""LSH: random projections, the floor that every learned method is compared with."""

from typing import Any

import numpy as np

from streamhash.base import Matrix, OnlineHasher, new_generator
from streamhash.hashers._scaling import CenterScale

__all__ = ["LSH", "random_directions"]


def random_directions(d: int, k: int, random: np.random.Generator) -> Matrix:
    """Draw k Gaussian directions of unit length, as the columns of W (d, k): the usual start."""
    W = random.standard_normal((d, k))
    W /= np.linalg.norm(W, axis=0)
    return W.astype(np.float32)


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
    random_state : int, RandomState or None
        Seed of the hyperplanes.

    Attributes
    ----------
    W_ : array (d, k)
        The hyperplanes' normals, of unit length.
    scale_ : CenterScale
        The running centre.

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
    settings = {name: {"center": False} for name in ("cifar10", "mnist", "places205")}  # noqa: RUF012

    def __init__(
        self,
        n_bits: int = 32,
        *,
        batch_size: int = 200,
        center: bool = True,
        random_state: Any = None,
    ) -> None:
        self.n_bits = n_bits
        self.batch_size = batch_size
        self.center = center
        self.random_state = random_state

    def _start(self, X: Matrix, y: Any) -> None:  # noqa: ARG002
        self.W_ = random_directions(X.shape[1], self.n_bits, new_generator(self.random_state))
        self.scale_ = CenterScale(center=self.center, scale=None)

    def _learn(self, X: Matrix, y: Any) -> None:  # noqa: ARG002
        self.scale_.learn_rows(X)

    def _project(self, X: Matrix) -> Matrix:
        return self.scale_.map_rows(X) @ self.W_
