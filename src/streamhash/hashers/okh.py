"""OKH: online kernel hashing (Huang, Yang and Zheng, IJCAI 2013)."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from streamhash.base import Matrix, StreamPart, new_generator, random_directions
from streamhash.features import GIVEN_ANCHORS, NormalizedHasher, RadialMap
from streamhash.hashers._pairs import PairQueue
from streamhash.kernels.learning.pairwise_steps import learn_passive_pairs
from streamhash.learned import Array, Count, Part, Table
from streamhash.parameters import Choice, Maybe, Number, Rule, Span, Values, Whole, parameter

BANDWIDTHS = ("mean", "released", "demo")


BANDWIDTH = Rule(
    f"{Choice(*BANDWIDTHS)}, or {Number(above=0)}",
    lambda value: Choice(*BANDWIDTHS).allows(value) or Number(above=0).allows(value),
)


class KernelFeatures(RadialMap):
    """Map rows to [exp(−‖x − a‖² / 2b) for the anchors a, 1], with the bandwidths b of OKH.

    Parameters
    ----------
    n_anchors : int
        Number of anchors m: the map has m + 1 features.
    bandwidth : "mean", "released", "demo" or float
        As in OKH.
    """

    divisor: float = parameter(Number(above=0), default=1.0)
    bandwidth: str | float = parameter(BANDWIDTH, default="mean")
    learns = Table()

    def n_features_out(self, d: int) -> int:
        """Return how many features rows have after the map: one an anchor, and a constant."""
        return super().n_features_out(d) + 1

    def _inverse(
        self, counts: NDArray[Any], sums: NDArray[Any], squares: NDArray[Any]
    ) -> NDArray[Any]:
        """1 / 2b for so many anchors with these sums."""
        inverse = super()._inverse(counts, sums, squares)  # 1 / 2s
        if self.bandwidth == "demo":
            return np.full_like(inverse, 1 / (2 * 0.9**2))
        if self.bandwidth == "released":
            return 2 * inverse**2  # 1 / 2s²
        if self.bandwidth == "mean":
            return inverse
        return inverse / np.float32(self.bandwidth)

    def _features(self, X: Matrix, counts: NDArray[Any], inverse: NDArray[Any]) -> Matrix:
        kernel = super()._features(X, counts, inverse)  # (n, m)
        return np.concatenate([kernel, np.ones((len(X), 1), np.float32)], axis=1)


class OKH(NormalizedHasher):
    """Online kernel hashing (Huang, Yang and Zheng, IJCAI 2013).

    Rows go through an RBF kernel on a few anchors. Each pair of consecutive items is a round: if
    the codes of a similar pair differ, or those of a dissimilar one differ in too few bits, the
    least certain of the wrong bits are flipped to make target codes without fault, and W moves as
    little as makes the targets win, capped by C (a passive-aggressive step). It wins when only
    pairs are labelled, not items, and its state does not grow with classes; it learns little from
    a pair, and where classes are many nearly all its pairs are dissimilar.

    Cost per instance: 2 m d operations for m anchors and 4 m k for the step. State: W (m k), the
    anchors (m d), the means, and a row that waits for its pair.

    Parameters
    ----------
    n_bits : int, default=32
        Code length k.
    batch_size : int, default=64
        Rows handled at once; without effect on the result but for rounding. Pairs are learned one
        after the other, as by the authors (n_t = 2).
    aggressiveness : float, default=0.1
        Cap C of a step. Authors: 0.001 (CIFAR-10, MNIST), 0.0001 (Places205).
    margin : float, default=0.45
        Share α of the bits in which a dissimilar pair must differ; a similar one must in none.
        Authors: 0.3, 0.3, 0.7.
    n_anchors : int, default=300
        Number of anchors m, the first instances of the stream. Authors: 300.
    anchors : array (m, d) or None, default=None
        The anchors themselves, in place of the first ``n_anchors`` instances: if they come from the
        whole data set, that is looking ahead, as the released program does.
    bandwidth : "mean", "released", "demo" or float, default=0.1
        Width b of the kernel exp(−‖x − a‖² / 2b). With s the mean squared distance of two anchors:
        b = s; b = s², as the program of the comparisons has it; b = 0.9², as in the first
        authors' demonstration; or so many times s.
    normalize : bool, default=True
        Take off the running mean and bring rows to unit length, before the kernel map and again
        after it, which makes the method scale-free. Authors: features centred by the mean of all
        data, and of unit length; nothing after the map.
    features : "absolute", "fourier" or None, default=None
        Learn from random features of the instances (``RandomFeatures``), of this kind, or not.
    memory : int, default=0
        Instances to keep, evenly over the classes (``ClassMemory``); each stage is learned together
        with as many of them as it has, so that it matters how the stream is cut.
    random_state : int, RandomState or None
        Seed of the first hash functions.

    Attributes
    ----------
    W_ : array (m + 1, k)
        The hash functions, as columns.
    parts_ : list
        What is done to the features: centring, kernel map, centring.
    queue_ : PairQueue
        The mapped row that waits for its pair, if any.
    n_updates_ : int
        Pairs so far that changed W.
    n_stages_, n_samples_seen_ : int
        Stages and instances seen.

    Notes
    -----
    Similar means the same label or, with a 0/1 matrix of labels, at least one class in common. The
    anchors come with the stream: a row is mapped by those that have come up to it, itself included,
    features of the others are 0, and the bandwidth follows the anchors there are; after m rows the
    map stays as it is. Learning goes on meanwhile.

    Differences from the paper

    1. The update is written from the published idea and formulas; the journal version has a
       threshold for similar pairs too, here it is 0. Number of flips: the loss rounded up. Of bits
       equally uncertain the first is flipped; if both projections of a bit are, that of the
       first item.
    2. Our defaults (a narrow kernel, centred and unit kernel features, C and α) are not the
       paper's; ``OKH.published`` has those. After centring, the constant feature is 0: hash
       functions have no offset but through the kernel.

    Differences from the released program

    1. Its update is an encrypted file: what it does beyond its parameters is not known.
    2. Anchors and bandwidth come from the stream's first instances and not from the whole training
       set, unless ``anchors`` are given; the bandwidth is taken from distances between anchors,
       not from 2,000 further rows.
    3. float32 instead of float64, blocks of pairs with the same outcome
       (``kernels/learning/pairwise_steps.py``).

    References
    ----------
    L.-K. Huang, Q. Yang, W.-S. Zheng: Online hashing. IJCAI 2013; IEEE Transactions on Neural
    Networks and Learning Systems 2017, arXiv 1704.01897.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from streamhash import OKH
    >>> X, y = load_digits(return_X_y=True)
    >>> hasher = OKH(n_bits=32, random_state=0).partial_fit(X[:1500], y[:1500])
    >>> hasher.transform(X[1500:]).shape
    (297, 4)
    """

    multi_label = True
    reference = "Huang et al., IJCAI 2013"
    year = 2013
    one_by_one = True
    learns_pairs = True

    batch_size: int = parameter(Whole(1), default=64)
    n_anchors: int = parameter(Whole(1), default=300, search=Values(300, 1000))
    anchors: NDArray[Any] | None = parameter(Maybe(GIVEN_ANCHORS), default=None)
    aggressiveness: float = parameter(Number(above=0), default=0.1, search=Span(0.001, 1))
    bandwidth: str | float = parameter(BANDWIDTH, default=0.1, search=Span(0.02, 1))
    margin: float = parameter(
        Number(at_least=0, at_most=1),
        default=0.45,
        search=Values(0.2, 0.3, 0.35, 0.4, 0.45, 0.5),
    )

    learns = Table(
        W_=Array(np.float32, "D", "k"),
        queue_=Part(PairQueue, d="D", started=False),
        n_updates_=Count(),
    )

    def _feature_parts(self, d: int) -> list[StreamPart]:
        if self.anchors is None:
            kernel = KernelFeatures(self.n_anchors, bandwidth=self.bandwidth)
        else:
            kernel = KernelFeatures.on(
                self.anchors, d, "OKH: anchors", unit=self.normalize, bandwidth=self.bandwidth
            )
        return [*super()._feature_parts(d), kernel, *super()._feature_parts(d)]

    def _start(self, X: Matrix, y: Any) -> None:  # noqa: ARG002
        self.queue_ = PairQueue()
        random = new_generator(self.random_state)
        self.W_ = random_directions(X.shape[1], self.n_bits, random)
        self.n_updates_ = 0

    def _learn(self, X: Matrix, y: Any) -> None:
        self._learn_pairs(*self.queue_.pair(X, y, "OKH"))  # (2 pairs, m + 1), (pairs,)

    def _learn_pairs(self, Z: Matrix, similar: NDArray[np.bool_]) -> None:
        # For each pair: W ← W + τ (z_i (g_i − h_i)ᵀ + z_j (g_j − h_j)ᵀ), h codes and g targets,
        # τ = min(C, ℓ / ‖·‖²)
        self.W_, n_active = learn_passive_pairs(
            self.W_, Z, similar, cap=self.aggressiveness, margin=self.margin
        )
        self.n_updates_ += n_active
