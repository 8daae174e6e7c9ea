"""ATHOH: asynchronous teacher guided bit-wise hard mining for online hashing (AAAI 2021)."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from streamhash.base import Matrix, Streaming, new_generator, random_directions, row_product
from streamhash.classes import ClassTable
from streamhash.features import NormalizedHasher
from streamhash.hashers._codebook import N_CLASSES, Codebook
from streamhash.kernels.learning.hard_mining import codeword_distance, mine_hard_bits
from streamhash.learned import MOST, Array, Count, Generator, Part, Table
from streamhash.parameters import Choice, Number, Span, Values, Whole, parameter

Doubles = NDArray[np.float64]


class CodewordRegression(Streaming):
    """A linear model that learns the codewords of classes, one row after the other.

    Parameters
    ----------
    n_bits : int
        Code length k.

    Attributes
    ----------
    W_ : array (d, k)
        The model, as columns.
    codebook_ : Codebook
        The codewords (classes, k).
    counts_, squares_ : arrays (C,), (C, k)
        How many rows of each class have come, and their mean squared errors, bit by bit.
    """

    n_bits: int = parameter(Whole(1), kw_only=False)
    learns = Table(
        W_=Array(np.float32, "d", "n_bits"),
        codebook_=Part(Codebook, n_bits="n_bits", started=False),
        counts_=Array(np.float64, "C", low=0, high=MOST),
        squares_=Array(np.float64, "C", "n_bits", low=0),
    )

    def begin(self, d: int, codebook: Codebook, random: np.random.Generator) -> None:
        """Begin with random directions."""
        self.W_ = random_directions(d, self.n_bits, random)
        self.codebook_ = codebook
        self.forget_errors()

    def forget_errors(self) -> None:
        """Forget how far rows of each class were from their codewords."""
        self.counts_, self.squares_ = np.zeros(0), np.zeros((0, self.n_bits))

    def learn(
        self,
        X: Matrix,
        classes: NDArray[np.int32],
        random: np.random.Generator,
        **options: Any,  # of mine_hard_bits
    ) -> Doubles:
        """Learn rows (n, d) of these classes; return how far from their codewords they were."""
        T = self.codebook_.targets(classes, random)  # (n, k)
        missing = max(len(self.codebook_.targets_) - len(self.counts_), 0)
        counts = np.pad(self.counts_, (0, missing))
        squares = np.pad(self.squares_, ((0, missing), (0, 0)))
        self.W_, self.counts_, self.squares_, after = mine_hard_bits(
            X, self.W_, T, classes, counts, squares, **options
        )
        return after

    def distances(
        self, X: Matrix, classes: NDArray[np.int32], random: np.random.Generator
    ) -> Doubles:
        """Return how far rows (n, d) of these classes are from their codewords."""
        return codeword_distance(X, self.W_, self.codebook_.targets(classes, random))


class ATHOH(NormalizedHasher):
    """Asynchronous teacher guided bit-wise hard mining for online hashing (AAAI 2021).

    A linear model learns the codewords of classes by least mean squares; a bit that is already near
    its target, as rows of its class go, weighs less. A teacher, a second such model that learns in
    every second stage only, is meant to hold the first back from forgetting. Known from its
    abstract and from a port by other authors, where the teacher has no influence. It wins for its
    simplicity, on shuffled streams; on a stream that is sorted by class it forgets.

    Cost per instance and label: 4 d k operations, 8 d k with the teacher. State: W (d k), the mean
    (d), codewords and errors (2 C k); the same again for the teacher.

    Parameters
    ----------
    n_bits : int, default=32
        Code length k.
    batch_size : int, default=64
        Rows handled at once; without effect on the result but for rounding. Instances are learned
        one after the other.
    stage_size : int, default=2000
        Rows of a stage: in the first each row is learned twice, and the teacher learns in the
        first, third, fifth and so on. Published: 2000, which is a choice of ours.
    learning_rate : float, default=0.1
        Step η. Port: 0.2 on all data.
    hard_mining : bool, default=True
        Bits that are near their target weigh less; or all the same. Port: True.
    threshold : float, default=0.3
        T: a bit weighs 1 − φ(e) / T, or nothing. Port: 0.3 on all data.
    deviation : "root" or "variance", default="root"
        The density φ is that of errors with the root of their mean square as deviation, as it must
        be; or with the mean square itself. Port: "variance".
    errors : "kept" or "released", default="kept"
        Mean squares of errors are those of all rows of a class; or of those in the stage, as in the
        port.
    distil : "gradient", "commented" or None, default=None
        Draw the model to where it is as far from its codeword as the teacher: by the gradient of
        that; by the term that stands in a comment of the port, which has the other sign, is k²
        times as large, and diverges; or not, without a teacher. Port: None.
    distil_weight : float, default=0.1
        λ of it. Port: 0.1.
    codewords : "orthogonal", "permuted", "spread" or "random", default="permuted"
        A new class takes the next row of signs of a random orthogonal matrix; of a Hadamard matrix
        in random order; of 64 random codewords the one farthest from those given; or any
        (``Codebook``). Port: "orthogonal".
    n_classes : int, default=1
        Classes expected: of a matrix, the rows that it begins with.
    normalize : bool, default=True
        Take off the running mean and bring instances to unit length, which makes the method
        scale-free. Port: features centred by the mean of all data, and of unit length.
    features : "absolute", "fourier" or None, default=None
        Learn from random features of the instances (``RandomFeatures``), of this kind, or not.
    memory : int, default=0
        Instances to keep, evenly over the classes (``ClassMemory``); each stage is learned together
        with as many of them as it has, so that it matters how the stream is cut.
    random_state : int, RandomState or None
        Seed of the first hash functions and of the codewords.

    Attributes
    ----------
    student_, teacher_ : CodewordRegression
        The model whose ``W_`` (d, k) hashes, and the teacher, if there is one.
    table_ : ClassTable
        The classes, by first appearance; with a matrix of labels, its columns.
    n_learned_ : int
        Rows learned, those of a memory included.
    parts_ : list
        What prepares the features: the running mean and unit length, if ``normalize``.
    random_ : Generator
        The source of further codewords.
    n_stages_, n_samples_seen_ : int
        Pieces and instances seen.

    Notes
    -----
    With a 0/1 matrix of labels an instance is learned from once for each of its labels, in the
    order of the columns; an instance without labels moves nothing but the running mean.

    Differences from the paper: not known, as its text was not at hand.

    Differences from the port

    1. ``deviation``, ``errors`` and ``distil`` name what it does otherwise than it should.
    2. Queries are centred by the mean of the stream, not by their own.
    3. The teacher's codewords are drawn by themselves, and not those of the model in another order;
       more classes than rows of the matrix get theirs from one of twice the size.
    4. float32 instead of float64; steps go in blocks with the same outcome
       (``kernels/learning/hard_mining.py``).

    References
    ----------
    S. Jin, Q. Zhou, H. Yao, Y. Liu, X.-S. Hua: Asynchronous teacher guided bit-wise hard mining for
    online hashing. AAAI 2021. The port is in the repository ZCyueternal/IPOH.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from streamhash import ATHOH
    >>> X, y = load_digits(return_X_y=True)
    >>> hasher = ATHOH(n_bits=32, random_state=0).partial_fit(X[:1500], y[:1500])
    >>> hasher.transform(X[1500:]).shape
    (297, 4)
    """

    multi_label = True
    reference = "Jin et al., AAAI 2021"
    year = 2021
    one_by_one = True
    has_label_codes = True

    batch_size: int = parameter(Whole(1), default=64)
    stage_size: int = parameter(Whole(1), default=2000, search=Values(200, 500, 2000))
    learning_rate: float = parameter(Number(above=0), default=0.1, search=Span(0.02, 1))
    hard_mining: bool = parameter(Choice(True, False), default=True, search=Values(True, False))
    threshold: float = parameter(Number(above=0), default=0.3, search=Span(0.1, 3))
    deviation: str = parameter(Choice("root", "variance"), default="root")
    errors: str = parameter(Choice("kept", "released"), default="kept")
    distil: str | None = parameter(Choice(None, "gradient", "commented"), default=None)
    distil_weight: float = parameter(Number(at_least=0), default=0.1)
    codewords: str = parameter(
        Choice("orthogonal", "permuted", "spread", "random"),
        default="permuted",
        search=Values("orthogonal", "permuted", "spread"),
    )
    n_classes: int = parameter(N_CLASSES, default=1)

    learns = Table(
        student_=Part(CodewordRegression, d="D", n_bits="k"),
        teacher_=Part(
            CodewordRegression, d="D", n_bits="k", when=lambda model: model.distil is not None
        ),
        table_=Part(ClassTable),
        n_learned_=Count(),
        random_=Generator(),
    )

    def _start(self, X: Matrix, y: Any) -> None:  # noqa: ARG002
        self.random_ = new_generator(self.random_state)
        self.student_ = self._new_model(X.shape[1])
        if self.distil is not None:
            self.teacher_ = self._new_model(X.shape[1])
        self.table_ = ClassTable()
        self.n_learned_ = 0

    def _new_model(self, d: int) -> CodewordRegression:
        model = CodewordRegression(self.n_bits)
        codebook = Codebook(self.n_bits, kind=self.codewords, n_classes=self.n_classes)
        model.begin(d, codebook, self.random_)
        return model

    def _learn(self, X: Matrix, y: Any) -> None:
        if y.ndim == 2:  # one step a label, one after the other
            rows, columns = np.nonzero(y)
            classes = self.table_.number(columns)
        else:
            rows, classes = np.arange(len(y)), self.table_.number(y)
        start = 0
        while start < len(X):  # a stage may end within
            stage, place = divmod(self.n_learned_, self.stage_size)
            stop = min(len(X), start + self.stage_size - place)
            if place == 0 and self.errors == "released":
                self._forget_errors()
            piece = slice(*np.searchsorted(rows, [start, stop]))
            self._learn_piece(X[rows[piece]], classes[piece], stage)
            self.n_learned_ += stop - start
            start = stop

    def _forget_errors(self) -> None:
        self.student_.forget_errors()
        if self.distil is not None:
            self.teacher_.forget_errors()

    def _learn_piece(self, X: Matrix, classes: NDArray[np.int32], stage: int) -> None:
        """Learn rows of one stage, the first of which is 0: the teacher, if any, and the model."""
        options = {
            "step": self.learning_rate,
            "threshold": self.threshold if self.hard_mining else np.inf,
            "root": self.deviation == "root",
            "twice": stage == 0,
        }
        away = None
        if self.distil is not None and stage % 2 == 0:
            away = self.teacher_.learn(X, classes, self.random_, **options)
        elif self.distil is not None:
            away = self.teacher_.distances(X, classes, self.random_)
        scale = -float(self.n_bits**2) if self.distil == "commented" else 1.0
        distil = scale * self.distil_weight
        self.student_.learn(X, classes, self.random_, teacher=away, distil=distil, **options)

    def _project(self, X: Matrix) -> Matrix:
        return row_product(X, self.student_.W_)

    def _label_values(self, y: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
        L = self.table_.one_hot(y)  # (n, C)
        return L @ self.student_.codebook_.targets_, L
