"""ITQ: iterative quantization (Gong and Lazebnik, CVPR 2011), online."""

from typing import Any

import numpy as np

from streamhash.base import Matrix
from streamhash.hashers._principal import PrincipalHasher
from streamhash.hashers._sketch import Doubles, turned_to_signs
from streamhash.learned import Array, Table
from streamhash.parameters import Values, Whole, parameter


class ITQ(PrincipalHasher):
    """Iterative quantization, online: principal directions, rotated towards the corners of a cube.

    The principal directions are those of a frequent-directions sketch of the stream, as in
    SketchHash; their rotation is not random but learned, so that projections lie near −1 and 1 and
    little is lost by taking signs. It learns on a uniform sample of the stream of bounded size:
    each stage goes on from the rotation there is. Without labels it is the strongest of the plain
    baselines; with labels any supervised method passes it.

    Cost per stage: the sketch, l² d + 9 l³ operations; the sample's projections, 2 s d k; and
    ``iterations`` times 4 s k² + 20 k³. State: the sketch (l d), the sample (s d), W (d k), the
    rotation (k²) and two means (d).

    Parameters
    ----------
    n_bits : int, default=32
        Code length k, 1 to 1024.
    batch_size : int, default=200
        Instances a stage; hash functions are renewed once a stage.
    sketch_size : int or None, default=None
        Rows l of the sketch, even. None: 2k, at least 200, but no more than 2d, with which
        nothing is lost, or 100.
    sample_size : int, default=2000
        Instances s of the stream that the rotation is learned from: each as likely to be among them
        as any other.
    first_iterations : int, default=50
        Turns of the algorithm when the rotation begins at random: at the first stage that gives
        hash functions, and when the rank has grown since. Authors: 50, on all data at once.
    iterations : int, default=2
        Turns at every later stage.
    normalize : bool, default=True
        Take off the running mean and bring instances to unit length, which makes the method
        scale-free. Benchmark: False, features are centred and of unit length beforehand.
    features : "absolute", "fourier" or None, default=None
        Learn from random features of the instances (``RandomFeatures``), of this kind, or not.
    random_state : int, RandomState or None
        Seed of the first hash functions, the first rotation and the sample.

    Attributes
    ----------
    W_ : array (d, k)
        The hash functions, as columns.
    mean_ : array (d,)
        Mean μ of the instances so far, after normalisation.
    sketch_ : FrequentDirections
        The sketch; ``sketch_.S_`` (l, d) are its rows.
    sample_ : array (s, d)
        The sample; rows that are still free are zero.
    R_ : array (k, k)
        The rotation that learning begins with.
    rank_ : int
        Number p ≤ k of principal directions that W is made of; 0 while it is still random.
    n_sketched_, n_stages_, n_samples_seen_ : int
        Instances in the sketch, stages and instances seen.

    Notes
    -----
    Until more than min(k, d) instances have come, W stays at random directions. Where the data have
    only p < k directions (always, if k > d), the same algorithm finds a p × k matrix with
    orthonormal rows instead of a rotation.

    Differences from the paper

    1. Online: PCA from a sketch, rotation from a sample. Before a stage's turns, the rotation is
       carried over to the stage's principal directions (the one that keeps W nearest to what it
       was), so that codes move as little as the stream does.
    2. k > d is defined.
    3. Features are normalised by default.

    References
    ----------
    Y. Gong, S. Lazebnik: Iterative quantization: a Procrustean approach to learning binary codes.
    CVPR 2011.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from streamhash import ITQ
    >>> X, _ = load_digits(return_X_y=True)
    >>> ITQ(n_bits=16, random_state=0).fit(X).transform(X[:2]).shape
    (2, 2)
    """

    reference = "Gong and Lazebnik, CVPR 2011"
    year = 2011

    batch_size: int = parameter(Whole(1), default=200, search=Values(100, 200, 500))
    sample_size: int = parameter(Whole(1), default=2000, search=Values(1000, 2000, 5000))
    first_iterations: int = parameter(Whole(0, 10_000), default=50)
    iterations: int = parameter(Whole(0, 10_000), default=2, search=Values(1, 2, 5))

    learns = Table(
        sample_=Array(np.float32, "sample_size", "D"),
    )

    def _start(self, X: Matrix, y: Any) -> None:
        super()._start(X, y)
        self.sample_ = np.zeros((self.sample_size, X.shape[1]), np.float32)

    def _sketch(self, X: Matrix) -> None:
        # Reservoir sampling: the t-th instance takes a place drawn from 0 … t, if there is one.
        number = np.arange(self.n_sketched_, self.n_sketched_ + len(X))
        place = np.where(
            number < self.sample_size, number, self.random_.integers(0, number + 1)
        )  # (n,)
        sample = self.sample_.copy()
        for row in np.flatnonzero(place < self.sample_size):
            sample[place[row]] = X[row]
        self.sample_ = sample
        super()._sketch(X)

    def _turn(self, V: Doubles) -> Doubles:
        T = self._carried(V)
        turns = self.iterations
        if T is None:
            T, turns = self.R_[: V.shape[1]], self.first_iterations
        n = min(self.n_sketched_, self.sample_size)
        sample = self.sample_[:n] - self.mean_.astype(np.float32)
        Z = sample @ V.astype(np.float32)  # (s, p)  "V" of the paper
        return turned_to_signs(Z, T, turns)
