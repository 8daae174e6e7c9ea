"""SDOH: similarity distribution based online hashing (Lin et al., ICCV 2019), with a memory.

The paper's method learns from one stage of the stream at a time, and forgets. Here it learns from
sums over all rows and from a class-balanced sample of them (``settle``), unless ``memory=0``.
"""

import logging
from collections.abc import Callable, Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from streamhash.base import (
    Matrix,
    StreamPart,
    dense,
    known_blocks,
    new_generator,
    random_directions,
    row_product,
    snapshot,
)
from streamhash.discriminant import TOO_LARGE, ClassSums, Scores, scores_of_rows
from streamhash.errors import InputError
from streamhash.estimators import clone
from streamhash.extremes import OrdinaryRange
from streamhash.features import (
    LONGEST,
    SHORTEST,
    AnchorMap,
    NormalizedHasher,
    UnitRows,
    unit_length,
)
from streamhash.kernels.learning.class_features import ClassMap, class_features, side_by_side
from streamhash.kernels.learning.pairs import PairRule, count_similar, pair_gradient
from streamhash.labels import group
from streamhash.learned import Array, Count, Generator, Labels, ListOf, Part, Real, Table, Value
from streamhash.memory import ClassMemory
from streamhash.pair_groups import PairGroups, is_group
from streamhash.parameters import Choice, Maybe, Number, Span, Values, Whole, parameter
from streamhash.random_features import RandomFeatures
from streamhash.threads import ProcessLock, single_threaded_blas

log = logging.getLogger("streamhash.hashers")
settling = ProcessLock()  # threads that encode with one model wait for its hash functions

ROWS_AT_ONCE = 512  # rows whose products are summed together
JUDGES = 1000  # rows of the memory that choose the ridge
ROW_WEIGHT = 0.1  # of a row itself beside the probabilities of its classes
FEW_ROWS = 8  # that are encoded by compiled loops of their own
TRIED = 32  # rows by which these are held to the ordinary way
WIDEST = 8192  # features of which all products are summed, 256 MB


