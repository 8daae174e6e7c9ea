"""Random Fourier features: a kernel map that knows nothing of the data, so no order misleads it."""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from streamhash.base import Matrix, StreamPart, new_generator
from streamhash.kernels.learning.fourier import block_size, fourier_features
from streamhash.parameters import Choice, Number, Whole, parameter


class FourierMap(StreamPart):
    """Map rows x to √(2/m) cos(ωᵀx + b) for m random frequencies ω and phases b, beside x itself.

    The inner product of two rows' cosines is about exp(−‖x − y‖² / 2h²), off by some 1/√m (Rahimi
    and Recht 2007). Nothing is learned from the data: frequencies and phases are drawn when the
    first rows come, and stay. So the map is the same for any order of the stream, and for any two
    models with the same seed.

    Frequencies are products of Hadamard matrices and random signs, orthogonal within a block (Yu et
    al. 2016): a row costs some 3 m log₂ d additions and m cosines, where a dense product takes m d
    multiplications; and the state is 3 bytes and two numbers a frequency. A call takes rows by
    sixteens, and a single row takes half as long as sixteen.

    Rows should be of about unit length, as ``CenterScale(scale="unit")`` makes them: the bandwidth
    is measured against that, and float32 holds angles of some hundreds of turns well.

    Parameters
    ----------
    n_features : int, default=2048
        Number of frequencies m.
    bandwidth : float, default=0.8
        Width h: rows closer than this look alike.
    linear : bool, default=True
        The row itself stands before its cosines, d + m features in all; else the m alone.
    random_state : int, RandomState or None
        Seed of the frequencies and phases.

    Attributes
    ----------
    signs_ : array (⌈m/p⌉, 3, p) of int8
        The signs of each block of p frequencies, p the power of two that holds d (32 or more).
    lengths_ : array (m,)
        Lengths of the frequencies: chi with p degrees of freedom, over the bandwidth.
    phases_ : array (m,)
        The b, from 0 to 2π.

    Examples
    --------
    >>> x, y = np.eye(2, 784, dtype=np.float32)
    >>> part = FourierMap(4096, linear=False, random_state=0).fit([x])
    >>> u, v = part.transform([x, y])
    >>> abs(u @ v - np.exp(-2 / (2 * 0.8**2))) < 0.05
    np.True_
    """

    n_features: int = parameter(Whole(1), default=2048, kw_only=False)
    bandwidth: float = parameter(Number(above=0), default=0.8)
    linear: bool = parameter(Choice(True, False), default=True)
    random_state: Any = parameter(default=None)

    def learn_rows(self, X: Matrix) -> None:
        """Draw the frequencies when the first rows (n, d) come; nothing else is learned."""
        if hasattr(self, "signs_"):
            return
        random, m = new_generator(self.random_state), self.n_features
        p = block_size(X.shape[1])
        signs = random.integers(2, size=(math.ceil(m / p), 3, p), dtype=np.int8)
        self.signs_: NDArray[np.int8] = 2 * signs - 1
        lengths = np.sqrt(random.chisquare(p, size=m))
        self.lengths_: Matrix = (lengths / self.bandwidth).astype(np.float32)
        self.phases_: Matrix = random.uniform(0, 2 * math.pi, size=m).astype(np.float32)

    def map_rows(self, X: Matrix) -> Matrix:
        """Map rows (n, d) to their features (n, d + m), or (n, m) without the linear ones."""
        n, d = X.shape
        first = d if self.linear else 0
        features = np.empty((n, first + self.n_features), np.float32)
        features[:, :first] = X[:, :first]
        fourier_features(X, self.signs_, self.lengths_, self.phases_, features, first)
        return features

    def follow_rows(self, X: Matrix) -> Matrix:
        """Map rows one after the other: all at once, as no row changes the map."""
        self.learn_rows(X)
        return self.map_rows(X)
