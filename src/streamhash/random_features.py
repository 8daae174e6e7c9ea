"""Random features: a map that knows nothing of the data, so that no order of it misleads."""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from streamhash.base import Matrix, StreamPart, new_generator
from streamhash.errors import InputError
from streamhash.kernels.learning.random_projections import (
    absolute_features,
    block_size,
    fourier_features,
    linear_features,
)
from streamhash.learned import Array, Count, Table
from streamhash.parameters import SEED, Choice, Number, Whole, parameter


class RandomFeatures(StreamPart):
    """Map rows u to absolute values |z| of random projections, or to cosines, beside u itself.

    With random directions r, each projection z = rᵀu has the mean square ‖u‖². Of the m nonlinear
    features, those of kind "absolute" are |z| / √m: they bend once each, need no bandwidth, and
    grow with u. Those of kind "fourier" are √(2/m) cos(ωᵀu + b), whose inner products are about
    exp(−‖u − v‖² / 2h²), off by some 1/√m (Rahimi and Recht 2007).

    Nothing is learned from the data: all is drawn when the first rows come, and stays. So the map
    is the same for any order of the stream and, as it has a seed of its own, for any two models:
    what they have summed over its features can be added up.

    Directions are products of Hadamard matrices and random signs, orthogonal within a block of p,
    the power of two that holds d (Yu et al. 2016). A row costs some 3 log₂ p additions a feature,
    where a dense product takes d multiplications; the state is 3 bytes a feature, 6 p in all if
    that is more. A call takes rows by sixteens, and a single row takes half as long as sixteen.

    Rows should be of about unit length, as ``CenterScale(scale="unit")`` makes them: bandwidths are
    measured against that.

    Parameters
    ----------
    n_features : int, default=3584
        Features in all, whatever d is.
    kind : "absolute" or "fourier", default="absolute"
        The nonlinear ones.
    linear : bool, default=True
        Linear features stand first: the row itself, if it is no longer than a fourteenth of
        ``n_features``; else so many random projections z of it, scaled to keep its length.
    bandwidth : float, default=0.8
        Width h of "fourier": rows closer than this look alike. Without effect on "absolute".
    random_state : int, RandomState or None, default=0
        Seed of what is drawn. Its default is a number: models with other seeds share this map.

    Attributes
    ----------
    n_linear_ : int
        How many of the features are linear.
    signs_ : array (blocks, 3, p) of int8
        The signs of each block of p directions (p is 32 or more): ⌈m/p⌉ blocks for the nonlinear
        features, after one for the linear ones where those are projections.
    lengths_ : array (m,), only for "fourier"
        Lengths of the frequencies ω: chi with p degrees of freedom, over the bandwidth.
    phases_ : array (m,), only for "fourier"
        The b, from 0 to 2π.

    Examples
    --------
    >>> x, y = np.eye(2, 200, dtype=np.float32)
    >>> part = RandomFeatures().fit([x])
    >>> u, v = part.transform([x, y])
    >>> u.shape, np.array_equal(u[:200], x), np.array_equal(part.transform([2 * x])[0], 2 * u)
    ((3584,), True, True)
    """

    n_features: int = parameter(Whole(2, 1 << 20), default=3584, kw_only=False)
    kind: str = parameter(Choice("absolute", "fourier"), default="absolute")
    linear: bool = parameter(Choice(True, False), default=True)
    bandwidth: float = parameter(Number(above=0), default=0.8)
    random_state: Any = parameter(SEED, default=0)
    learns = Table(
        n_linear_=Count(),
        signs_=Array(np.int8, "blocks", 3, "p", signs=True),
        lengths_=Array(np.float32, "m", low=0, when=lambda part: part.kind == "fourier"),
        phases_=Array(np.float32, "m", when=lambda part: part.kind == "fourier"),
    )

    def known_sizes(self) -> dict[str, int]:
        """Return the sizes in the table ``learns`` that follow from the rest."""
        sizes = super().known_sizes()
        if not isinstance(d := sizes.get("d"), int):
            return sizes
        p, n_linear = block_size(d), self._n_linear(d)
        m = self.n_features - n_linear
        return {**sizes, "p": p, "m": m, "blocks": (0 < n_linear < d) + math.ceil(m / p)}

    def check_learned(self) -> None:
        """Refuse what was learned if it does not fit the class's own statement, ``learns``."""
        super().check_learned()
        if self.has_learned() and self.n_linear_ != self._n_linear(self.n_features_in_):
            raise InputError(f"RandomFeatures.n_linear_ is {self.n_linear_}, another number")

    def n_features_out(self, d: int) -> int:  # noqa: ARG002
        """Return how many features rows have after the map."""
        return self.n_features

    def learn_rows(self, X: Matrix) -> None:
        """Draw the directions when the first rows (n, d) come; nothing else is learned."""
        if hasattr(self, "signs_"):
            return
        d = X.shape[1]
        n_linear = self._n_linear(d)
        self.n_linear_ = n_linear
        random, p, m = new_generator(self.random_state), block_size(d), self.n_features - n_linear
        n_blocks = (0 < n_linear < d) + math.ceil(m / p)
        signs = random.integers(2, size=(n_blocks, 3, p), dtype=np.int8)
        self.signs_: NDArray[np.int8] = 2 * signs - 1
        if self.kind == "fourier":
            lengths = np.sqrt(random.chisquare(p, size=m))
            self.lengths_: Matrix = (lengths / self.bandwidth).astype(np.float32)
            self.phases_: Matrix = random.uniform(0, 2 * math.pi, size=m).astype(np.float32)

    def map_rows(self, X: Matrix) -> Matrix:
        """Map rows (n, d) to their features (n, n_features)."""
        n, d = X.shape
        features = np.empty((n, self.n_features), np.float32)
        n_linear, signs = self._n_linear(d), self.signs_
        if n_linear == d:
            features[:, :d] = X
        elif n_linear:
            linear_features(X, signs[:1], n_linear, features)
            signs = signs[1:]
        if self.kind == "absolute":
            absolute_features(X, signs, self.n_features - n_linear, features, n_linear)
        else:
            fourier_features(X, signs, self.lengths_, self.phases_, features, n_linear)
        return features

    def follow_rows(self, X: Matrix) -> Matrix:
        """Map rows one after the other: all at once, as no row changes the map."""
        self.learn_rows(X)
        return self.map_rows(X)

    def _n_linear(self, d: int) -> int:
        return min(d, self.n_features // 14) if self.linear else 0
