"""HCOH: Hadamard codebook based online hashing (Lin et al., ACM MM 2018)."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from streamhash.base import Matrix, new_generator, random_directions
from streamhash.classes import ClassTable
from streamhash.features import NormalizedHasher
from streamhash.hashers._codebook import N_CLASSES, Codebook
from streamhash.kernels.learning.sequential import learn_one_by_one
from streamhash.learned import Array, Generator, Part, Table
from streamhash.parameters import Number, Span, Whole, parameter


class HCOH(NormalizedHasher):
    """Hadamard codebook based online hashing.

    Each class gets a row of a Hadamard matrix as its target code, any two of which are half the
    bits apart, and tanh(Wᵀx) is drawn towards the target of each instance by one gradient step. It
    wins where classes are few and well told apart by hyperplanes, and is quick; it knows no
    similarity between classes, and with far more classes than bits the targets crowd.

    Cost per instance: 4 d k operations. State: W (d k), the mean (d) and the targets (classes × k).

    Parameters
    ----------
    n_bits : int, default=32
        Code length k.
    batch_size : int, default=64
        Rows handled at once; without effect on the result but for rounding. Instances are learned
        one after the other, as by the authors (n_t = 1).
    learning_rate : float, default=0.2
        Step η. Authors: 0.2 (CIFAR-10, MNIST), 0.1 (Places205).
    n_classes : int, default=1
        Classes expected: the codebook begins with r* rows, the smallest power of two that is at
        least k and this, and grows when more come. Authors: 10, 10, 205.
    normalize : bool, default=True
        Take off the running mean and bring instances to unit length, which makes the method
        scale-free. Authors: features centred by the mean of all data, and of unit length.
    features : "absolute", "fourier" or None, default=None
        Learn from random features of the instances (``RandomFeatures``), of this kind, or not.
    memory : int, default=0
        Instances to keep, evenly over the classes (``ClassMemory``); each stage is learned together
        with as many of them as it has, so that it matters how the stream is cut.
    random_state : int, RandomState or None
        Seed of the first hash functions and of the codebook.

    Attributes
    ----------
    W_ : array (d, k)
        The hash functions, as columns.
    codebook_ : Codebook
        The targets (classes, k), in the order in which classes came.
    table_ : ClassTable
        The classes in that order.
    parts_ : list
        What prepares the features: the running mean and unit length, if ``normalize``.
    random_ : Generator
        The source of further targets.
    n_stages_, n_samples_seen_ : int
        Stages and instances seen.

    Notes
    -----
    Differences from the paper

    1. One instance a step; the paper's update is for a batch, and its experiments, too, have n_t =
       1. Steps go in blocks with the same outcome (``kernels/learning/sequential.py``).
    2. Our default centres by the running mean; ``HCOH.published`` leaves features as they come.

    Differences from the authors' program

    1. Rows go to classes in the order of their first appearance, not by the number that is the
       label: labels may be anything, and the number of classes need not be known. More classes than
       rows: a matrix of twice the size with a new projection gives the targets of the new ones.
    2. float32 instead of float64.

    References
    ----------
    M. Lin, R. Ji, H. Liu, Y. Wu: Supervised online hashing via Hadamard codebook learning. ACM
    Multimedia 2018, arXiv 1905.03694.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from streamhash import HCOH
    >>> X, y = load_digits(return_X_y=True)
    >>> hasher = HCOH(n_bits=32, random_state=0).partial_fit(X[:1500], y[:1500])
    >>> hasher.transform(X[1500:]).shape
    (297, 4)
    """

    reference = "Lin et al., ACM MM 2018"
    year = 2018
    one_by_one = True
    has_label_codes = True

    batch_size: int = parameter(Whole(1), default=64)
    learning_rate: float = parameter(Number(above=0), default=0.2, search=Span(0.02, 2))
    n_classes: int = parameter(N_CLASSES, default=1)

    learns = Table(
        W_=Array(np.float32, "D", "k"),
        codebook_=Part(Codebook, n_bits="k"),
        table_=Part(ClassTable),
        random_=Generator(),
    )

    def _start(self, X: Matrix, y: Any) -> None:  # noqa: ARG002
        self.random_ = new_generator(self.random_state)
        self.W_ = random_directions(X.shape[1], self.n_bits, self.random_)
        self.codebook_ = Codebook(self.n_bits, n_classes=self.n_classes)
        self.table_ = ClassTable()

    def _learn(self, X: Matrix, y: Any) -> None:
        T = self.codebook_.targets(self.table_.number(y), self.random_)  # (n, k)
        # For each x: W ← W − η x ((f − t) ∘ (1 − f ∘ f))ᵀ, f = tanh(Wᵀx): gradient of ½ ‖f − t‖²
        self.W_, _ = learn_one_by_one(X, self.W_, T, "regression", self.learning_rate)

    def _label_values(self, y: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
        L = self.table_.one_hot(y)  # (n, C)
        return L @ self.codebook_.targets_, L
