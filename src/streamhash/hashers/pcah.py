"""PCAH: one bit for each principal direction, the plainest learned hash."""

import numpy as np

from streamhash.hashers._principal import PrincipalHasher
from streamhash.hashers._sketch import Doubles
from streamhash.learned import Table


class PCAH(PrincipalHasher):
    """Principal component hashing, online: the sign along each of the first k directions.

    The principal directions are those of a frequent-directions sketch of the stream, as in
    SketchHash, but they are not turned: the first bit carries most of the variance and the last
    next to none of it, so that more bits make codes worse after a while. It is a baseline; among
    unsupervised methods SketchHash and ITQ are better at nearly every length.

    Cost per stage: one decomposition of the sketch, l² d + 9 l³ operations, and one more for every
    l/2 instances. State: the sketch (l d), W (d k), a rotation (k²) and two means (d).

    Parameters
    ----------
    n_bits : int, default=32
        Code length k, 1 to 1024.
    batch_size : int, default=200
        Instances a stage; hash functions are renewed once a stage, and little else depends on it.
    sketch_size : int or None, default=None
        Rows l of the sketch, even. None: 2k, at least 200, but no more than 2d, with which
        nothing is lost, or 100 (then this is PCA of the stream to the last digit).
    normalize : bool, default=True
        Take off the running mean and bring instances to unit length. Features of any scale give the
        same bits either way. Benchmark: False, features are centred and of unit length beforehand.
    features : "absolute", "fourier" or None, default=None
        Learn from random features of the instances (``RandomFeatures``), of this kind, or not.
    random_state : int, RandomState or None
        Seed of the first hash functions, and of the bits beyond the rank of the data.

    Attributes
    ----------
    W_ : array (d, k)
        The hash functions, as columns: principal directions, largest variance first.
    mean_ : array (d,)
        Mean μ of the instances so far, after normalisation.
    sketch_ : FrequentDirections
        The sketch; ``sketch_.S_`` (l, d) are its rows.
    rank_ : int
        Number p ≤ k of principal directions in W; 0 while it is still random.
    n_sketched_, n_stages_, n_samples_seen_ : int
        Instances in the sketch, stages and instances seen.

    Notes
    -----
    Until more than min(k, d) instances have come, W stays at random directions. Where the data have
    only p < k directions (always, if k > d), the other k − p bits are random directions of the
    space that those p span. A direction keeps its sign from one stage to the next.

    Differences from the usual method: PCA of a stream instead of PCA of a sample that is there at
    once.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from streamhash import PCAH
    >>> X, _ = load_digits(return_X_y=True)
    >>> PCAH(n_bits=16, random_state=0).fit(X).transform(X[:2]).shape
    (2, 2)
    """

    reference = "Wang et al., CVPR 2010"
    year = 2010

    learns = Table()

    def _turn(self, V: Doubles) -> Doubles:
        p = V.shape[1]
        T = self.R_[:p].copy()  # (p, k): random directions for the bits beyond the rank
        T[:, :p] = np.eye(p)
        if p == self.rank_:  # signs as they were
            T[np.einsum("dp,dp->p", V, self.W_[:, :p]) < 0] *= -1
        return T
