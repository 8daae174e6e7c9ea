"""RidgeHash: running ridge regression onto fixed codewords, the baseline of code learning."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from streamhash.base import Matrix, new_generator
from streamhash.classes import ClassTable
from streamhash.hashers._codebook import N_CLASSES, Codebook
from streamhash.hashers._regression import RegressionHasher
from streamhash.learned import Generator, Part, Table
from streamhash.parameters import Choice, Values, Whole, parameter


class RidgeHash(RegressionHasher):
    """Running ridge regression onto fixed codewords: the baseline that learned codes must beat.

    Each class gets a codeword when it first appears, and keeps it; W is the ridge regression from
    all rows so far to the codewords of their classes, on kernel features or plain ones. Nothing is
    learned about the codes themselves. It is no method of a paper: FOH, LEMON and SDOH-HC end with
    such a regression, and this tells what the rest of them is worth. It wins where streams come
    sorted or cut in any way, since its sums know no order; it is bound to the anchors that come
    first, and random codewords of few bits lie close to each other or collide.

    Cost per row: 2 m d operations for m anchors and m² for the sums; m³/3 when the hash functions
    are asked for after learning. State: 8 m² + 12 m k + 4 m d bytes (8 d² + 12 d k without a
    kernel).

    Parameters
    ----------
    n_bits : int, default=32
        Code length k.
    batch_size : int, default=500
        Rows summed at once; after the anchors have come it matters to the running mean alone.
    n_anchors : int or None, default=1000
        Kernel map on so many anchors, the first instances of the stream; or no kernel map. 1000 in
        the published settings, which are those of SDOH-HC.
    divisor : float, default=4.0
        The width η of the kernel exp(−‖x − a‖² / 2η) is the mean squared distance of two anchors
        divided by this. Published: 1.
    ridge : float, default=0.1
        Weight δ of ‖W‖². Published: 1.
    codewords : "permuted", "natural", "spread" or "random", default="permuted"
        A new class takes a row of a Hadamard matrix, in random or natural order; or, of 64 random
        codewords, the one farthest from those given; or any (``Codebook``). Published: "random".
    n_classes : int, default=1
        Classes expected: of a Hadamard matrix, the rows that it begins with.
    normalize : bool, default=True
        Take off the running mean and bring instances to unit length, before the kernel map; the
        kernel's features are centred in any case.
    features : "absolute", "fourier" or None, default=None
        Learn from random features of the instances (``RandomFeatures``), of this kind, or not.
    random_state : int, RandomState or None
        Seed of the codewords.

    Attributes
    ----------
    W_ : array (m, k), or (d, k) without a kernel
        The hash functions, as columns; not there between learning and ``settle``.
    gram_, cross_ : arrays (m, m), (m, k)
        The rows, transposed, times themselves and times their codewords.
    codebook_ : Codebook
        The codewords (classes, k), in the order in which classes came.
    table_ : ClassTable
        The classes in that order; with a matrix of labels, its columns.
    parts_ : list
        What is done to the features before.
    random_ : Generator
        The source of further codewords.
    n_stages_, n_samples_seen_ : int
        Stages and instances seen.

    Notes
    -----
    With a 0/1 matrix of labels the target is the sign of the sum of the codewords of the instance's
    classes, 0 where they cancel; an instance without labels moves nothing but the mean and the
    anchors.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from streamhash import RidgeHash
    >>> X, y = load_digits(return_X_y=True)
    >>> hasher = RidgeHash(n_bits=32, random_state=0).partial_fit(X[:1500], y[:1500])
    >>> hasher.transform(X[1500:]).shape
    (297, 4)
    """

    multi_label = True
    takes_memory = False  # its sums forget nothing
    has_label_codes = True
    reference = "baseline, streamhash 2026"
    year = 2026

    batch_size: int = parameter(Whole(1), default=500)
    codewords: str = parameter(
        Choice("permuted", "natural", "spread", "random"),
        default="permuted",
        search=Values("permuted", "spread", "random"),
    )
    n_classes: int = parameter(N_CLASSES, default=1)

    learns = Table(
        codebook_=Part(Codebook, n_bits="k", started=False),
        table_=Part(ClassTable),
        random_=Generator(),
    )

    def _start(self, X: Matrix, y: Any) -> None:  # noqa: ARG002
        self.random_ = new_generator(self.random_state)
        self.codebook_ = Codebook(self.n_bits, kind=self.codewords, n_classes=self.n_classes)
        self.table_ = ClassTable()
        self._start_sums(X.shape[1])

    def _learn(self, X: Matrix, y: Any) -> None:
        L = self.table_.one_hot(y, add=True)  # (n, C)
        M = self.codebook_.targets(np.arange(L.shape[1], dtype=np.int32), self.random_)  # (C, k)
        self._add(X, np.sign(L @ M))

    def _label_values(self, y: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
        L = self.table_.one_hot(y)
        return L @ self.codebook_.targets_, L
