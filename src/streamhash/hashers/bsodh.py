"""BSODH: balanced similarity for online discrete hashing (Lin et al., AAAI 2019)."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from streamhash.base import Matrix, new_generator, random_directions
from streamhash.classes import ClassTable
from streamhash.features import NormalizedHasher
from streamhash.kernels.learning.bit_updates import SLACK, update_bits
from streamhash.learned import MOST, Array, Part, Table
from streamhash.parameters import Choice, Maybe, Number, Rule, Span, Values, Whole, parameter

Codes = NDArray[np.int8]  # of -1 and +1
Numbers = NDArray[np.float64]
STEPS = ("new_codes", "old_codes", "weights")


ANY_ORDER = Rule(
    f"a tuple with each of {', '.join(map(repr, STEPS))} once",
    lambda value: isinstance(value, tuple) and sorted(map(str, value)) == sorted(STEPS),
)


class BSODH(NormalizedHasher):
    """Balanced similarity for online discrete hashing (Lin et al., AAAI 2019).

    The codes of a new stage and those of all that came before should have inner products near k for
    pairs of one class and below zero for the others. Such pairs are weighed by η_s and η_d, as the
    former are rare. Codes are found bit by bit as they are, discretely; then W is the ridge
    regression from features to codes. It wins with few classes and needs hardly any tuning. As
    published W is learned from the last stage alone, so that small stages make poor hash functions;
    our default learns it from all.

    Cost per stage: 2 n d² + d³/3 + 2 n k² operations (``regression="stage"``: n for d in the first
    two where n < d). State: W (d k), two codes a class (2 C k), their Gram matrix (k²), and that of
    the features (d²) with their sums (C d) unless ``regression="stage"``.

    Parameters
    ----------
    n_bits : int, default=32
        Code length k, 1 to 1024.
    batch_size : int, default=200
        Instances a stage, n_t. Authors: 2000 (CIFAR-10, MNIST), 10000 (Places205).
    ridge : float, default=0.3
        Weight λ of ‖W‖². Authors: 0.6, 0.3, 0.9.
    fit_weight : float, default=0.5
        Weight σ of ‖X W − B‖². Authors: 0.5, 0.5, 0.8.
    similar_weight : float, default=1.2
        η_s. Authors: 1.2, 1.2, 1.
    dissimilar_weight : float or None, default=None
        η_d. None: 1.5 η_s / C with the number of classes so far, so that a class and all the others
        together weigh about the same. Authors: 0.2, 0.2, 0.
    form : "objective" or "released", default="objective"
        What a new code is drawn to: k S B + σ X W, as follows from the objective, or k² S B + X W,
        as in the authors' program.
    absent_classes : "kept" or "released", default="kept"
        What becomes of the code of a class that is not in a stage: it stays; or, as in the authors'
        program, it is driven away from those of the stage, and all such classes get the same code.
    regression : "all" or "stage", default="all"
        Learn W from all items so far, with the codes they have now, or from the stage alone, as the
        authors do. The former needs no store of items either: Σ x xᵀ (d²) and Σ x a class (C d).
    order : tuple, default=("new_codes", "old_codes", "weights")
        The order of the three updates of a stage, each taking the outcome of those before it. This
        one is the program's; that of the paper's Algorithm 1 is another, by its authors' word.
    normalize : bool, default=True
        Take off the running mean and bring instances to unit length, which makes the method
        scale-free. Authors: False, they feed centred rows of unit length.
    features : "absolute", "fourier" or None, default=None
        Learn from random features of the instances (``RandomFeatures``), of this kind, or not.
    random_state : int, RandomState or None
        Seed of the first hash functions.

    Attributes
    ----------
    W_ : array (d, k)
        The hash functions, as columns.
    classes_ : ClassTable
        The C classes so far, by first appearance.
    class_counts_ : array (C,)
        How many items of each class have come.
    first_codes_ : array (C, k) of int8
        The code, of -1 and +1, of the first item of each class.
    code_sums_ : array (C, k)
        The sums of the codes of each class.
    code_gram_ : array (k, k)
        The codes of all items, transposed, times themselves.
    feature_gram_, feature_sums_, cross_ : arrays (d, d), (C, d) and (d, k), or None
        The same of the features, their sums a class, and features, transposed, times codes; None
        with ``regression="stage"``.
    parts_ : list
        What prepares the features: the running mean and unit length, if ``normalize``.

    Notes
    -----
    The first stage has nothing to be compared with: it gets codes and trains nothing (authors).

    Differences from the paper

    1. The authors' program orders the updates of a stage otherwise than Algorithm 1: ``order``.
    2. No store of codes that grows: after a stage all items that came before it have one code a
       class, so that sums over them follow from sums a class. Same codes, same W (tested).
    3. Our defaults (normalised features, smaller stages, W from all items, codes of absent classes
       kept, η_d by the number of classes) are not the paper's; ``BSODH.published`` has those.

    Differences from the authors' program

    1. ``form="objective"`` draws codes by the derivative of the objective; the program, and
       ``"released"``, counts k twice and leaves out σ.
    2. The program stops before a last stage that is not full; here it is learned.
    3. The mean is that of the stream so far, not of all data, queries too (``normalize``).

    References
    ----------
    M. Lin, R. Ji, H. Liu, X. Sun, Y. Wu, Y. Wu: Towards optimal discrete online hashing with
    balanced similarity. AAAI 2019, arXiv 1901.10185.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from streamhash import BSODH
    >>> X, y = load_digits(return_X_y=True)
    >>> hasher = BSODH(n_bits=32, batch_size=300, random_state=0).fit(X[:1500], y[:1500])
    >>> hasher.transform(X[1500:]).shape
    (297, 4)
    """

    reference = "Lin et al., AAAI 2019"
    year = 2019
    has_label_codes = True
    takes_memory = False  # its sums forget nothing, and stages with much of one class harm them

    ridge: float = parameter(Number(above=0), default=0.3, search=Span(0.01, 10))
    fit_weight: float = parameter(Number(above=0), default=0.5, search=Span(0.05, 5))
    similar_weight: float = parameter(Number(at_least=0), default=1.2, search=Span(0.5, 4))
    dissimilar_weight: float | None = parameter(
        Maybe(Number(at_least=0)), default=None, search=Values(None, 0, 0.1, 0.2, 0.5)
    )
    batch_size: int = parameter(Whole(1), default=200, search=Values(100, 200, 500, 1000, 2000))
    form: str = parameter(Choice("objective", "released"), default="objective")
    absent_classes: str = parameter(Choice("kept", "released"), default="kept")
    regression: str = parameter(
        Choice("all", "stage"), default="all", search=Values("all", "stage")
    )
    order: tuple[str, ...] = parameter(ANY_ORDER, default=STEPS)

    learns = Table(
        W_=Array(np.float32, "D", "k"),
        classes_=Part(ClassTable, C="C"),
        class_counts_=Array(np.float64, "C", low=0, high=MOST),
        first_codes_=Array(np.int8, "C", "k", signs=True),
        code_sums_=Array(np.float64, "C", "k"),
        code_gram_=Array(np.float64, "k", "k"),
        feature_gram_=Array(np.float32, "D", "D", when=lambda model: model.regression == "all"),
        feature_sums_=Array(np.float64, "C", "D", when=lambda model: model.regression == "all"),
        cross_=Array(np.float64, "D", "k", when=lambda model: model.regression == "all"),
    )

    def _start(self, X: Matrix, y: Any) -> None:  # noqa: ARG002
        d, k = X.shape[1], self.n_bits
        self.W_ = random_directions(d, k, new_generator(self.random_state))
        self.classes_ = ClassTable()
        self.class_counts_ = np.zeros(0)
        self.first_codes_ = np.zeros((0, k), np.int8)
        self.code_sums_ = np.zeros((0, k))
        self.code_gram_ = np.zeros((k, k))
        everything = self.regression == "all"
        self.feature_sums_ = np.zeros((0, d)) if everything else None
        self.feature_gram_ = np.zeros((d, d), np.float32) if everything else None
        self.cross_ = np.zeros((d, k)) if everything else None

    def _learn(self, X: Matrix, y: Any) -> None:
        numbers = self.classes_.number(y)  # (n,)
        C = len(self.classes_)
        N = _grown(self.class_counts_, C)  # (C,)  existing items
        M = _grown(self.code_sums_, C)  # (C, k)  sums of their codes
        G = self.code_gram_  # (k, k)  Beᵀ Be
        R: Any = self.cross_  # (d, k)  Xeᵀ Be, or None
        F: Any = None if self.feature_sums_ is None else _grown(self.feature_sums_, C)  # (C, d)
        A = None if self.feature_gram_ is None else self.feature_gram_ + X.T @ X  # (d, d)
        codes = _grown(self.first_codes_, C)  # (C, k)
        W, B = self.W_, _sign(X @ self.W_)  # B (n, k), codes of this stage
        B = np.where(N[numbers, None] > 0, codes[numbers], B)
        for step in self.order if self.n_stages_ > 0 else ():
            if step == "new_codes":
                B = update_bits(B, self._targets(X @ W, M, numbers), G)
            elif step == "old_codes":
                codes = self._recoded(codes, B, numbers)  # now all existing items have these
                M, G = N[:, None] * codes, codes.T @ (N[:, None] * codes)
                R = None if F is None else F.T @ codes
            elif A is None:
                W = self._regression(X, B)
            else:
                W = self._solve(A, R + X.T @ B)
        # From the next stage on, this one is among the existing items, after those there are.
        there, first = np.unique(numbers, return_index=True)
        codes[there] = np.where(N[there, None] > 0, codes[there], B[first])
        self.W_, self.first_codes_ = W, codes
        self.class_counts_ = N + np.bincount(numbers, minlength=C)
        self.code_sums_ = M + _class_sums(B, numbers, C)
        self.code_gram_ = G + B.T.astype(np.float64) @ B
        if A is not None:
            self.feature_gram_, self.cross_ = A, R + X.T @ B
            self.feature_sums_ = F + _class_sums(X, numbers, C)

    def _label_values(self, y: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
        L = self.classes_.one_hot(y)  # (n, C)
        return L @ self.first_codes_, L

    def _recoded(self, codes: Codes, B: Codes, numbers: NDArray[np.int32]) -> Codes:
        """Be = sgn(Sᵀ Bs), a code a class (C, k)."""
        pull = self._balance(_class_sums(B, numbers, len(codes)))
        if self.absent_classes == "released":
            return _sign(pull)
        is_there = np.bincount(numbers, minlength=len(codes)) > 0
        return np.where(is_there[:, None], _sign(pull), codes)

    def _balance(self, sums: Numbers) -> Numbers:
        """Weigh sums of codes (C, k) as S does: η_s the own class, −η_d all others."""
        eta_s, eta_d = self.similar_weight, self.dissimilar_weight
        if eta_d is None:
            eta_d = 1.5 * eta_s / len(sums)
        weighed: Numbers = eta_s * sums - eta_d * (sums.sum(axis=0) - sums)
        return weighed

    def _targets(self, projections: Matrix, sums: Numbers, numbers: NDArray[np.int32]) -> Numbers:
        """Return what the new codes are drawn to (n, k): k S Be + σ X W, or as released."""
        k, released = self.n_bits, self.form == "released"
        pull = (k * k if released else k) * self._balance(sums)  # (C, k)
        targets: Numbers = pull[numbers] + (1 if released else self.fit_weight) * projections
        return targets

    def _regression(self, X: Matrix, B: Codes) -> Matrix:
        """W = σ (σ XᵀX + λI)⁻¹ Xᵀ B, in the smaller of its two forms (d, k)."""
        n, d = X.shape
        return X.T @ self._solve(X @ X.T, B) if n < d else self._solve(X.T @ X, X.T @ B)

    def _solve(self, A: Matrix, B: NDArray[Any]) -> Matrix:
        ridged = A + np.float32(self.ridge / self.fit_weight) * np.eye(len(A), dtype=np.float32)
        W: Matrix = linalg.solve(ridged, B.astype(np.float32), assume_a="pos", check_finite=False)
        return W


def _sign(values: NDArray[Any]) -> Codes:
    """Return -1 and +1, with sgn(0) = +1 as inside the authors' program."""
    return np.where(values >= -SLACK, np.int8(1), np.int8(-1))


def _grown(rows: NDArray[Any], n: int) -> NDArray[Any]:
    """Return rows with zeros after them, n in all, in a new array."""
    return np.concatenate([rows, np.zeros((n - len(rows), *rows.shape[1:]), rows.dtype)])


def _class_sums(B: NDArray[Any], numbers: NDArray[np.int32], n_classes: int) -> Numbers:
    """Sum the rows (n, k) of each class (C, k)."""
    sums = np.zeros((n_classes, B.shape[1]))
    by_class = np.argsort(numbers, kind="stable")
    there, first = np.unique(numbers[by_class], return_index=True)
    sums[there] = np.add.reduceat(B[by_class].astype(np.float64), first, axis=0)
    return sums
