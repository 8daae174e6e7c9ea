"""AdaptHash: adaptive hashing (Cakir and Sclaroff, ICCV 2015)."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from streamhash.base import Matrix, new_generator, random_directions
from streamhash.features import NormalizedHasher
from streamhash.hashers._pairs import PairQueue
from streamhash.kernels.learning.pairwise_steps import learn_adaptive_pairs
from streamhash.learned import Array, Count, Part, Table
from streamhash.parameters import Choice, Number, Span, Values, Whole, parameter


class AdaptHash(NormalizedHasher):
    """Adaptive hashing (Cakir and Sclaroff, ICCV 2015).

    Each pair of consecutive items is a step: if their codes are too far apart for a similar pair,
    or too close for a dissimilar one, the squared error between the inner product of the relaxed
    codes and ±k is reduced, but only in the most certain of the wrong bits; a penalty then pulls
    the hash functions apart, and they are brought back to unit length. It wins when only pairs are
    labelled and the data has two or few classes; with more, most pairs are dissimilar and cannot
    all differ in most bits, and long codes end no better than random ones.

    Cost per pair: (2 m + 3 k) k² · 2 operations in blocks of m = 32 pairs, and 4 d k² / m of the
    block's. State: W (d k), the mean (d), and a row that waits for its pair.

    Parameters
    ----------
    n_bits : int, default=32
        Code length k; best at most the number of features.
    batch_size : int, default=64
        Rows handled at once; without effect on the result but for rounding. Pairs are learned one
        after the other, as by the authors (n_t = 2).
    learning_rate : float, default=6.4
        Step η. Authors: 0.1 (CIFAR-10), 0.2 (MNIST), 0.1 (Places205).
    scale_step : bool, default=True
        Divide the step by k, which makes one learning rate fit all code lengths: the error goes
        with k. Authors: False.
    margin : float, default=0.8
        Share α: a dissimilar pair must differ in at least α k bits, a similar one in at most
        (1 − α) k. Authors: 0.9, 0.8, 0.9.
    spread : float, default=0.01
        Weight β (the paper's λ) of the penalty ¼ ‖WᵀW − I‖². Authors: 0.01.
    normalize : bool, default=True
        Take off the running mean and bring rows to unit length, which makes the method scale-free.
        Authors: features centred by the mean of all data, and of unit length.
    features : "absolute", "fourier" or None, default=None
        Learn from random features of the instances (``RandomFeatures``), of this kind, or not.
    memory : int, default=0
        Instances to keep, evenly over the classes (``ClassMemory``); each stage is learned together
        with as many of them as it has, so that it matters how the stream is cut.
    random_state : int, RandomState or None
        Seed of the first hash functions.

    Attributes
    ----------
    W_ : array (d, k)
        The hash functions, as columns of unit length.
    parts_ : list
        What prepares the features: the running mean and unit length, if ``normalize``.
    queue_ : PairQueue
        The normalised row that waits for its pair, if any.
    n_updates_ : int
        Pairs so far that changed W.
    n_stages_, n_samples_seen_ : int
        Stages and instances seen.

    Notes
    -----
    Similar means the same label or, with a 0/1 matrix of labels, at least one class in common.

    The steps amplify differences: a rounding error grows until it turns a bit, about a hundred
    pairs later, and from there on W is another, no worse one. So another machine, or another
    ``batch_size`` (which cuts the blocks elsewhere), may end with other bits.

    Differences from the paper

    1. Written from the formulas of the released program, as far as the paper's text was not at
       hand. Of bits equally certain the first is taken.
    2. Our defaults (a step in units of 1/k, the running mean) are not the paper's;
       ``AdaptHash.published`` has those.

    Differences from the authors' program

    1. tanh(t/2) for 2 / (1 + exp(−t)) − 1, which overflows; a permutation it draws and never uses
       is left out.
    2. float32 instead of float64, blocks of pairs with the same outcome
       (``kernels/learning/pairwise_steps.py``).

    References
    ----------
    F. Cakir, S. Sclaroff: Adaptive hashing for fast similarity search. ICCV 2015.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from streamhash import AdaptHash
    >>> X, y = load_digits(return_X_y=True)
    >>> hasher = AdaptHash(n_bits=32, random_state=0).partial_fit(X[:1500], y[:1500])
    >>> hasher.transform(X[1500:]).shape
    (297, 4)
    """

    multi_label = True
    reference = "Cakir and Sclaroff, ICCV 2015"
    year = 2015
    one_by_one = True
    learns_pairs = True

    batch_size: int = parameter(Whole(1), default=64)
    learning_rate: float = parameter(Number(above=0), default=6.4, search=Span(0.2, 40))
    scale_step: bool = parameter(Choice(True, False), default=True)
    margin: float = parameter(
        Number(at_least=0, at_most=1), default=0.8, search=Values(0.5, 0.6, 0.7, 0.8, 0.9)
    )
    spread: float = parameter(Number(at_least=0), default=0.01, search=Span(0.001, 0.2))

    learns = Table(
        W_=Array(np.float32, "D", "k"),
        queue_=Part(PairQueue, d="D", started=False),
        n_updates_=Count(),
    )

    def _start(self, X: Matrix, y: Any) -> None:  # noqa: ARG002
        self.queue_ = PairQueue()
        self.W_ = random_directions(X.shape[1], self.n_bits, new_generator(self.random_state))
        self.n_updates_ = 0

    def _learn(self, X: Matrix, y: Any) -> None:
        self._learn_pairs(*self.queue_.pair(X, y, "AdaptHash"))  # (2 pairs, d), (pairs,)

    def _learn_pairs(self, rows: Matrix, similar: NDArray[np.bool_]) -> None:
        # For each pair: W ← W − η ∇(f(W x₁)·f(W x₂) ∓ k)² in the chosen bits − β W (WᵀW − I),
        # then columns of unit length
        self.W_, n_active = learn_adaptive_pairs(
            self.W_,
            rows,
            similar,
            step=self.learning_rate / (self.n_bits if self.scale_step else 1),
            margin=self.margin,
            spread=self.spread,
        )
        self.n_updates_ += n_active
