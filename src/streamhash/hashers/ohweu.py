"""OHWEU: online hashing with efficient updating of binary codes (Weng and Zhu, AAAI 2020)."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from streamhash.base import Matrix, new_generator, random_directions, row_product
from streamhash.classes import ClassTable
from streamhash.features import NormalizedHasher
from streamhash.hashers._codebook import Codebook
from streamhash.hashers._sketch import principal_directions, random_rotation, turned_to_signs
from streamhash.kernels.learning.sequential import learn_one_by_one
from streamhash.learned import Array, Generator, Part, Table
from streamhash.parameters import Choice, Number, Span, Values, Whole, parameter

PASSES = 51  # of iterative quantization, as in the authors' program


class OHWEU(NormalizedHasher):
    """Online hashing with efficient updating of binary codes (Weng and Zhu, AAAI 2020).

    Hash functions F are learned once, by iterative quantization of the first rows, and stay: every
    item keeps its base code of k bits for good. What learns is a projection P of base codes for
    items, and one Q of features for queries, both towards a random codeword of the labels. When P
    has moved, a database is coded anew by a k × k product an item, without its features. It wins
    where re-encoding is what costs; k bits of unsupervised base codes are all that it knows of an
    item, so that methods which look at the features again find more.

    Cost per instance: 6 d k + 4 k² operations. State: F and Q (2 d k), P (k²), the label table
    (C k), and the first 1,000 rows until they have come.

    Parameters
    ----------
    n_bits : int, default=32
        Code length k.
    batch_size : int, default=64
        Rows handled at once; without effect on the result but for rounding. Instances are learned
        one after the other.
    aggressiveness : float, default=0.1
        Largest step c. Authors: 0.1.
    clip_at_zero : bool, default=True
        A margin that is beyond its aim stays; or is pulled back in full, while steps forward are
        capped. Authors: False.
    asymmetric : bool, default=True
        Code queries from their features, by Q (``transform_queries``); or as items are. Authors:
        True.
    codewords : "spread", "permuted" or "random", default="spread"
        Signs of a new class in the label table: of 64 random codewords the one farthest from those
        given; a row of a Hadamard matrix; or any (``Codebook``). Authors: "random".
    start_size : int, default=1000
        Rows that the base codes are learned from. Authors: 300.
    normalize : bool, default=True
        Take off the running mean and bring instances to unit length, which makes the method
        scale-free. Authors: features centred by the mean of all data, and of unit length.
    features : "absolute", "fourier" or None, default=None
        Learn from random features of the instances (``RandomFeatures``), of this kind, or not.
    memory : int, default=0
        Instances to keep, evenly over the classes (``ClassMemory``); each stage is learned together
        with as many of them as it has, so that it matters how the stream is cut.
    random_state : int, RandomState or None
        Seed of the first projections, the rotation and the label table.

    Attributes
    ----------
    F_ : array (d, k)
        The hash functions of base codes, as columns; zeros until ``start_size`` rows have come.
    R_ : array (k, k)
        The rotation that they begin with.
    P_ : array (k, k)
        The projection of base codes: items.
    Q_ : array (d, k)
        The projection of features: queries.
    M_ : array (C, k)
        The label table: codewords, times absolute values of normal numbers.
    codebook_ : Codebook
        The codewords (classes, k), in the order in which classes came.
    table_ : ClassTable
        The classes in that order; with a matrix of labels, its columns.
    waiting_, waiting_targets_ : arrays (m, d), (m, k)
        The first rows and their targets, until there are ``start_size`` of them; then none.
    parts_ : list
        What prepares the features: the running mean and unit length, if ``normalize``.
    random_ : Generator
        The source of further rows of the label table.
    n_stages_, n_samples_seen_ : int
        Stages and instances seen.

    Notes
    -----
    The target is the sign of the sum of the label table's rows of an instance's classes; one
    without labels is a row for F, and moves nothing else. Until F is there, items are coded as
    queries are; P learns from the first rows then, in their order.

    Where rows have only p < k principal directions (always, if k > d), these carry all k bits, as
    in ``ITQ``. A row of zeros does not move Q.

    Differences from the paper

    1. Our defaults (steps forward only, codewords that are spread, the running mean) are not the
       paper's; ``OHWEU.published`` has the authors'.

    Differences from the authors' program

    1. A class gets its row of the label table when it first appears.
    2. float32 instead of float64; steps go in blocks with the same outcome
       (``kernels/learning/sequential.py``).

    References
    ----------
    Z. Weng, Y. Zhu: Online hashing with efficient updating of binary codes. AAAI 2020, arXiv
    1911.12125.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from streamhash import OHWEU
    >>> X, y = load_digits(return_X_y=True)
    >>> hasher = OHWEU(n_bits=32, random_state=0).partial_fit(X[:1500], y[:1500])
    >>> hasher.transform(X[:1500]).shape, hasher.transform_queries(X[1500:]).shape
    ((1500, 4), (297, 4))
    """

    multi_label = True
    reference = "Weng and Zhu, AAAI 2020"
    year = 2020
    one_by_one = True
    has_label_codes = True
    codes_queries = False  # only a twin that codes queries has True

    batch_size: int = parameter(Whole(1), default=64)
    aggressiveness: float = parameter(Number(above=0), default=0.1, search=Span(0.01, 1))
    clip_at_zero: bool = parameter(Choice(True, False), default=True)
    asymmetric: bool = parameter(Choice(True, False), default=True, search=Values(True, False))
    codewords: str = parameter(
        Choice("spread", "permuted", "random"),
        default="spread",
        search=Values("spread", "permuted", "random"),
    )
    start_size: int = parameter(Whole(2), default=1000, search=Values(300, 1000, 2000))

    learns = Table(
        F_=Array(np.float32, "D", "k"),
        P_=Array(np.float32, "k", "k"),
        Q_=Array(np.float32, "D", "k"),
        R_=Array(np.float64, "k", "k"),
        M_=Array(np.float32, "C", "k"),
        codebook_=Part(Codebook, n_bits="k", C="C", started=False),
        table_=Part(ClassTable, C="C"),
        waiting_=Array(np.float32, "m", "D"),
        waiting_targets_=Array(np.float32, "m", "k"),
        random_=Generator(),
    )

    def _start(self, X: Matrix, y: Any) -> None:  # noqa: ARG002
        d, k = X.shape[1], self.n_bits
        self.random_ = new_generator(self.random_state)
        self.Q_, self.P_ = (
            random_directions(d, k, self.random_),
            random_directions(k, k, self.random_),
        )
        self.F_, self.R_ = np.zeros((d, k), np.float32), random_rotation(k, self.random_)
        self.M_ = np.zeros((0, k), np.float32)
        self.codebook_ = Codebook(k, kind=self.codewords)
        self.table_ = ClassTable()
        self.waiting_, self.waiting_targets_ = X[:0], np.zeros((0, k), np.float32)

    def _learn(self, X: Matrix, y: Any) -> None:
        L = self.table_.one_hot(y, add=True)  # (n, C)
        self._grow(L.shape[1])
        T = np.sign(L @ self.M_)  # (n, k)  zeros without labels: no step
        self.Q_ = self._stepped(X, self.Q_, T)
        if self.n_stages_ == 0 or len(self.waiting_):
            X = np.concatenate([self.waiting_, X])
            T = np.concatenate([self.waiting_targets_, T])
            if len(X) < self.start_size:
                self.waiting_, self.waiting_targets_ = X, T
                return
            self.F_ = self._base_functions(X[: self.start_size])
            self.waiting_, self.waiting_targets_ = X[:0], T[:0]
        self.P_ = self._stepped(self._base_codes(X), self.P_, T)

    def _grow(self, C: int) -> None:
        """Give new classes a row of the label table, one after the other."""
        for number in range(len(self.M_), C):
            signs = self.codebook_.targets(np.array([number], np.int32), self.random_)  # (1, k)
            sizes = np.abs(self.random_.standard_normal((1, self.n_bits), dtype=np.float32))
            self.M_ = np.concatenate([self.M_, signs * sizes])

    def _stepped(self, X: Matrix, W: Matrix, T: Matrix) -> Matrix:
        """Take the step of each row x and bit r: w_r ← w_r + t_r x min(c, 1 − t_r w_rᵀx / ‖x‖²)."""
        rule = "passive_aggressive" if self.clip_at_zero else "aggressive"
        return learn_one_by_one(X, W, T, rule, self.aggressiveness)[0]

    def _base_functions(self, X: Matrix) -> Matrix:
        """Return F (d, k): principal directions of rows (m, d), turned towards their signs."""
        V = principal_directions(X - X.mean(axis=0), self.n_bits)  # (d, p)
        T = turned_to_signs(X @ V.astype(np.float32), self.R_[: V.shape[1]], PASSES)  # (p, k)
        F: Matrix = (V @ T).astype(np.float32)
        return F

    def _base_codes(self, X: Matrix) -> Matrix:
        """Return sgn(x F) of rows (n, k)."""
        return np.where(row_product(X, self.F_) >= 0, np.float32(1), np.float32(-1))

    def _project(self, X: Matrix) -> Matrix:
        if self.codes_queries or len(self.waiting_):
            return row_product(X, self.Q_)
        return row_product(self._base_codes(X), self.P_)

    def transform_queries(self, X: Any) -> Any:
        """Return packed codes of queries: from their features, if the model is asymmetric."""
        return (_of_queries(self) if self.asymmetric else self).transform(X)

    def _label_values(self, y: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
        L = self.table_.one_hot(y)  # (n, C)
        return L @ self.M_, L


def _of_queries(model: OHWEU) -> OHWEU:
    """Return a twin of a model that codes queries."""
    twin = model.encoder()
    twin.codes_queries = True
    return twin
