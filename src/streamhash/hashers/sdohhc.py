"""SDOH-HC: self-distillation dual-memory online hashing with hash centres (Zhang et al., 2023)."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from streamhash.base import Matrix, new_generator
from streamhash.classes import ClassTable
from streamhash.features import unit_length
from streamhash.hashers._balanced import balanced
from streamhash.hashers._codebook import N_CLASSES, Codebook
from streamhash.hashers._regression import RegressionHasher
from streamhash.hashers._stages import tell_short_stages
from streamhash.kernels.learning.bit_updates import update_bits
from streamhash.learned import Array, Generator, Part, Table
from streamhash.parameters import Choice, Number, Span, Values, Whole, parameter

Signs = NDArray[np.int8]  # of -1 and +1
Numbers = NDArray[np.float64]
TIMES = 3  # that an update goes over the bits


class SDOHHC(RegressionHasher):
    """Self-distillation dual-memory online hashing with hash centres (Zhang et al., ACM MM 2023).

    Each class has a centre, a code that is learned: it is held near a row of a Hadamard matrix, and
    its relation to the other centres near that of the stage before. Codes of new rows fit the
    centres, the labels of all that came before and a small memory of exemplars. Ridge regression
    from kernel features to the codes follows. Not related to SDOH. It wins by its kernel and its
    regression; centres of classes that are absent from the stages drift, and stages need many rows
    of each class: fewer than two are told.

    Cost per stage: 100 n k² operations for the codes; the rest as in RidgeHash. State: that of
    RidgeHash, 3 C k numbers for C classes, and the exemplars with their features.

    Parameters
    ----------
    n_bits : int, default=32
        Code length k.
    batch_size : int, default=2000
        Instances a stage, n_t. Authors: 2000 (CIFAR-10, MIRFLICKR), 10,000 (NUS-WIDE).
    old_weight, exemplar_weight : float, default=1.0
        Weights α of the similarity to what came before and γ of that to exemplars. Authors: 1.
    balance_weight : float, default=1.0
        Weight β of ‖B − V‖², V being balanced. Authors: 1, 1, 10.
    centre_weight : float, default=0.1
        Weight θ of the centres' relation to those before, and to Hadamard rows. Authors: 0.1, 10,
        10.
    label_weight : float, default=100.0
        Weight η of ‖k L − B Yᵀ‖², Y being the centres. Authors: 100, 1, 10.
    n_exemplars, n_kept : int, default=200, 100
        Exemplars, and how many of them stay when a stage brings others. Authors: 200 and 100, 200
        and 100, 400 and 100.
    n_iterations : int, default=10
        Rounds of the three updates of a stage. Authors: 10.
    form : "objective" or "released", default="objective"
        The updates that follow from the objective; or those of the authors' program (see below).
    start : "centres" or "random", default="centres"
        Codes that a stage begins with: those of the centres of a row's classes; or random ones, by
        which centres lose their Hadamard rows in the first update. Authors: "random".
    rows : "permuted" or "natural", default="permuted"
        Order of the rows of the Hadamard matrix. Authors: the first rows, "natural".
    ridge : float, default=0.1
        Weight δ of ‖W‖². Authors: 1.
    n_anchors : int or None, default=1000
        Kernel map on so many anchors, the first instances of the stream; or none. Authors: 1000.
    divisor : float, default=4.0
        The width of the kernel exp(−‖x − a‖² / 2η) is the mean squared distance of two anchors
        divided by this. Authors: 1.
    n_classes : int, default=1
        Classes expected: the codebook begins with r* rows, the smallest power of two that is at
        least k and this, and grows when more come.
    normalize : bool, default=True
        Take off the running mean and bring instances to unit length, before the kernel map; the
        kernel's features are centred in any case. Authors: False, features as they come.
    features : "absolute", "fourier" or None, default=None
        Learn from random features of the instances (``RandomFeatures``), of this kind, or not.
    random_state : int, RandomState or None
        Seed of the codebook, of codes to begin with and of the exemplars that stay.

    Attributes
    ----------
    W_ : array (m, k), or (d, k) without a kernel
        The hash functions, as columns; not there between learning and ``settle``.
    gram_, cross_ : arrays (m, m), (m, k)
        The rows, transposed, times themselves and times their codes.
    Y_ : array (C, k)
        The centres, of -1 and +1.
    GV_ : array (C, k)
        Sums GᵀV, with G the labels of a row, of unit length together.
    exemplar_labels_, exemplar_rows_, exemplar_codes_ : arrays (q, C), (q, m), (q, k)
        The exemplars: labels, features and codes.
    codebook_ : Codebook
        The Hadamard rows (classes, k).
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
    Differences from the paper (its poster's equations)

    1. Which rows become exemplars is inferred: those whose codes fit the centres best.
    2. The Hadamard matrix is of r* rows and brought to k bits as in HCOH where r* ≠ k; the paper
       takes columns of a matrix of 256 and more.
    3. Anchors are the stream's first rows, of which the authors draw a half; the kernel's width and
       means come from the stream so far.
    4. Our defaults are not the paper's; ``SDOHHC.published`` has the authors'.

    Differences from the authors' program, all named ``form="released"``: the label term of the
    codes is lost from the second stage on; in the centres' update BᵀB has weight 1, YᵀY of the
    running centres has weight η and these are their own teacher, and H weighs k times as much after
    the first stage; exemplars' labels, features and codes are kept by three draws of their own;
    exemplars are chosen before learning, by random codes and unscaled labels, of the first stage
    the first rows; their features are not of unit length. That the first stage is centred wrongly
    there is left out.

    References
    ----------
    C.-Y. Zhang, X. Luo, Y.-W. Zhan, P.-F. Zhang, Z.-D. Chen, Y. Wang, X. Yang, X.-S. Xu:
    Self-distillation dual-memory online hashing with hash centers for streaming data retrieval. ACM
    Multimedia 2023, doi 10.1145/3581783.3612119.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from streamhash import SDOHHC
    >>> X, y = load_digits(return_X_y=True)
    >>> hasher = SDOHHC(n_bits=32, random_state=0).partial_fit(X[:1500], y[:1500])
    >>> hasher.transform(X[1500:]).shape
    (297, 4)
    """

    multi_label = True
    takes_memory = False  # its sums forget nothing, and it has exemplars of its own
    has_label_codes = True
    reference = "Zhang et al., ACM MM 2023"
    year = 2023

    batch_size: int = parameter(Whole(1), default=2000, search=Values(200, 500, 1000, 2000))
    old_weight: float = parameter(Number(at_least=0), default=1.0, search=Span(0.01, 100))
    exemplar_weight: float = parameter(Number(at_least=0), default=1.0, search=Span(0.01, 100))
    balance_weight: float = parameter(Number(above=0), default=1.0)
    centre_weight: float = parameter(Number(at_least=0), default=0.1, search=Span(0.01, 100))
    label_weight: float = parameter(Number(at_least=0), default=100.0, search=Span(0.1, 1000))
    n_exemplars: int = parameter(Whole(1), default=200)
    n_kept: int = parameter(Whole(0), default=100)
    n_iterations: int = parameter(Whole(1, 10_000), default=10)
    form: str = parameter(Choice("objective", "released"), default="objective")
    start: str = parameter(Choice("centres", "random"), default="centres")
    rows: str = parameter(Choice("permuted", "natural"), default="permuted")
    n_classes: int = parameter(N_CLASSES, default=1)

    learns = Table(
        Y_=Array(np.int8, "C", "k", signs=True),
        GV_=Array(np.float64, "C", "k"),
        exemplar_labels_=Array(np.uint8, "q", "C", high=1),
        exemplar_rows_=Array(np.float32, "q", "D"),
        exemplar_codes_=Array(np.int8, "q", "k", signs=True),
        codebook_=Part(Codebook, n_bits="k", started=False),
        table_=Part(ClassTable, C="C"),
        random_=Generator(),
    )

    def _start(self, X: Matrix, y: Any) -> None:  # noqa: ARG002
        k = self.n_bits
        self.random_ = new_generator(self.random_state)
        self.codebook_ = Codebook(k, kind=self.rows, n_classes=self.n_classes)
        self.table_ = ClassTable()
        self.Y_, self.GV_ = np.zeros((0, k), np.int8), np.zeros((0, k))
        self.exemplar_labels_ = np.zeros((0, 0), np.uint8)
        self.exemplar_rows_ = np.zeros((0, X.shape[1]), np.float32)
        self.exemplar_codes_ = np.zeros((0, k), np.int8)
        self._start_sums(X.shape[1])

    def _learn(self, X: Matrix, y: Any) -> None:
        L = self.table_.one_hot(y, add=True).astype(np.float64)  # (n, C)
        tell_short_stages(self, L.shape[1])
        X, L = X[L.any(axis=1)], L[L.any(axis=1)]
        H = self.codebook_.targets(np.arange(L.shape[1], dtype=np.int32), self.random_)  # (C, k)
        self._grow(H)
        if not len(L):
            return
        B, first = self._first_codes(L)
        G = L / np.sqrt(L.sum(axis=1, keepdims=True))  # (n, C)
        U = X if self.form == "released" else unit_length(X)
        B, V = self._learned_codes(B, L, G, H.astype(np.float64), unit_length(X))
        self.GV_ = self.GV_ + G.T @ V
        self._remember(U, L, B, first)
        self._add(X, B)

    def _grow(self, H: Matrix) -> None:
        """Give new classes their Hadamard row as centre, and a column in the exemplars' labels."""
        n_new = len(H) - len(self.Y_)
        self.Y_ = np.concatenate([self.Y_, H[len(self.Y_) :].astype(np.int8)])
        self.GV_ = np.pad(self.GV_, ((0, n_new), (0, 0)))
        self.exemplar_labels_ = np.pad(self.exemplar_labels_, ((0, 0), (0, n_new)))

    def _first_codes(self, L: Numbers) -> tuple[Signs, Numbers]:
        """Return codes to begin with (n, k), and how well they fit (n,), for ``"released"``."""
        if self.start == "centres":
            B = np.where(L @ self.Y_ >= 0, 1, -1).astype(np.int8)
        else:
            B = (2 * self.random_.integers(2, size=(len(L), self.n_bits)) - 1).astype(np.int8)
        is_first = self.n_stages_ == 0
        fit = np.arange(len(L)) if is_first else np.linalg.norm(L - B @ self.Y_.T, axis=1)
        return B, fit.astype(np.float64)

    def _learned_codes(
        self, B: Signs, L: Numbers, G: Numbers, H: Numbers, U: Matrix
    ) -> tuple[Signs, Numbers]:
        """Learn centres, and return the codes B (n, k) of a stage and V, balanced."""
        k, theta, eta = self.n_bits, self.centre_weight, self.label_weight
        released, later = self.form == "released", self.n_stages_ > 0
        Y = before = self.Y_  # (C, k)
        exemplars = self.exemplar_weight * k * self._similarity(U, L) @ self.exemplar_codes_
        old = self.old_weight * k * G @ self.GV_  # (n, k)
        V = np.zeros(B.shape)
        for _ in range(self.n_iterations):
            V = balanced(self.balance_weight * B + exemplars, self.random_)
            teacher = (Y if released else before).astype(np.float64)
            of_codes = B.T.astype(np.float64) @ B  # (k, k)
            relation = k * (2 * teacher - teacher.sum(axis=0))  # (C, k)  k K Y', K = 2I − 11ᵀ
            held = (k if released and later else 1) * H
            targets = theta * (relation + held) + eta * k * (L.T @ B)
            gram = (
                eta * (teacher.T @ teacher) + of_codes
                if released
                else theta * (teacher.T @ teacher) + eta * of_codes
            )
            Y = _updated(Y, targets, gram)
            of_labels = np.zeros(B.shape) if released and later else eta * k * (L @ Y)
            gram = eta * (Y.T.astype(np.float64) @ Y)
            B = _updated(B, self.balance_weight * V + of_labels + old, gram)
        self.Y_ = Y
        return B, V

    def _similarity(self, U: Matrix, L: Numbers) -> Numbers:
        """S of the stage's rows and the exemplars (n, q): products of features, −1 for others."""
        S = (U @ self.exemplar_rows_.T).astype(np.float64)
        return np.where(L @ self.exemplar_labels_.T > 0, S, -1.0)

    def _remember(self, U: Matrix, L: Numbers, B: Signs, first: Numbers) -> None:
        """Keep some of the exemplars, and add rows of the stage that fit best."""
        n_there = len(self.exemplar_codes_)
        n_new = min(len(B), self.n_exemplars - min(self.n_kept, n_there, self.n_exemplars))
        n_old = min(n_there, self.n_exemplars - n_new)  # more where the stage is short
        draws = 3 if self.form == "released" else 1
        kept = [self.random_.permutation(n_there)[:n_old] for _ in range(draws)]
        fit = first
        if self.form == "objective":
            fit = np.linalg.norm(self.n_bits * L - B @ self.Y_.T.astype(np.float64), axis=1)
        new = np.argsort(fit, kind="stable")[:n_new]
        self.exemplar_labels_ = np.concatenate(
            [self.exemplar_labels_[kept[0]], L[new].astype(np.uint8)]
        )
        self.exemplar_rows_ = np.concatenate([self.exemplar_rows_[kept[draws // 2]], U[new]])
        self.exemplar_codes_ = np.concatenate([self.exemplar_codes_[kept[-1]], B[new]])

    def _label_values(self, y: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
        L = self.table_.one_hot(y)
        return L @ self.Y_, L


def _updated(B: Signs, targets: Numbers, gram: Numbers) -> Signs:
    """Set the bits (n, k) one after the other, each given all the others, several times."""
    for _ in range(TIMES):
        B = update_bits(B, targets, gram)
    return B