class SDOH(NormalizedHasher):
    """Similarity distribution based online hashing (Lin et al., ICCV 2019), with a memory.

    Pairs of instances define two distributions: P, from the labels, gives similar pairs most of the
    mass and dissimilar ones a share f(0)/f(1) of it; Q follows from the distances of their codes,
    by a Student t whose scale differs for the two kinds of pairs. The hash functions W move down
    the gradient of KL(P‖Q).

    The paper takes the pairs of one stage of the stream after the other, and forgets what stopped
    coming. By default this class keeps two things of the whole stream, neither of which depends on
    its order: sums, from which linear discriminant analysis tells the classes apart, and a
    class-balanced sample of rows. The hash functions are worked out from both when they are needed:
    SDOH's steps on the sample, each row seen as the probabilities of its classes. So streams may
    come sorted, long-tailed or row by row; what was learned can be merged, and taken back.
    ``SDOH(memory=0, features=None)`` learns stage by stage, as version 0.1 did by default;
    ``SDOH.published`` is the paper.

    Costs, for D features and C classes. Learning a row: D² multiplications. Working out the hash
    functions (``settle``): D³/3 for every ridge that is tried, two to five, and the steps on the
    sample; one to three seconds in all.
    Encoding a row: 3 D log₂ d additions, D C + (C + D/14) k multiplications. State: 2 D² bytes,
    1.25 ``memory`` + 512 rows of 4 d bytes, 8 C D bytes of class sums; some 43 MB at d = 784.

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
        Scales p and n of Eq. 8. None: k/6 and k/9 with class scores, else k/10 and k/15. Authors: 1
        and 1, 1 and 1, 60 and 10.
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
        Map instances through so many RBF anchors first, taken from the stream's first instances;
        without effect if there are class scores.
    memory : int, default=4000
        Rows kept, spread evenly over the classes. 0: none, learn a stage at a time, as the paper.
    class_scores : "softmax", "linear" or None, default="softmax"
        What SDOH's steps see of a row of the memory: the probabilities of its classes, from sums
        over all rows; their linear scores; or, with None, the row's features themselves, a stage at
        a time with as many rows from the memory. Without a memory it has no effect.
    features : "absolute", "fourier" or None, default="absolute"
        Random features that the sums are taken over (see ``RandomFeatures``), or the row itself.
    n_features : int, default=3584
        How many of them, D, for class scores.
    ridge : float or None, default=None
        Of the discriminant analysis, in units of the mean variance of a feature. More of it suits
        few rows and wrong labels. None: of 0.05, 0.2, 0.8, 3.2 and 12.8 the one by which rows of
        the memory, left out one at a time, are best told their class.
    doubt : float or None, default=1.0
        A row of the memory takes no part in the steps if another class leads its own by more than
        this, in units of the spread of scores: its label is likely wrong. And where a third of
        the classes seem to have mostly wrong labels, the rows of the memory count for the classes
        that they probably belong to, and those whose labels are probably wrong take no part.
        None: labels are taken as they are.
    equal_classes : bool, default=True
        All classes weigh the same in it, however rare. False: as often as they come.
    passes : int, default=5
        Times that SDOH's steps go through the memory, in stages of ``batch_size`` rows and with a
        learning rate that falls to 0.
    random_state : int, RandomState or None
        Seed of the first hash functions.

    Attributes
    ----------
    W_ : array (d, k), or (C + D/14, k) with class scores
        The hash functions, as columns.
    offset_ : array (k,)
        Their offsets c.
    parts_ : list
        What is done to the features before.
    sums_ : ClassSums
        The sums over all rows.
    memory_ : ClassMemory
        The sample.
    groups_ : PairGroups
        The classes that judged pairs have made, if any have come.
    score_weights_, score_offsets_, mean_score_ : arrays (D, C), (C,), (C,)
        The class scores' weights and offsets, and the mean of the scores over the memory.
    loss_ : float
        KL(P‖Q) of the last stage before its last step.
    n_steps_, n_stages_, n_samples_seen_ : int
        Steps taken, stages and instances seen.

    Notes
    -----
    Similar means the same label or, with a 0/1 matrix of labels, at least one class in common: the
    rule by which evaluation calls an item relevant. In a stage of one class, or with no two of a
    class, P is uniform and the step evens out the distances. Without a memory, a stage of one
    instance has no pairs and changes nothing but the running mean.

    Differences from the paper

    1. ``gradient="exact"`` has the factor 1/η that Eq. 12 leaves out, T inverted where the text
       before Eq. 13 has T = 1 + D, and the slope of tanh applied after the Laplacian, not before it
       as in Eq. 15. ``"printed"`` is the paper to the letter.
    2. Sums, memory, class scores and random features are ours; and so are normalised features,
       offsets, a step in units of n_t k, three steps a stage, smoothing by ``balance``, and scales
       in units of k. ``SDOH.published`` has none of them.
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
    learns_pairs = True
    reference = "Lin et al., ICCV 2019"
    year = 2019
    published_features = "raw"

    learning_rate: float = parameter(Number(above=0), default=0.25, search=Span(0.05, 1))
    batch_size: int = parameter(Whole(1), default=200, search=Values(100, 200, 400))
    max_steps: int = parameter(Whole(1, 10_000), default=3, search=Values(1, 3, 6, 10))
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
    n_anchors: int | None = parameter(Maybe(Whole(1)), default=None)
    memory: int = parameter(Whole(0), default=4000)
    class_scores: str | None = parameter(Choice("softmax", "linear", None), default="softmax")
    features: str | None = parameter(Choice("absolute", "fourier", None), default="absolute")
    n_features: int = parameter(Whole(2, 1 << 16), default=3584)
    ridge: float | None = parameter(
        Maybe(Number(above=0)), default=None, search=Values(None, 0.05, 0.2, 0.8, 3.2)
    )
    doubt: float | None = parameter(
        Maybe(Number(above=0)), default=1.0, search=Values(None, 0.5, 1.0, 2.0)
    )
    equal_classes: bool = parameter(Choice(True, False), default=True)
    passes: int = parameter(Whole(1, 10_000), default=5, search=Values(3, 5, 10))

    learns = Table(
        W_=Array(np.float32, "seen", "k", optional=True),
        offset_=Array(np.float32, "k", optional=True),
        loss_=Real(nan=True, optional=True),
        n_steps_=Count(optional=True),
        memory_=Part(
            ClassMemory, size="memory", d="d", when=lambda model: model.memory > 0, optional=True
        ),
        memory_random_=Generator(
            when=lambda model: model.memory > 0 and not model.can_forget, optional=True
        ),
        seed_=Count(0, 2**63, when=lambda model: model.can_forget),
        settled_=Value(Choice(True, False), when=lambda model: model.can_forget),
        sums_=Part(ClassSums, D="D", when=lambda model: model.can_forget, optional=True),
        groups_=Part(PairGroups, when=lambda model: model.can_forget, optional=True),
        waiting_=ListOf(
            Array(np.float32, "n", "d"),
            Labels("n"),
            when=lambda model: model.can_forget,
            optional=True,
        ),
        score_weights_=Array(
            np.float32, "D", "scored", when=lambda model: model.can_forget, optional=True
        ),
        score_offsets_=Array(
            np.float32, "scored", when=lambda model: model.can_forget, optional=True
        ),
        mean_score_=Array(np.float32, "scored", when=lambda model: model.can_forget, optional=True),
    )

    # The paper's method: a stage at a time ----------------------------------------------------

    def _feature_parts(self, d: int) -> list[StreamPart]:
        anchors = [] if self.n_anchors is None else [AnchorMap(self.n_anchors)]
        return [*anchors, *super()._feature_parts(d)]

    def _start(self, X: Matrix, y: Any) -> None:  # noqa: ARG002
        self._draw(X.shape[1], new_generator(self.random_state))

    def _draw(self, d: int, generator: np.random.Generator) -> None:
        self.W_ = random_directions(d, self.n_bits, generator)
        self.offset_ = np.zeros(self.n_bits, np.float32)
        self.loss_ = np.nan
        self.n_steps_ = 0

    def _learn(self, X: Matrix, y: Any) -> None:
        if len(X) > 1:
            self._descend(X, y, self.learning_rate)
        elif self.n_stages_ == 0:  # one instance has nothing to be compared with
            log.warning(
                "SDOH: the stream begins with a single row, and a row alone has no pairs to "
                "learn from; hand over pieces of about %d rows.",
                self.batch_size,
            )

    def _descend(self, X: Matrix, y: Any, learning_rate: float) -> None:
        """Take the steps of one stage."""
        labels = group(y) if y.ndim == 1 else y.astype(np.float32)
        rule, entropy = self._rule(count_similar(labels), len(X) * (len(X) - 1))
        step = np.float32(learning_rate * (len(X) * self.n_bits if self.scale_step else 1))
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
            similar, dissimilar = (6, 9) if self._remembers else (10, 15)
            scales = (
                self.similar_scale or self.n_bits / similar,
                self.dissimilar_scale or self.n_bits / dissimilar,
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
        X = self._class_features(X) if self._remembers else X
        return row_product(X, self.W_) + self.offset_

    # With a memory: sums over all rows, and a sample of them ----------------------------------

    @property
    def _remembers(self) -> bool:
        return self.memory > 0 and self.class_scores is not None

    @property
    def can_forget(self) -> bool:  # type: ignore[override]
        """Whether rows can be taken back: if there is a memory, and class scores."""
        return self._remembers

    @property
    def row_products(self) -> bool:  # type: ignore[override]
        """Whether a row's projections are the same in any company: but for maps by anchors."""
        return self.n_anchors is None

    @property
    def next_stage(self) -> int:
        """How many rows a collection gathers before it learns: with a memory, a tenth more."""
        if not self._remembers:
            return self.batch_size
        return max(self.batch_size, getattr(self, "n_samples_seen_", 0) // 10)

    def _learn_stage(self, X: Matrix, y: Any) -> None:
        if not self._remembers:
            super()._learn_stage(X, y)
            return
        self._start_memory(X.shape[1])
        self._refuse_encoder("partial_fit")
        self._remember(X, y)

    def _start_memory(self, d: int) -> None:
        if self.n_stages_ == 0:
            generator = new_generator(self.random_state)
            self.memory_ = ClassMemory(self.memory, random_state=int(generator.integers(2**63)))
            self.seed_ = int(generator.integers(2**63))  # of the first hash functions
            self.sums_ = ClassSums()
            self.waiting_: list[tuple[Matrix, Any]] = []  # until there are ROWS_AT_ONCE
            self._refuse_width(d)

    def _remember(self, X: Matrix, y: Any) -> None:
        """Take rows into the memory, and into the sums when there are enough of them."""
        self.memory_.take(X, y)
        self.waiting_ = [*self.waiting_, (X, y)]
        n_waiting = sum(len(rows) for rows, _ in self.waiting_)
        if n_waiting >= ROWS_AT_ONCE:
            rows, labels = self._all_waiting()
            end = n_waiting - n_waiting % ROWS_AT_ONCE
            if not self.sums_.n_rows_:
                self.parts_ = self._learned_parts(rows[:end])
            for start in range(0, end, ROWS_AT_ONCE):
                block = slice(start, start + ROWS_AT_ONCE)
                self.sums_.add(self._mapped(rows[block]), self._shares(labels[block]))
            self.waiting_ = [(rows[end:], labels[end:])] if end < n_waiting else []
        self.settled_ = False

    # Judged pairs: rows of one class, or not --------------------------------------------------

    def partial_fit_pairs(
        self, X1: Any, X2: Any, similar: Any, y1: Sequence[Any] | None = None, y2: Any = None
    ) -> Self:
        """Learn from judged pairs: row i of X1 and row i of X2 belong together, or they do not.

        Two rows that belong together are rows of one class: that of a label, if one of them has
        one, or else a group of their own. ``PairGroups`` tells how groups become one. Without a
        memory, groups are those of a stage, and all its other pairs are dissimilar.

        Parameters
        ----------
        X1, X2 : as X of ``partial_fit``, both (n, d)
        similar : booleans, or 0 and 1, (n,)
        y1, y2 : lists of n labels, None where a row has none; or None
            What is known of the rows besides; those with labels are not learned by this call.
        """
        super().partial_fit_pairs(X1, X2, similar, y1, y2)
        if self._remembers and self.n_samples_seen_ == 0:  # no row belongs with another
            self._forget()
        return self

    def _learn_pair_stage(self, X: Matrix, similar: NDArray[np.bool_], y: list[Any]) -> int:
        if not self._remembers:
            rows = self._prepared(X)
            if self.n_stages_ == 0:
                self._start(rows, None)
            groups = PairGroups()
            groups.learn(X, similar, y)
            names = groups.names_of(X)
            alone = (("alone", i) for i in range(len(X)))
            labels = [
                each if name is None else name for name, each in zip(names, alone, strict=True)
            ]
            self._learn(rows, np.fromiter(labels, object, len(X)))
            return len(X)
        self._start_memory(X.shape[1])
        self._refuse_encoder("partial_fit_pairs")
        if hasattr(self.memory_, "labels_") and self.memory_.labels_.ndim == 2:
            raise InputError(
                "SDOH.partial_fit_pairs: this model has learned from a 0/1 matrix of labels, in "
                "which classes of pairs have no column; pass rows with labels to partial_fit."
            )
        if not hasattr(self, "groups_"):
            self.groups_ = PairGroups()
        moved, joined, left = self.groups_.learn(X, similar, y)
        for old, new in moved.items():
            self._join_classes(old, new)
        if joined:
            self._remember(X[[*joined]], _names([*joined.values()]))
        if left:
            self._subtract(X[[*left]], _names([*left.values()]))
        return len(joined) - len(left)

    def _join_classes(self, old: Any, new: Any) -> None:
        """Make all rows of a class rows of another."""
        if not hasattr(self.memory_, "rows_"):
            return
        self.sums_.join(*self.memory_.join(old, new))
        waiting = []
        for rows, labels in self.waiting_:
            names = [new if name == old else name for name in labels.tolist()]
            waiting.append((rows, _names(names)))
        self.waiting_, self.settled_ = waiting, False

    def forget_pairs(self, X: Any) -> Self:
        """Take back rows that pairs have put into a class; others are passed over."""
        if not self._remembers:
            return super().forget_pairs(X)
        X = dense(self._check_features(X, "SDOH.forget_pairs", first=False))
        self._refuse_encoder("forget_pairs")
        rows = self.ordinary_.cleaned(X) if hasattr(self, "ordinary_") else X
        names = self.groups_.names_of(rows) if hasattr(self, "groups_") else []
        found = {row.tobytes(): i for i, row in enumerate(rows)}  # each once
        known = [i for i in found.values() if i < len(names) and names[i] is not None]
        if known:
            before = snapshot(self).__dict__
            try:
                self.groups_.drop(rows[known])
                self._take_back(rows[known], _names([names[i] for i in known]))
            except BaseException:
                self.__dict__.clear()
                self.__dict__.update(before)
                raise
        return self

    # What a file may hold ---------------------------------------------------------------------

    def known_sizes(self) -> dict[str, int]:
        """Return the sizes in the table ``learns`` that follow from the rest."""
        sizes = super().known_sizes()
        return sizes if self._remembers or "D" not in sizes else {**sizes, "seen": sizes["D"]}

    def _check_parts(self) -> None:
        """Refuse parts that do not fit; a model that has summed nothing yet uses none."""
        has_sums = getattr(getattr(self, "sums_", None), "n_rows_", 0) != 0
        if not self._remembers or has_sums or getattr(self, "settled_", True):
            super()._check_parts()

    def check_learned(self) -> None:
        """Refuse what was learned if it does not fit the class's own statement, ``learns``."""
        super().check_learned()
        if not self.has_learned():
            return
        needed = ["W_", "offset_", "loss_", "n_steps_"]
        if self._remembers:
            scores = ["score_weights_", "score_offsets_", "mean_score_"]
            needed = [*needed, *scores] if self.settled_ else []
            self._check_remembered()
        if missing := [name for name in needed if not hasattr(self, name)]:
            raise InputError(f"SDOH.{missing[0]} is missing")
        if self._remembers and self.settled_:
            n_scores, D = self.score_weights_.shape[::-1]
            seen = n_scores + (self.parts_[-1].n_linear_ if self.features else D)
            if len(self.W_) != seen:
                raise InputError(f"SDOH.W_ is for rows of {len(self.W_)} numbers, not {seen}")

    def _check_remembered(self) -> None:
        there = [hasattr(self, name) for name in ("memory_", "sums_", "waiting_")]
        if not all(there):
            if any(there) or not self.settled_:  # neither a model that learns nor one that encodes
                raise InputError("SDOH: memory_, sums_ and waiting_ are not all there")
            return
        if not self.settled_ and not (self.sums_.n_rows_ or self.waiting_):
            raise InputError("SDOH: there is nothing to work its hash functions out of")
        known = {*self.memory_.classes_.labels_}
        for _, labels in self.waiting_:
            if labels.ndim != self.memory_.labels_.ndim or (
                labels.ndim == 1 and not known.issuperset(labels.tolist())
            ):
                raise InputError("SDOH.waiting_ has labels that its memory has not seen")

    # ------------------------------------------------------------------------------------------

    def _refuse_width(self, d: int) -> None:
        if self.features is None and d > WIDEST:
            raise InputError(
                f"SDOH: features=None sums the products of all {d} features, {4e-9 * d * d:.1f} "
                'GB; use features="absolute", which makes fewer, or memory=0.'
            )

    def _refuse_encoder(self, verb: str) -> None:
        if not hasattr(self, "memory_"):
            raise InputError(
                f"SDOH.{verb}: this model was made by encoder(), which leaves out what learning "
                "needs; go on with the model it was made from."
            )

    def _all_waiting(self) -> tuple[Matrix, NDArray[Any]]:
        rows, labels = zip(*self.waiting_, strict=True)
        if labels[0].ndim == 2:
            width = max(each.shape[1] for each in labels)
            labels = tuple(np.pad(each, ((0, 0), (0, width - each.shape[1]))) for each in labels)
        return np.concatenate(rows), np.concatenate(labels)

    def _all_parts(self, d: int) -> list[StreamPart]:
        if not self._remembers:
            return super()._all_parts(d)
        if self.features is None:
            return [UnitRows()]
        return [UnitRows(), RandomFeatures(self.n_features, kind=self.features)]

    def _learned_parts(self, X: Matrix) -> list[StreamPart]:
        """Return what prepares the features, after it has seen the first rows."""
        parts = self._all_parts(X.shape[1])
        for part in parts:
            part.n_features_in_ = X.shape[1]
            part.learn_rows(X)
            X = part.map_rows(X[:1])
        return parts

    def _shares(self, y: Any) -> Matrix:
        """Return how much of each row (n, C) belongs to each class."""
        return self._shares_of(self.memory_.classes_.number(y) if y.ndim == 1 else y)

    def _shares_of(self, labels: NDArray[Any]) -> Matrix:
        """Return the same of class numbers, or of a 0/1 matrix."""
        if labels.ndim == 1:
            of_class: Matrix = np.eye(len(self.memory_.classes_), dtype=np.float32)[labels]
            return of_class
        classes: Matrix = labels.astype(np.float32)
        shares: Matrix = classes / np.maximum(classes.sum(axis=1, keepdims=True), 1)
        return shares

    def settle(self) -> Self:
        """Work out the hash functions from sums and memory, if rows have come since the last time.

        ``fit``, ``transform`` and ``save`` do so by themselves; call it to choose the moment. It
        takes a second or more, and its result depends on what was learned alone: not on
        when, or how often, it was called before.
        """
        if self._remembers and hasattr(self, "n_stages_") and not self.settled_:
            with settling, single_threaded_blas():
                if not self.settled_:
                    try:
                        self._settle()
                    except np.linalg.LinAlgError as error:
                        raise InputError(TOO_LARGE) from error
        return self

    def _settle(self) -> None:
        (A, b, right), is_there = self._analysis()
        Z = self._of_memory(lambda F: F @ A + b)
        Z -= Z.mean(axis=1, keepdims=True)
        # A softmax neither flat nor all or nothing: scores of a row spread by 1, as a mean square.
        spread = np.float32(np.sqrt(np.square(Z).mean(dtype=np.float64))) or np.float32(1)
        # A row's scores take a third of the time if the weights of a feature stand together.
        self.score_weights_ = np.ascontiguousarray(A / spread)
        self.score_offsets_ = b / spread
        self.mean_score_ = np.zeros(len(b), np.float32)
        if self.class_scores == "softmax":
            self.mean_score_ = self._of_memory(self._class_scores).mean(axis=0)
        X, labels = self._of_memory(self._class_features), self.memory_.labels
        if self.doubt is not None:
            own = np.where(self._shares_of(labels)[:, is_there] > 0, Z, -np.inf).max(axis=1)
            lead = (Z.max(axis=1) - own) / spread  # infinite without any label
            certain = (lead <= self.doubt) | np.isinf(lead)
            if right is not None:
                certain &= right >= 0.5
            X, labels = X[certain], labels[certain]
        self._take_steps(X, labels)
        self.settled_ = True

    def _analysis(self) -> tuple[Scores, NDArray[np.bool_]]:
        """Return the class scores, and which classes have them."""
        equal = self.equal_classes
        if self.sums_.n_rows_:
            sums = snapshot(self.sums_)
            if self.waiting_:
                rows, labels = self._all_waiting()
                sums.add(self._mapped(rows), self._shares(labels))
            judges = doubted = None
            if self.ridge is None or self.doubt is not None:
                judges = self._labelled_rows(JUDGES)
            if self.doubt is not None:
                doubted = self._labelled_rows
            scores = sums.scores(self.ridge, equal=equal, judges=judges, doubted=doubted)
            return scores, sums.is_there
        rows, labels = self._all_waiting()
        self.parts_ = self._learned_parts(rows)
        shares = self._shares(labels)
        doubt = self.doubt is not None
        scores = scores_of_rows(self._mapped(rows), shares, self.ridge, equal=equal, doubt=doubt)
        return scores._replace(right=None), shares.sum(axis=0) > 0  # not those of the memory

    def _labelled_rows(self, n: int | None = None) -> tuple[Matrix, Matrix]:
        """Return the features of the memory's first n rows, or all, and their classes' shares."""
        shares = self._shares_of(self.memory_.labels[:n])
        return self._mapped(self.memory_.rows[:n]), shares

    def _take_steps(self, X: Matrix, labels: NDArray[Any]) -> None:
        """Learn the hash functions from rows of the memory, stage by stage."""
        generator = np.random.default_rng(self.seed_)
        self._draw(X.shape[1], generator)
        n_stages = -(-len(X) // self.batch_size) * self.passes
        done = 0
        for _ in range(self.passes):
            order = generator.permutation(len(X))
            for start in range(0, len(X), self.batch_size):
                stage = order[start : start + self.batch_size]
                if len(stage) > 1:
                    rate = self.learning_rate * (1 - done / n_stages)
                    self._descend(X[stage], labels[stage], rate)
                done += 1
        if not np.isfinite(self.W_).all():
            raise InputError(
                "SDOH: its steps on the memory left W_ without finite values; lower the learning "
                "rate."
            )

    def _of_memory(self, function: Callable[[Matrix], Matrix]) -> Matrix:
        """Return a function of the features of all rows in the memory, in bounded space."""
        rows = self.memory_.rows
        if not len(rows):
            raise InputError(
                "SDOH: its memory has no rows left to work the hash functions out of; learn more."
            )
        starts = range(0, len(rows), ROWS_AT_ONCE)
        blocks = (self._mapped(rows[start : start + ROWS_AT_ONCE]) for start in starts)
        return np.concatenate([function(F) for F in blocks])

    def _class_scores(self, F: Matrix) -> Matrix:
        """Return the scores of the classes (n, C), as probabilities or about their mean."""
        Z = row_product(F, self.score_weights_) + self.score_offsets_
        if self.class_scores == "softmax":
            Z = np.exp(Z - Z.max(axis=1, keepdims=True))
            Z /= Z.sum(axis=1, keepdims=True)
        else:
            Z -= Z.mean(axis=1, keepdims=True)
        return np.asarray(Z)

    def _class_features(self, F: Matrix) -> Matrix:
        """Return what the hash functions see of a row: its class scores, and a little of itself."""
        scores = unit_length(self._class_scores(F) - self.mean_score_)
        row = F[:, : self.parts_[-1].n_linear_] if self.features else F
        return np.concatenate([scores, np.float32(ROW_WEIGHT) * row], axis=1)

    def project_rows(self, X: Matrix) -> Matrix:
        """Project dense rows that were checked before."""
        self.settle()
        return super().project_rows(X)

    def _project_few(self, X: Any) -> Matrix | None:
        if not 0 < X.shape[0] <= FEW_ROWS or not isinstance(X, np.ndarray) or not self._remembers:
            return None
        reach = self.ordinary_.reach_ if hasattr(self, "ordinary_") else 0.0
        W, of_reach, found = getattr(self, "_few", (None, 0.0, None))
        if W is not self.W_ or of_reach != reach:
            found = self._class_map()
            self._few = self.W_, reach, found  # good while these two stay as they are
        seen = None if found is None else class_features(X, found)
        return None if seen is None else row_product(seen, self.W_) + self.offset_

    def _class_map(self) -> ClassMap | None:
        """Return what leads few rows to what is seen of them; None if that would be other bits."""
        if (self.class_scores, self.features) != ("softmax", "absolute"):
            return None
        (unit, random), d = self.parts_, self.n_features_in_
        blocks = known_blocks(*self.score_weights_.shape)
        if unit.center_ is not None or blocks is None:
            return None
        ordinary = getattr(self, "ordinary_", None) or OrdinaryRange()
        weights = self.score_weights_, self.score_offsets_, self.mean_score_
        # Arrays that are read-only would be other types to the compiled loops.
        A, b, mean = (np.require(each, np.float32, ["C", "W"]) for each in weights)
        lowest, highest = ordinary.bounds()
        signs, scales = side_by_side(random.signs_, random.n_linear_, random.n_features, d)
        found = ClassMap(
            lowest,
            highest,
            np.float32(SHORTEST),
            np.float32(LONGEST),
            random.n_linear_,
            signs,
            scales,
            A,
            b,
            blocks,
            mean,
            np.float32(ROW_WEIGHT),
        )
        rows = np.random.default_rng(0).standard_normal((TRIED, d), np.float32)
        rows *= np.float32(ordinary.reach_ or 1)
        rows += getattr(ordinary, "center_", np.float32(0))
        with single_threaded_blas():
            wanted = self._class_features(self._mapped(rows))
        parts = (slice(start, start + FEW_ROWS) for start in range(0, TRIED, FEW_ROWS))
        seen = ((class_features(rows[at], found), wanted[at]) for at in parts)
        same = all(few is not None and np.array_equal(few, many) for few, many in seen)
        return found if same else None

    def encoder(self) -> Self:
        """Return a twin that encodes as this model does now, without what only learning needs."""
        twin = super().encoder()
        if self._remembers:
            for name in ("memory_", "sums_", "waiting_", "groups_"):
                if hasattr(twin, name):
                    delattr(twin, name)
        return twin

    def forget(self, X: Any, y: Any = None) -> Self:
        """Take back rows that were learned, with the labels they were learned with.

        The sums are then those of the other rows alone, up to rounding, and the memory has none of
        these rows; what it lacks of the sample of a model that never saw them, ``ClassMemory``
        tells. Without any row left, the model is as new. Rows that were never learned cannot be
        told from others of their class; more than were learned of a class are refused, and nothing
        is changed.
        """
        if not self._remembers:
            return super().forget(X, y)
        X = self._check_features(X, "SDOH.forget", first=False)
        labels = np.asarray(self._check_labels(y, X.shape[0], "SDOH.forget"))
        self._refuse_encoder("forget")
        before = snapshot(self).__dict__
        try:
            rows = dense(X)
            # as they were learned
            self._take_back(
                self.ordinary_.cleaned(rows) if hasattr(self, "ordinary_") else rows, labels
            )
        except BaseException:
            self.__dict__.clear()
            self.__dict__.update(before)
            raise
        return self

    def missing(self) -> dict[Any, int]:
        """Return how many rows of a class its memory lacks, as they were forgotten; see refill."""
        lacking = self.memory_.missing() if self._remembers and hasattr(self, "memory_") else {}
        return {name: n for name, n in lacking.items() if not is_group(name)}

    def refill(self, X: Any, y: Any) -> Self:
        """Put rows that were learned before into the places that forgotten ones have left.

        Drawn at random from all that were learned of the classes named by ``missing``, they make
        the memory that of a model which never saw the forgotten rows. The sums stay: these rows
        are in them.
        """
        if not self.missing():
            return self
        X = self._check_features(X, "SDOH.refill", first=False)
        labels = np.asarray(self._check_labels(y, X.shape[0], "SDOH.refill"))
        rows = dense(X)
        if hasattr(self, "ordinary_"):  # as they were learned
            rows = self.ordinary_.cleaned(rows)
        self.memory_ = snapshot(self.memory_)
        self.memory_.refill(rows, labels)
        self.settled_ = False
        return self

    def _take_back(self, rows: Matrix, labels: NDArray[Any]) -> None:
        """Take back rows; without any left, the model is as new."""
        self._subtract(rows, labels)
        self.n_samples_seen_ -= len(rows)
        if self.n_samples_seen_ == 0:
            self._forget()

    def _subtract(self, rows: Matrix, labels: NDArray[Any]) -> None:
        self.settled_ = False
        with single_threaded_blas():
            self.memory_.forget(rows, labels)
            if self.waiting_:  # among them may be rows that are to be taken off
                waiting, names = self._all_waiting()
                if not self.sums_.n_rows_:
                    self.parts_ = self._learned_parts(waiting)
                self.sums_.add(self._mapped(waiting), self._shares(names))
                self.waiting_ = []
            for start in range(0, len(rows), ROWS_AT_ONCE):
                block = slice(start, start + ROWS_AT_ONCE)
                shares = self._shares(labels[block])
                self.sums_.add(self._mapped(rows[block]), shares, sign=-1)

    @classmethod
    def merged(cls, a: Self, b: Self) -> Self:
        """Return a model that has learned what two models learned, such as two halves of a stream.

        Both must have the same parameters (but for the random state) and a memory; they stay as
        they are. The sums are those of both streams, and the memory is drawn from both memories.
        """
        for model in (a, b):
            if not model._remembers or not hasattr(model, "n_stages_"):
                raise InputError(
                    "SDOH.merged: only models that have learned, with memory > 0 and class_scores, "
                    "can be merged; learn with the default settings."
                )
            model._refuse_encoder("merged")
        wanted = {**a.get_params(), "random_state": None}
        if {**b.get_params(), "random_state": None} != wanted or (
            a.n_features_in_ != b.n_features_in_
        ):
            raise InputError(
                "SDOH.merged: the two models differ in their parameters or in the number of "
                "features; make both with the same ones."
            )
        if hasattr(a, "groups_") and hasattr(b, "groups_"):
            raise InputError(
                "SDOH.merged: both models have learned from pairs, whose groups have no names to "
                "go by; let one model learn all pairs."
            )
        whole: Self = clone(a)
        for model in (a, b):
            if hasattr(model, "groups_"):
                whole.groups_ = snapshot(model.groups_)
        whole.n_features_in_ = a.n_features_in_
        whole.n_samples_seen_ = a.n_samples_seen_ + b.n_samples_seen_
        whole.n_stages_, whole.seed_ = a.n_stages_ + b.n_stages_, a.seed_
        whole.memory_ = ClassMemory.merged(a.memory_, b.memory_)
        ranges = [model.ordinary_ for model in (a, b) if hasattr(model, "ordinary_")]
        if ranges:
            whole.ordinary_ = ranges[0].joined(ranges[-1]) if len(ranges) > 1 else ranges[0]
        whole.waiting_ = [*a.waiting_, *b.waiting_]
        learned = [model for model in (a, b) if model.sums_.n_rows_]
        if len({model.parts_[0].key() for model in learned}) > 1:
            raise InputError(
                "SDOH.merged: the two models have centred their rows by means of their own, as "
                "they do with fewer than 32 features or with large offsets, so that their sums "
                "do not go together; take the offsets off before, or learn in one model."
            )
        whole.parts_ = learned[0].parts_ if learned else []
        whole.sums_ = ClassSums.merged(
            [(model.sums_, whole._numbers_of(model)) for model in learned]
        )
        whole.settled_ = False
        return whole

    def _numbers_of(self, other: Self) -> NDArray[Any]:
        """Return which class of this model each class in another's sums is."""
        n = len(other.sums_.counts_)
        names = other.memory_.classes_.labels_[:n]
        if not names:
            return np.arange(n)  # columns of a 0/1 matrix
        numbers: NDArray[Any] = self.memory_.classes_.number(np.fromiter(names, object, n))
        return numbers

    def _described(self) -> Any:
        if hasattr(self, "memory_"):
            self.settle()
        return super()._described()


def _names(names: list[Any]) -> NDArray[Any]:
    """Return the names of classes as an array; some are tuples."""
    return np.fromiter(names, object, len(names))
