"""HMOH: Hadamard matrix guided online hashing (Lin et al., IJCV 2020)."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from streamhash.base import Matrix, StreamPart, new_generator, row_product
from streamhash.classes import ClassTable
from streamhash.features import GIVEN_ANCHORS, NormalizedHasher, RadialMap
from streamhash.hashers._codebook import N_CLASSES, Codebook
from streamhash.kernels.learning.sequential import learn_one_by_one
from streamhash.learned import Array, Count, Generator, Part, Table
from streamhash.parameters import Choice, Maybe, Number, Span, Values, Whole, parameter


class HMOH(NormalizedHasher):
    """Hadamard matrix guided online hashing.

    Each class gets a row of a Hadamard matrix as its target code, as in HCOH; each bit is a
    perceptron, moved only where it errs, on kernel features or plain ones, and the hash functions
    are the average over all rounds. It wins where classes bend around each other, thanks to the
    kernel, and knows no step size; as HCOH it knows no similarity between classes.

    Cost per instance: 2 m d operations for m anchors and 4 m k for the step (4 d k without a
    kernel). State: W and its sum (2 m k), the anchors (m d), the mean (d), the targets.

    Parameters
    ----------
    n_bits : int, default=32
        Code length k.
    batch_size : int, default=64
        Rows handled at once; without effect on the result but for rounding. Instances are learned
        one after the other, as by the authors (n_t = 1).
    n_anchors : int or None, default=1000
        Kernel map on so many anchors, the first instances of the stream; or no kernel map. Authors:
        None (CIFAR-10), 300 (MNIST), 800 (Places205).
    anchors : array (m, d) or None, default=None
        The anchors themselves, in place of the first ``n_anchors`` instances: if they come from the
        whole data set, that is looking ahead, as the authors' program does.
    divisor : float, default=12.0
        The width η of the kernel exp(−‖x − a‖² / 2η) is the mean squared distance of two anchors
        divided by this. Authors: –, 6, 10.
    rows : "permuted" or "natural", default="permuted"
        Order of the rows of the Hadamard matrix. In the natural one 10 classes have only 16
        different bits, however long the code. Authors: "natural".
    weights : "averaged" or "last", default="averaged"
        Hash by the average of W over all rounds, or by the last W.
    n_classes : int, default=1
        Classes expected: the codebook begins with r* rows, the smallest power of two that is at
        least k and this, and grows when more come. Authors: 10, 10, 205.
    normalize : bool, default=True
        Take off the running mean and bring instances to unit length, before the kernel map and
        again after it. Authors: False, features as they are.
    features : "absolute", "fourier" or None, default=None
        Learn from random features of the instances (``RandomFeatures``), of this kind, or not.
    memory : int, default=0
        Instances to keep, evenly over the classes (``ClassMemory``); each stage is learned together
        with as many of them as it has, so that it matters how the stream is cut.
    random_state : int, RandomState or None
        Seed of the codebook.

    Attributes
    ----------
    W_ : array (m, k), or (d, k) without a kernel
        The hash functions of the last round, as columns.
    total_ : array of the same shape
        The sum of W over all rounds.
    n_rounds_ : int
        How many there were.
    codebook_ : Codebook
        The targets (classes, k), in the order in which classes came.
    table_ : ClassTable
        The classes in that order; with a matrix of labels, its columns.
    parts_ : list
        What is done to the features before: centring, kernel map.
    random_ : Generator
        The source of further targets.
    n_stages_, n_samples_seen_ : int
        Stages and instances seen.

    Notes
    -----
    With a 0/1 matrix of labels the target is the sign of the sum of the targets of the instance's
    classes; where they cancel, it is filled up, in the order of the bits, with as many +1 and then
    −1 as make both equally frequent in it, as far as that goes. An instance without labels moves
    nothing but the mean and the anchors.

    Differences from the paper

    1. One instance a round. Steps go in blocks with the same outcome
       (``kernels/learning/sequential.py``).
    2. Our default has rows in random order, 1,000 anchors and normalised features;
       ``HMOH.published`` has the authors'.

    Differences from the authors' program

    1. Anchors are the stream's first instances, and η comes from them; the program draws anchors
       from half of the training data and η from the other half before the stream begins.
    2. There is no learning rate: W starts at zero, so that it only scales W, which no bit shows.
    3. The average divides by the number of rounds; the program by the number of mistakes of each
       bit, which may be zero. No bit shows that either.
    4. Rows go to classes in the order of their first appearance, and the codebook grows, as in
       HCOH.
    5. Filling up the targets of several labels is defective in the program; here it is as meant.
    6. float32 instead of float64.

    References
    ----------
    M. Lin, R. Ji, H. Liu, X. Sun, S. Chen, Q. Tian: Hadamard matrix guided online hashing.
    International Journal of Computer Vision 2020, arXiv 1905.04454.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from streamhash import HMOH
    >>> X, y = load_digits(return_X_y=True)
    >>> hasher = HMOH(n_bits=32, random_state=0).partial_fit(X[:1500], y[:1500])
    >>> hasher.transform(X[1500:]).shape
    (297, 4)
    """

    multi_label = True
    reference = "Lin et al., IJCV 2020"
    year = 2020
    one_by_one = True
    has_label_codes = True
    published_features = "raw"

    batch_size: int = parameter(Whole(1), default=64)
    n_anchors: int | None = parameter(Maybe(Whole(1)), default=1000, search=Values(None, 300, 1000))
    anchors: NDArray[Any] | None = parameter(Maybe(GIVEN_ANCHORS), default=None)
    divisor: float = parameter(Number(above=0), default=12.0, search=Span(2, 30))
    rows: str = parameter(
        Choice("permuted", "natural"), default="permuted", search=Values("permuted", "natural")
    )
    weights: str = parameter(
        Choice("averaged", "last"), default="averaged", search=Values("averaged", "last")
    )
    n_classes: int = parameter(N_CLASSES, default=1)

    learns = Table(
        W_=Array(np.float32, "D", "k"),
        total_=Array(np.float64, "D", "k"),
        n_rounds_=Count(),
        codebook_=Part(Codebook, n_bits="k"),
        table_=Part(ClassTable),
        random_=Generator(),
    )

    def _feature_parts(self, d: int) -> list[StreamPart]:
        before, after = super()._feature_parts(d), super()._feature_parts(d)
        if self.anchors is not None:
            unit, width = self.normalize, self.divisor
            kernel = RadialMap.on(self.anchors, d, "HMOH: anchors", unit=unit, divisor=width)
        elif self.n_anchors is not None:
            kernel = RadialMap(self.n_anchors, divisor=self.divisor)
        else:
            return before
        return [*before, kernel, *after]

    def _start(self, X: Matrix, y: Any) -> None:  # noqa: ARG002
        self.W_ = np.zeros((X.shape[1], self.n_bits), np.float32)
        self.total_ = np.zeros(self.W_.shape)
        self.n_rounds_ = 0
        self.random_ = new_generator(self.random_state)
        self.codebook_ = Codebook(self.n_bits, kind=self.rows, n_classes=self.n_classes)
        self.table_ = ClassTable()

    def _learn(self, X: Matrix, y: Any) -> None:
        if y.ndim == 2:
            X, T = X[y.any(axis=1)], self._shared_targets(y[y.any(axis=1)])
        else:
            T = self.codebook_.targets(self.table_.number(y), self.random_)  # (n, k)
        # For each x and bit r: where sgn(w_rᵀx) ≠ t_r, w_r ← w_r + t_r x; then the sum ← sum + W
        self.W_, total = learn_one_by_one(X, self.W_, T, "perceptron", 1.0, self.total_)
        if total is not None:
            self.total_ = total
        self.n_rounds_ += len(X)

    def _shared_targets(self, Y: NDArray[np.uint8]) -> Matrix:
        """Targets (n, k) of instances with several classes: signs of sums, balanced where zero."""
        rows, columns = np.nonzero(Y)
        of_labels = self.codebook_.targets(self.table_.number(columns), self.random_)
        sums = np.zeros((len(Y), self.n_bits), np.float32)
        np.add.at(sums, rows, of_labels)
        undecided = sums == 0  # (n, k)
        n_undecided = undecided.sum(axis=1)
        excess = np.sign(sums).sum(axis=1).astype(np.int64)  # how many more +1 than −1
        n_positive = np.clip((n_undecided - excess) // 2, 0, n_undecided)  # (n,) to fill in
        fill = np.where(undecided.cumsum(axis=1) <= n_positive[:, None], 1, -1)
        return np.where(undecided, fill, np.sign(sums)).astype(np.float32)

    def _label_values(self, y: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
        L = self.table_.one_hot(y)  # (n, C)
        if y.ndim == 1:
            return L @ self.codebook_.targets_, L
        known = np.isin(np.arange(y.shape[1]), self.table_.labels_)
        return self._shared_targets(y * known), L

    def _project(self, X: Matrix) -> Matrix:
        if self.weights == "last":
            return row_product(X, self.W_)
        return row_product(X, (self.total_ / max(self.n_rounds_, 1)).astype(np.float32))
