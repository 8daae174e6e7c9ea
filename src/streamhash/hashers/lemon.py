"""LEMON, one modality: label embedding online hashing (Wang, Luo and Xu, ACM MM 2020)."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from streamhash.base import Matrix, new_generator
from streamhash.classes import ClassTable
from streamhash.hashers._balanced import balanced
from streamhash.hashers._regression import RegressionHasher, solve_ridge
from streamhash.learned import Array, Generator, Part, Table
from streamhash.parameters import Choice, Number, Span, Values, Whole, parameter

Numbers = NDArray[np.float64]
ENOUGH = 0.75  # of the classes so far, for a stage to learn codes from
CANDIDATES = 64  # codewords drawn for a new class


class LEMON(RegressionHasher):
    """Label embedding online hashing, the half of it that one modality needs.

    Codes are learned from labels alone: they are to reproduce the similarity of label sets to all
    that came before, and labels are to be reconstructed from them. Running sums stand for what
    came before. Then one ridge regression a modality maps features to codes; here there is one. It
    wins with several labels a row; a stage of few classes says too little about codes, so that a
    sorted stream is learned by codewords drawn at random.

    Cost per stage: 60 n k² operations for the codes; the rest as in RidgeHash. State: that of
    RidgeHash and 3 k² + 3 C k numbers for C classes.

    Parameters
    ----------
    n_bits : int, default=32
        Code length k.
    batch_size : int, default=500
        Instances a stage, n_t. Authors: 2000 (MIRFLICKR, IAPRTC-12), 10,000 (NUS-WIDE).
    similarity_weight, label_weight : float, default=1e4
        Weights α of ‖k S − V Bᵀ‖² and β of ‖L − V P‖². Authors: 1e4.
    label_ridge : float, default=0.1
        Weight γ of ‖P‖². Authors: 0.1.
    n_iterations : int, default=5
        Rounds of the four updates of a stage. Authors: 5.
    few_classes : "codewords" or "released", default="codewords"
        What a stage does that has fewer than three quarters of the classes so far, as in a sorted
        stream: its rows get the codes that their labels have, those of new classes being drawn at
        random, and W alone learns; or it learns codes like any other, as in the authors' program,
        and different classes come to share them. Authors: "released".
    ridge : float, default=0.1
        Weight ξ of ‖W‖². Authors: 1.
    n_anchors : int or None, default=1000
        Kernel map on so many anchors, the first instances of the stream; or no kernel map. Authors:
        None, though their program comes with one.
    divisor : float, default=4.0
        The width η of the kernel exp(−‖x − a‖² / 2η) is the mean squared distance of two anchors
        divided by this.
    normalize : bool, default=True
        Take off the running mean and bring instances to unit length, before the kernel map; the
        kernel's features are centred in any case. Authors: False, features as they are stored.
    features : "absolute", "fourier" or None, default=None
        Learn from random features of the instances (``RandomFeatures``), of this kind, or not.
    random_state : int, RandomState or None
        Seed of the codes that a stage begins with.

    Attributes
    ----------
    W_ : array (m, k), or (d, k) without a kernel
        The hash functions, as columns; not there between learning and ``settle``.
    gram_, cross_ : arrays (m, m), (m, k)
        The rows, transposed, times themselves and times their codes.
    VV_, BV_ : arrays (k, k)
        Sums VᵀV and BᵀV.
    VL_ : array (C, k)
        LᵀV.
    GB_, GV_ : arrays (C, k)
        GᵀB and GᵀV, with G the labels of a row, of unit length together.
    B_sum_, V_sum_ : arrays (k,)
        Sums of the codes and of V.
    table_ : ClassTable
        The C classes so far, by first appearance; with a matrix of labels, its columns.
    parts_ : list
        What is done to the features before.
    random_ : Generator
        The source of random numbers.
    n_stages_, n_samples_seen_ : int
        Stages and instances seen.

    Notes
    -----
    Rows without labels move nothing but the mean and the anchors.

    Differences from the paper

    1. One modality, of the paper's two.
    2. The kernel and our ridge; ``LEMON.published`` has neither.
    3. Where all rows of a stage have the same labels, centring takes every label term away, and
       rounding would decide the codes; and of two classes the new one gets the complement of the
       other's code, whichever that is. ``few_classes`` says what is done then. V of such a stage is
       its codes, and counts in no sum over all rows, as V is balanced over the whole stream. A
       stage of a single label set has a kept or a drawn code in any case.

    Differences from the authors' program

    1. What is zero among eigenvalues is told by their share of the largest, not by 1e-6; columns
       that are filled up at random are centred and orthogonal to the others.
    2. A parameter θ is set there and never used.

    References
    ----------
    Y. Wang, X. Luo, X.-S. Xu: Label embedding online hashing for cross-modal retrieval. ACM
    Multimedia 2020, doi 10.1145/3394171.3413971.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from streamhash import LEMON
    >>> X, y = load_digits(return_X_y=True)
    >>> hasher = LEMON(n_bits=32, random_state=0).partial_fit(X[:1500], y[:1500])
    >>> hasher.transform(X[1500:]).shape
    (297, 4)
    """

    multi_label = True
    takes_memory = False  # its sums forget nothing
    has_label_codes = True
    reference = "Wang et al., ACM MM 2020"
    year = 2020

    batch_size: int = parameter(Whole(1), default=500, search=Values(200, 500, 1000, 2000))
    similarity_weight: float = parameter(Number(above=0), default=1e4, search=Span(1, 1e6))
    label_weight: float = parameter(Number(at_least=0), default=1e4, search=Span(1, 1e6))
    label_ridge: float = parameter(Number(above=0), default=0.1)
    n_iterations: int = parameter(Whole(1, 10_000), default=5)
    few_classes: str = parameter(Choice("codewords", "released"), default="codewords")

    learns = Table(
        VV_=Array(np.float64, "k", "k"),
        BV_=Array(np.float64, "k", "k"),
        VL_=Array(np.float64, "C", "k"),
        GB_=Array(np.float64, "C", "k"),
        GV_=Array(np.float64, "C", "k"),
        B_sum_=Array(np.float64, "k"),
        V_sum_=Array(np.float64, "k"),
        table_=Part(ClassTable, C="C"),
        random_=Generator(),
    )

    def _start(self, X: Matrix, y: Any) -> None:  # noqa: ARG002
        k = self.n_bits
        self.random_ = new_generator(self.random_state)
        self.table_ = ClassTable()
        self.VV_, self.BV_ = np.zeros((k, k)), np.zeros((k, k))
        self.VL_, self.GB_, self.GV_ = np.zeros((0, k)), np.zeros((0, k)), np.zeros((0, k))
        self.B_sum_, self.V_sum_ = np.zeros(k), np.zeros(k)
        self._start_sums(X.shape[1])

    def _learn(self, X: Matrix, y: Any) -> None:
        L = self.table_.one_hot(y, add=True).astype(np.float64)  # (n, C)
        X, L = X[L.any(axis=1)], L[L.any(axis=1)]
        for name in ("VL_", "GB_", "GV_"):
            known = getattr(self, name)
            setattr(self, name, np.pad(known, ((0, L.shape[1] - len(known)), (0, 0))))
        if not len(L):
            return
        G = L / np.sqrt(L.sum(axis=1, keepdims=True))  # (n, C)
        if self._says_enough(L):
            B, V = self._learned_codes(L, G)
            self.B_sum_ = self.B_sum_ + B.sum(axis=0)
            self.V_sum_ = self.V_sum_ + V.sum(axis=0)
        else:
            B = V = self._kept_codes(L)
        self.VV_, self.BV_ = self.VV_ + V.T @ V, self.BV_ + B.T @ V
        self.VL_ = self.VL_ + L.T @ V
        self.GB_, self.GV_ = self.GB_ + G.T @ B, self.GV_ + G.T @ V
        self._add(X, B)

    def _learned_codes(self, L: Numbers, G: Numbers) -> tuple[Numbers, Numbers]:
        """Return the codes B (n, k) of a stage, and V, their real-valued balanced stand-in."""
        n, k, random = len(L), self.n_bits, self.random_
        # All of an update may be divided by one number: here by α k, lest numbers grow huge.
        own = 1 / (self.similarity_weight * k)
        B = np.where(random.integers(2, size=(n, k)) > 0, 1.0, -1.0)
        V = random.standard_normal((n, k))
        R = linalg.qr(random.standard_normal((k, k)))[0]
        for _ in range(self.n_iterations):
            P = solve_ridge(self.VV_ + V.T @ V, self.VL_.T + V.T @ L, self.label_ridge)  # (k, C)
            pull = 2 * G @ (self.GB_ + G.T @ B) - (self.B_sum_ + B.sum(axis=0))  # (n, k)
            V = balanced(own * (B @ R.T + self.label_weight * L @ P.T) + pull, random)
            U, _, Zt = linalg.svd(self.BV_ + B.T @ V)
            R = Zt.T @ U.T  # (k, k)
            pull = 2 * G @ (self.GV_ + G.T @ V) - (self.V_sum_ + V.sum(axis=0))
            B = np.where(pull + own * (V @ R) >= 0, 1.0, -1.0)
        return B, V

    def _says_enough(self, L: Numbers) -> bool:
        """Whether a stage has several label sets, and enough of the classes so far."""
        share = L.any(axis=0).mean()
        several = not (L[0] == L).all()
        return several and (self.few_classes == "released" or bool(share >= ENOUGH))

    def _kept_codes(self, L: Numbers) -> Numbers:
        """Return the codes (n, k) that label sets have; new classes get codewords before."""
        codes = np.where(self.GV_ > 0, 1.0, -1.0)  # (C, k)
        is_new = np.asarray(~self.GV_.any(axis=1))
        for new in np.flatnonzero(is_new):  # of some at random, the one farthest from those given
            drawn = np.where(
                self.random_.integers(2, size=(CANDIDATES, self.n_bits)) > 0, 1.0, -1.0
            )
            nearness = (drawn @ codes[~is_new].T).max(axis=1, initial=-np.inf)
            codes[new], is_new[new] = drawn[nearness.argmin()], False
        return np.where(L @ codes >= 0, 1.0, -1.0)

    def _embedded(self, L: NDArray[Any]) -> Numbers:
        """2 g GᵀV − 1ᵀV for label sets (n, C): what draws their codes (n, k)."""
        lengths = np.sqrt(np.maximum(L.sum(axis=1, keepdims=True), 1.0))
        embedded: Numbers = 2 * (L / lengths) @ self.GV_ - self.V_sum_
        return embedded

    def _label_values(self, y: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
        L = self.table_.one_hot(y)
        return self._embedded(L), L
