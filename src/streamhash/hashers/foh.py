"""FOH: fast online hashing with multi-label projection (Jia et al., AAAI 2023)."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from streamhash.base import Matrix, new_generator, random_directions, row_product
from streamhash.classes import ClassTable
from streamhash.features import NormalizedHasher, unit_length
from streamhash.hashers._regression import solve_ridge, stage_regression
from streamhash.hashers._stages import tell_short_stages
from streamhash.kernels.learning.bit_updates import SLACK, update_bits
from streamhash.learned import MOST, Array, Generator, Part, Table
from streamhash.parameters import Choice, Maybe, Number, Span, Values, Whole, parameter

Signs = NDArray[np.int8]  # of -1 and +1
Numbers = NDArray[np.float64]


class FOH(NormalizedHasher):
    """Fast online hashing with multi-label projection (Jia et al., AAAI 2023).

    As in BSODH, inner products of the codes of a new stage and of all that came before should be
    near k S; with several labels S is graded by how many are shared, and a projection P of label
    sets into codes is fitted along. Then W is the ridge regression from the stage's features to its
    codes, and the mean of W over all stages hashes. It wins where classes are few and the stream is
    shuffled; with one label a row P has no influence on W. Stages of few rows make poor W: fewer
    than two of each class are told.

    Cost per stage: n d² + d³/3 + 2 n k² operations (n for d in the first two where n < d). State: W
    and its sum (2 d k), P (C k), and one code for each label set and code that came together,
    mostly one a class.

    Parameters
    ----------
    n_bits : int, default=32
        Code length k.
    batch_size : int, default=500
        Instances a stage, n_t. Authors: 2000 (CIFAR-10, MIRFLICKR).
    ridge : float, default=0.2
        Weight λ of ‖W‖². Authors: 0.6, 0.5.
    fit_weight : float, default=0.8
        Weight σ of ‖X W − B‖². Authors: 0.8, 0.8.
    similar_weight : float, default=1.6
        η_s, the S of a pair of one class. With a matrix of labels S is graded instead, and η_s
        matters through ``dissimilar_weight=None`` alone. Authors: 1.6, –.
    dissimilar_weight : float or None, default=None
        η_d: S is −η_d for a pair that shares no label. None: 1.5 η_s / C with the number of classes
        so far. Authors: 0.2, 0.11.
    new_weight, old_weight : float, default=1.2, 0.5
        Weights θ and μ of ‖B − L P‖² for new and for existing items. Authors: 1.2, 1.5; 0.5, 0.5.
    label_ridge : float, default=0.6
        Weight τ of ‖P‖². Authors: 0.6, 5.
    form : "objective" or "released", default="objective"
        How existing codes are renewed: bit by bit, as follows from the objective; or all bits at
        once, with the sign before μ, a doubled linear term and the diagonal left in, as in the
        authors' program.
    absent_classes : "kept" or "released", default="kept"
        What becomes of existing codes that share no label with the stage: they stay; or they are
        all renewed, as in the program, and drift to one code.
    weights : "averaged", "last" or "released", default="averaged"
        Hash by the mean of W over the stages, by the last W, or items by the last and queries by
        the mean (``transform_queries``), as in the program.
    normalize : bool, default=True
        Take off the running mean and bring instances to unit length, which makes the method
        scale-free. Authors: False, they feed centred rows of unit length.
    features : "absolute", "fourier" or None, default=None
        Learn from random features of the instances (``RandomFeatures``), of this kind, or not.
    random_state : int, RandomState or None
        Seed of the first hash functions and of P.

    Attributes
    ----------
    W_, total_ : arrays (d, k)
        The hash functions of the last stage, as columns, and their sum over all stages.
    P_ : array (C, k)
        The projection of labels.
    table_ : ClassTable
        The C classes so far, by first appearance; with a matrix of labels, its columns.
    item_labels_, item_codes_, item_counts_ : arrays (m, C), (m, k), (m,)
        Label sets and codes of existing items, each pair once, in the order in which they came, and
        how many items have it.
    parts_ : list
        What prepares the features: the running mean and unit length, if ``normalize``.
    random_ : Generator
        The source of rows of P for new classes.
    n_stages_, n_samples_seen_ : int
        Stages and instances seen.

    Notes
    -----
    The first stage gets codes by the first W and trains nothing (authors). A row without labels
    shares none with any other.

    Differences from the paper

    1. No store of items that grows: the updates see an existing item through its labels and its
       code alone, so each pair is kept once. Same codes, same W (tested). With several labels a row
       there are as many pairs as label sets at least.
    2. Without the pool of sample queries, that is to spare encoding the database anew: as released
       it searches the union of all queries' lists, 16,400 of 20,000 MNIST items, and saves nothing.
    3. Our defaults (normalised features, smaller stages and ridge, codes of absent classes kept,
       η_d by the number of classes) are not the paper's; ``FOH.published`` has the authors'.

    Differences from the authors' program

    1. ``form``, ``absent_classes`` and ``weights`` name what it does otherwise.
    2. The mean is that of the stream so far, not of all data (``normalize``). float32 features.

    References
    ----------
    W. Jia, Y. Cao, J. Liu, J. Gui: Fast online hashing with multi-label projection. AAAI 2023,
    arXiv 2212.03112.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from streamhash import FOH
    >>> X, y = load_digits(return_X_y=True)
    >>> hasher = FOH(n_bits=32, batch_size=300, random_state=0).fit(X[:1500], y[:1500])
    >>> hasher.transform(X[1500:]).shape
    (297, 4)
    """

    multi_label = True
    takes_memory = False  # what came before is in its codes, and W is a mean over all stages
    has_label_codes = True
    reference = "Jia et al., AAAI 2023"
    year = 2023

    batch_size: int = parameter(Whole(1), default=500, search=Values(200, 500, 1000, 2000))
    ridge: float = parameter(Number(above=0), default=0.2, search=Span(0.01, 10))
    fit_weight: float = parameter(Number(above=0), default=0.8, search=Span(0.05, 5))
    similar_weight: float = parameter(Number(at_least=0), default=1.6, search=Span(0.5, 4))
    dissimilar_weight: float | None = parameter(
        Maybe(Number(at_least=0)), default=None, search=Values(None, 0, 0.1, 0.2, 0.5)
    )
    new_weight: float = parameter(Number(at_least=0), default=1.2)
    old_weight: float = parameter(Number(at_least=0), default=0.5)
    label_ridge: float = parameter(Number(above=0), default=0.6)
    form: str = parameter(Choice("objective", "released"), default="objective")
    absent_classes: str = parameter(Choice("kept", "released"), default="kept")
    weights: str = parameter(Choice("averaged", "last", "released"), default="averaged")

    learns = Table(
        W_=Array(np.float32, "D", "k"),
        total_=Array(np.float64, "D", "k"),
        P_=Array(np.float64, "C", "k"),
        table_=Part(ClassTable, C="C"),
        item_labels_=Array(np.uint8, "m", "C", high=1),
        item_codes_=Array(np.int8, "m", "k", signs=True),
        item_counts_=Array(np.float64, "m", low=1, high=MOST),
        random_=Generator(),
    )

    def _start(self, X: Matrix, y: Any) -> None:  # noqa: ARG002
        k, self.random_ = self.n_bits, new_generator(self.random_state)
        self.W_ = random_directions(X.shape[1], k, self.random_)
        self.total_ = self.W_.astype(np.float64)
        self.table_ = ClassTable()
        self.P_ = np.zeros((0, k))
        self.item_labels_ = np.zeros((0, 0), np.uint8)
        self.item_codes_ = np.zeros((0, k), np.int8)
        self.item_counts_ = np.zeros(0)

    def _learn(self, X: Matrix, y: Any) -> None:
        L = self.table_.one_hot(y, add=True).astype(np.uint8)  # (n, C)
        tell_short_stages(self, L.shape[1])
        self._grow(L.shape[1])
        B = _sign(X @ self.W_)  # (n, k)
        if self.n_stages_ > 0:
            B = self._train(X, B, L, several=y.ndim == 2)
        self._append(L, B)

    def _grow(self, C: int) -> None:
        """Give new classes a row of P and a column of the existing items' labels."""
        new = self.random_.standard_normal((C - len(self.P_), self.n_bits), dtype=np.float32)
        self.P_ = np.concatenate([self.P_, unit_length(new)])
        missing = C - self.item_labels_.shape[1]
        self.item_labels_ = np.pad(self.item_labels_, ((0, 0), (0, missing)))

    def _train(self, X: Matrix, B: Signs, L: NDArray[np.uint8], *, several: bool) -> Signs:
        """Learn from a stage against the existing items; return its codes."""
        k, theta, mu = self.n_bits, self.new_weight, self.old_weight
        Le, Be, N = self.item_labels_, self.item_codes_, self.item_counts_  # (m, C), (m, k), (m,)
        sets, rows = np.unique(L, axis=0, return_inverse=True)  # (u, C): label sets of the stage
        rows = rows.reshape(-1)
        common = sets.astype(np.float64) @ Le.T  # (u, m)  labels shared
        S = self._similarity(common, sets, Le, several=several)  # (u, m)
        same = (common == sets.sum(axis=1)[:, None]) & (common == Le.sum(axis=1))  # equal sets
        known: NDArray[np.bool_] = np.asarray(same.any(axis=1)) & np.asarray(sets.any(axis=1))
        B = np.where(known[rows, None], Be[same.argmax(axis=1)][rows], B)  # the first one's code
        old = N[:, None] * Be  # (m, k)
        targets = k * (S @ old) + theta * (sets @ self.P_)  # (u, k)
        G = targets[rows] + self.fit_weight * (X @ self.W_)  # (n, k)
        B = update_bits(B, G, Be.T @ old)
        sums = np.zeros((len(sets), k))
        np.add.at(sums, rows, B)  # (u, k)  of the stage's codes, by label set
        renewed = self._renewed(S.T @ sums, B, Le)
        if self.absent_classes == "kept":
            renewed = np.where(np.asarray(common.any(axis=0))[:, None], renewed, Be)
        of_labels = L.astype(np.float64)
        A = theta * (of_labels.T @ of_labels) + mu * (Le.T @ (N[:, None] * Le))  # (C, C)
        T = theta * (of_labels.T @ B) + mu * (Le.T @ (N[:, None] * renewed))  # (C, k)
        self.P_ = solve_ridge(A, T, self.label_ridge)
        self.W_ = stage_regression(X, B, self.ridge / self.fit_weight)
        self.total_ = self.total_ + self.W_
        self.item_codes_ = renewed
        return B

    def _similarity(
        self, common: Numbers, sets: NDArray[np.uint8], Le: NDArray[np.uint8], *, several: bool
    ) -> Numbers:
        """S of label sets and existing items (u, m)."""
        eta_s, eta_d = self.similar_weight, self.dissimilar_weight
        if eta_d is None:
            eta_d = 1.5 * eta_s / sets.shape[1]
        graded = np.full_like(common, eta_s)
        if several:
            own, theirs = (np.maximum(each.sum(axis=1), 1.0) for each in (sets, Le))
            graded = (common / own[:, None] + common / theirs) / 2
        return np.where(common > 0, graded, -eta_d)

    def _renewed(self, pull: Numbers, B: Signs, Le: NDArray[np.uint8]) -> Signs:
        """Codes of the existing items (m, k) after a stage with codes B, which pulls by SᵀB."""
        Be, gram = self.item_codes_, B.T.astype(np.float64) @ B  # (k, k)
        linear, of_labels = self.n_bits * pull, self.old_weight * (Le @ self.P_)
        if self.form == "released":
            return _sign(2 * (linear - of_labels) - Be @ gram)
        return update_bits(Be, linear + of_labels, gram)

    def _append(self, L: NDArray[np.uint8], B: Signs) -> None:
        """Put a stage among the existing items: of equal labels and codes only the first stays."""
        labels = np.concatenate([self.item_labels_, L])
        codes = np.concatenate([self.item_codes_, B])
        counts = np.concatenate([self.item_counts_, np.ones(len(L))])
        both = np.concatenate([labels, np.packbits(codes > 0, axis=1)], axis=1)
        _, first, places = np.unique(both, axis=0, return_index=True, return_inverse=True)
        order = np.argsort(first)
        kept = first[order]
        self.item_labels_, self.item_codes_ = labels[kept], codes[kept]
        self.item_counts_ = np.bincount(places.reshape(-1), counts).astype(np.float64)[order]

    def _project(self, X: Matrix) -> Matrix:
        return row_product(X, self._mean() if self.weights == "averaged" else self.W_)

    def _mean(self) -> Matrix:
        mean: Matrix = (self.total_ / max(self.n_stages_, 1)).astype(np.float32)
        return mean

    def transform_queries(self, X: Any) -> Any:
        """Return packed codes of queries: by the mean W, also if items are coded by the last."""
        if self.weights != "released":
            return self.transform(X)
        return _averaged(self).transform(X)

    def _label_values(self, y: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
        L = self.table_.one_hot(y)
        return L @ self.P_, L


def _averaged(model: FOH) -> FOH:
    """Return a twin of a model that hashes by the mean W."""
    twin = model.encoder()
    twin.weights = "averaged"
    return twin


def _sign(values: NDArray[Any]) -> Signs:
    """Return -1 and +1, with sgn(0) = +1 as in the authors' program."""
    return np.where(values >= -SLACK, np.int8(1), np.int8(-1))
