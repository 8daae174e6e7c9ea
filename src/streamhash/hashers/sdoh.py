"""SDOH: similarity distribution based online hashing (Lin et al., ICCV 2019)."""

import logging
from typing import Any

import numpy as np

from streamhash.base import Matrix, StreamPart, new_generator, random_directions
from streamhash.features import AnchorMap, NormalizedHasher
from streamhash.kernels.learning.pairs import PairRule, count_similar, pair_gradient
from streamhash.labels import group
from streamhash.parameters import Choice, Maybe, Number, Span, Values, Whole, parameter

log = logging.getLogger("streamhash.hashers")


class SDOH(NormalizedHasher):
    """Similarity distribution based online hashing (Lin et al., ICCV 2019).

    Every stage of the stream defines two distributions over the pairs of its instances: P, from the
    labels, gives similar pairs most of the mass and dissimilar ones a share f(0)/f(1) of it; Q
    follows from the distances of their codes, by a Student t whose scale differs for the two kinds
    of pairs. The hash functions W move down the gradient of KL(P‖Q). It wins when labels are
    reliable and codes short, also on classes that come late, since it keeps no table of classes; it
    learns little from stages without similar pairs (far more classes than instances in a stage).

    Cost per stage and step: 4 n d k + 5 n² k operations, no n × n array. State: W (d k) and the
    mean (d); with a kernel also the anchors (m d).

    Parameters
    ----------
    n_bits : int, default=32
        Code length k, 1 to 1024.
    batch_size : int, default=200
        Instances a stage, n_t. Authors: 2000 (CIFAR-10, MNIST), 5000 (Places205).
    learning_rate : float, default=0.25
        Step λ of Eq. 11. Authors: 0.05, 2, 2.
    scale_step : bool, default=True
        Multiply the step by n_t k, which makes one learning rate fit all stages and code lengths:
        P sums to 1 over n_t² pairs, and the gradient goes with 1/η. Authors: False.
    sigma : float, default=0.53
        Width σ of the Gaussian f of Eq. 5. Authors: 0.5, 0.3, 0.5.
    mu : float, default=1.0
        Its centre μ. Only f(0)/f(1) = exp(−(2μ − 1) / 2σ²) counts. Authors: 1.
    balance : float or None, default=0.5
        Hold f(0)/f(1) to at most this times √(N₊/N₋), with the numbers of similar and dissimilar
        pairs of the stage: so the smoothing follows the number of classes. Authors: None, no limit.
    similar_scale, dissimilar_scale : float or None, default=None
        Scales p and n of Eq. 8. None: k/10 and k/15. Authors: 1 and 1, 1 and 1, 60 and 10.
    label_distribution : "gaussian" or "plain", default="gaussian"
        P by Eq. 5, or by Eq. 4 (no mass on dissimilar pairs).
    code_distribution : "scaled" or "plain", default="scaled"
        Q by Eq. 8, or by Eq. 7 (both scales 1). Both "plain" is the pair of distributions of SePH.
    gradient : "exact", "released" or "printed", default="exact"
        The derivative of the loss; without its 1/η, as the authors' program has it; or as the
        equations 12 to 15 are printed (see the differences below).
    max_steps : int, default=3
        Gradient steps a stage. Authors: 1000.
    tolerance : float or None, default=None
        Stop the steps of a stage when the loss has fallen by no more than this (the step just taken
        is kept). None: take them all. Authors: 1e-4, 1e-3, 1e-4.
    normalize : bool, default=True
        Take off the running mean and bring instances to unit length, which makes the method
        scale-free. Authors: False, features as they are.
    offset_rate : float, default=1/16
        Hash functions sgn(Wᵀx + c) instead of sgn(Wᵀx): learning rate of the offsets c beside that
        of W. 0 leaves them at zero: hyperplanes through the mean. Authors: 0.
    n_anchors : int or None, default=None
        Map instances through so many RBF anchors first, taken from the stream's first instances.
    random_state : int, RandomState or None
        Seed of the first hash functions.

    Attributes
    ----------
    W_ : array (d, k)
        The hash functions, as columns.
    offset_ : array (k,)
        Their offsets c.
    parts_ : list
        What is done to the features before: centring, kernel map.
    loss_ : float
        KL(P‖Q) of the last stage before its last step.
    n_steps_, n_stages_, n_samples_seen_ : int
        Steps taken, stages and instances seen.

    Notes
    -----
    Similar means the same label or, with a 0/1 matrix of labels, at least one class in common: the
    rule by which evaluation calls an item relevant. A stage of one instance has no pairs and
    changes nothing but the running mean. In a stage of one class, or with no two of a class, P is
    uniform and the step evens out the distances.

    Differences from the paper

    1. ``gradient="exact"`` has the factor 1/η that Eq. 12 leaves out, T inverted where the text
       before Eq. 13 has T = 1 + D, and the slope of tanh applied after the Laplacian, not before it
       as in Eq. 15. ``"printed"`` is the paper to the letter.
    2. Our defaults (normalised features, offsets, a step in units of n_t k, three steps a stage,
       smoothing by ``balance``, scales in units of k) are not the paper's; ``SDOH.published`` has
       those.
    3. Labels may be matrices, features may go through a kernel map.

    Differences from the authors' program

    1. ``gradient="exact"`` has 1/η; their program, and ``"released"``, has not. No difference in
       direction where both scales are equal.
    2. float32 instead of float64; blocks of pairs instead of n_t × n_t matrices.

    References
    ----------
    M. Lin, R. Ji, S. Chen, F. Zheng, X. Sun, B. Zhang, L. Cao, G. Guo, F. Huang: Supervised online
    hashing via similarity distribution learning. ICCV 2019, arXiv 1905.13382.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from streamhash import SDOH
    >>> X, y = load_digits(return_X_y=True)
    >>> hasher = SDOH(n_bits=32, random_state=0)
    >>> for start in range(0, 1500, 500):
    ...     _ = hasher.partial_fit(X[start : start + 500], y[start : start + 500])
    >>> hasher.transform(X[1500:]).shape
    (297, 4)
    """

    multi_label = True
    reference = "Lin et al., ICCV 2019"
    year = 2019
    published_features = "raw"

    learning_rate: float = parameter(Number(above=0), default=0.25, search=Span(0.05, 1))
    batch_size: int = parameter(Whole(1), default=200, search=Values(100, 200, 400))
    max_steps: int = parameter(Whole(1), default=3, search=Values(1, 3, 6, 10))
    scale_step: bool = parameter(Choice(True, False), default=True)
    sigma: float = parameter(Number(above=0), default=0.53, search=Span(0.35, 0.8))
    mu: float = parameter(Number(), default=1.0)
    balance: float | None = parameter(
        Maybe(Number(above=0)), default=0.5, search=Values(0.25, 0.5, 1, 2)
    )
    similar_scale: float | None = parameter(Maybe(Number(above=0)), default=None)
    dissimilar_scale: float | None = parameter(Maybe(Number(above=0)), default=None)
    label_distribution: str = parameter(Choice("gaussian", "plain"), default="gaussian")
    code_distribution: str = parameter(Choice("scaled", "plain"), default="scaled")
    gradient: str = parameter(Choice("exact", "released", "printed"), default="exact")
    tolerance: float | None = parameter(Maybe(Number()), default=None)
    offset_rate: float = parameter(
        Number(at_least=0), default=1 / 16, search=Values(0, 1 / 16, 1 / 4)
    )
    n_anchors: int | None = parameter(Maybe(Whole(1)), default=None, search=Values(None, 1000))

    def _feature_parts(self, d: int) -> list[StreamPart]:
        anchors = [] if self.n_anchors is None else [AnchorMap(self.n_anchors)]
        return [*anchors, *super()._feature_parts(d)]

    def _start(self, X: Matrix, y: Any) -> None:  # noqa: ARG002
        self.W_ = random_directions(X.shape[1], self.n_bits, new_generator(self.random_state))
        self.offset_ = np.zeros(self.n_bits, np.float32)
        self.loss_ = np.nan
        self.n_steps_ = 0

    def _learn(self, X: Matrix, y: Any) -> None:
        labels = group(y) if y.ndim == 1 else y.astype(np.float32)
        n_pairs = len(X) * (len(X) - 1)
        if n_pairs == 0:  # one instance has nothing to be compared with
            if self.n_stages_ == 0:
                log.warning(
                    "SDOH: the stream begins with a single row, and a row alone has no pairs to "
                    "learn from; hand over pieces of about %d rows.",
                    self.batch_size,
                )
            return
        rule, entropy = self._rule(count_similar(labels), n_pairs)
        step = np.float32(self.learning_rate * (len(X) * self.n_bits if self.scale_step else 1))
        W, c, best = self.W_, self.offset_, np.inf
        for _ in range(self.max_steps):
            B = np.tanh(X @ W + c)  # (n, k)  Eq. 10
            slope = 1 - B * B  # (n, k)  P of Eq. 14
            if self.gradient == "printed":
                G, cross_entropy = pair_gradient(B, B * slope, labels, rule)  # (n, k)  Eq. 15
            else:
                G, cross_entropy = pair_gradient(B, B, labels, rule)  # (n, k)  Eq. 13
                G = G * slope
            W = W - step * (X.T @ G)  # (d, k)  Eq. 11
            c = c - np.float32(self.offset_rate) * step * G.sum(axis=0)  # (k,)
            self.n_steps_ += 1
            self.loss_ = cross_entropy - entropy  # Eq. 9, before this step
            if self.tolerance is not None and best - self.loss_ <= self.tolerance:
                break  # the step just taken is kept, as in the authors' program
            best = self.loss_
        self.W_, self.offset_ = W, c

    def _rule(self, n_similar: int, n_pairs: int) -> tuple[PairRule, float]:
        """P, η and the entropy of P for a stage with so many similar pairs."""
        n_dissimilar = n_pairs - n_similar
        ratio = self._ratio(n_similar, n_dissimilar)
        total = n_similar + ratio * n_dissimilar
        p_similar, p_dissimilar = 1 / total, ratio / total  # Eq. 5
        entropy = -sum(
            count * p * np.log(p)
            for count, p in ((n_similar, p_similar), (n_dissimilar, p_dissimilar))
            if p > 0
        )
        if self.code_distribution == "plain":
            scales = 1.0, 1.0  # Eq. 7
        else:
            scales = (
                self.similar_scale or self.n_bits / 10,
                self.dissimilar_scale or self.n_bits / 15,
            )
        return PairRule(p_similar, p_dissimilar, *scales, form=self.gradient), float(entropy)

    def _ratio(self, n_similar: int, n_dissimilar: int) -> float:
        """f(0) / f(1): how much a dissimilar pair weighs in P beside a similar one."""
        if n_similar == 0:
            return 1.0  # no similar pair: every pair weighs the same
        if self.label_distribution == "plain":
            return 0.0  # Eq. 4
        ratio = float(np.exp(-(2 * self.mu - 1) / (2 * self.sigma**2)))  # Eq. 5
        if self.balance is None or n_dissimilar == 0:
            return ratio
        return min(ratio, float(self.balance * np.sqrt(n_similar / n_dissimilar)))

    def _project(self, X: Matrix) -> Matrix:
        return X @ self.W_ + self.offset_
