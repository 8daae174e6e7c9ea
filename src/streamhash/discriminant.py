"""Linear discriminant analysis from running sums: how each class looks, in whatever order it came.

All that the analysis needs of a stream are sums over its rows f: Σ f fᵀ, and of each class Σ f and
the number of rows. Sums do not depend on the order. Those of two streams can be added, and a row
can be subtracted again.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve
from scipy.linalg.lapack import spftrf, spftrs, ssfrk, stfsm

from streamhash.base import Matrix, Streaming, snapshot
from streamhash.errors import InputError
from streamhash.learned import MOST, Array, Real, Table
from streamhash.wrong_labels import fit_noise, probable_shares

Numbers = NDArray[np.float64]
LabelledRows = tuple[NDArray[Any], Matrix]  # rows (m, D), and their shares of the classes (m, C)
Solve = Callable[[float, Matrix | None], tuple[Numbers, Numbers]]  # of a ridge and rows U: _solved
RIDGES = 0.05, 0.2, 0.8, 3.2, 12.8
WORTH = 0.003  # of the rows: so many more must be right by a larger ridge
SURE = 2.0  # deviations: by so many a larger ridge must be better in all, or it is chance
ROWS_AT_ONCE = 512
TOO_LARGE = (
    "SDOH: the sums over its rows are too large, or not those of any rows; look for extreme values "
    "in X, or load another copy of the model."
)
LEAST = 1e-6  # rows of a class: less is what is left of rows that were taken off
ROUNDING = 1e-6  # of the trace of Σ f fᵀ: what its sums in float32 may be off by, and a bit more


class Scores(NamedTuple):
    """Scores of the classes, f A + b, and how far rows that were doubted belong to their labels."""

    A: Matrix  # (D, C)
    b: Matrix  # (C,)
    right: Matrix | None = None  # (n,), if labels were put right


class ClassSums(Streaming):
    """Sums over the rows of a stream and over the rows of each of its classes.

    A row with several labels counts for each of its classes by an equal share; one without any
    counts for the spread alone.

    Attributes
    ----------
    products_ : array (D (D + 1) / 2,)
        Σ f fᵀ, its lower triangle, in LAPACK's rectangular full packed format.
    total_ : array (D,)
        Σ f.
    sums_ : array (C, D)
        Σ f of each class.
    counts_ : array (C,)
        Rows of each class.
    n_rows_ : float
        Rows in all.
    """

    learns = Table(
        n_rows_=Real(0, MOST),
        total_=Array(np.float64, "D", optional=True),
        products_=Array(np.float32, "packed", optional=True),
        sums_=Array(np.float64, "C", "D", optional=True),
        counts_=Array(np.float64, "C", low=-1, high=MOST, optional=True),
    )

    def __init__(self) -> None:
        self.n_rows_ = 0.0
        self._is_own = False

    def known_sizes(self) -> dict[str, int]:
        """Return the sizes in the table ``learns`` that follow from the rest."""
        total = getattr(self, "total_", None)
        if not isinstance(total, np.ndarray) or total.ndim != 1:
            return {}
        return {"D": len(total), "packed": len(total) * (len(total) + 1) // 2}

    def check_learned(self) -> None:
        """Refuse what was learned if it does not fit the class's own statement, ``learns``."""
        super().check_learned()
        if len(self._all_learned()) not in (1, len(self.learns)) or (
            self.n_rows_ > 0 and not hasattr(self, "total_")
        ):
            raise InputError("ClassSums: some of the sums are missing")

    def add(self, F: Matrix, shares: Matrix, sign: int = 1) -> None:
        """Add rows F (n, D), whose ``shares`` (n, C) tell the classes; or take them off again."""
        if not hasattr(self, "products_"):
            D = F.shape[1]
            self.products_: Matrix = np.zeros(D * (D + 1) // 2, np.float32)
            self.total_: Numbers = np.zeros(D)
            self.sums_: Numbers = np.zeros((0, D))
            self.counts_: Numbers = np.zeros(0)
        # Whoever else holds the matrix, such as a copy to go back to, must not see it change; only
        # one that this object has made since it was last copied is written into.
        self.products_ = _plus(self.products_, F, sign, overwrite=self._is_own)
        self._is_own = True
        self.total_ = self.total_ + sign * F.sum(axis=0, dtype=np.float64)
        self._widen(shares.shape[1])
        sums, counts = self.sums_.copy(), self.counts_.copy()
        n = shares.shape[1]
        sums[:n] += sign * (shares.T @ F)
        counts[:n] += sign * shares.sum(axis=0, dtype=np.float64)
        self.sums_, self.counts_ = sums, counts
        self.n_rows_ += sign * len(F)

    def join(self, old: int, new: int) -> None:
        """Make the rows of a class those of another; the class is then one without rows."""
        if not hasattr(self, "sums_"):
            return
        self._widen(max(old, new) + 1)
        sums, counts = self.sums_.copy(), self.counts_.copy()
        for each in (sums, counts):
            each[new] += each[old]
            each[old] = 0
        self.sums_, self.counts_ = sums, counts

    def __copy__(self) -> Self:
        self._is_own = False  # from now on, the matrix is another's too
        twin = type(self).__new__(type(self))
        twin.__dict__.update(self.__dict__)
        return twin

    def _widen(self, n_classes: int) -> None:
        missing = n_classes - len(self.counts_)
        if missing > 0:
            self.sums_ = np.pad(self.sums_, ((0, missing), (0, 0)))
            self.counts_ = np.pad(self.counts_, (0, missing))

    @classmethod
    def merged(cls, parts: Sequence[tuple[Self, NDArray[Any]]]) -> Self:
        """Return the sums of several; with each come the numbers that its classes have in all."""
        whole = cls()
        there = [(sums, numbers) for sums, numbers in parts if sums.n_rows_]
        if not there:
            return whole
        n_classes = max(int(numbers.max(initial=-1)) + 1 for _, numbers in there)
        whole.products_ = np.sum([sums.products_ for sums, _ in there], axis=0)
        whole.total_ = np.sum([sums.total_ for sums, _ in there], axis=0)
        whole.sums_ = np.zeros((n_classes, len(whole.total_)))
        whole.counts_ = np.zeros(n_classes)
        for sums, numbers in there:
            whole.sums_[numbers] += sums.sums_
            whole.counts_[numbers] += sums.counts_
            whole.n_rows_ += sums.n_rows_
        return whole

    def scores(
        self,
        ridge: float | None,
        *,
        equal: bool,
        judges: LabelledRows | None = None,
        doubted: Callable[[], LabelledRows] | None = None,
    ) -> Scores:
        """Return A (D, C) and b (C,): f A + b are the scores of linear discriminant analysis.

        With class means m_c about their own mean m, each by its weight, and the covariance Σ within
        the classes: A = (Σ + r I)⁻¹ (m_c − m), b = −mᵀA − ½ (m_c − m)ᵀA_c; r is ``ridge`` times
        the mean variance of a feature. All classes have the same weight if ``equal``, else that of
        their rows, and the logarithm of it is added to b. A class whose rows were all taken off
        again has no score.

        If ``ridge`` is None, the rows of the ``judges`` choose it, who are among those of the sums:
        the one of ``RIDGES`` by which most of them are given their class by all other rows.

        ``doubted`` returns rows of the sums whose labels may be wrong. If the judges are sure that
        this spoils many classes (``fit_noise``), these rows count for the classes that they
        probably belong to (``probable_shares``), and the scores are worked out anew, by the same
        ridge. How much of each still belongs to its own labels is then returned as well.
        """
        products = self.products_ / np.float32(self.n_rows_)
        diagonal = diagonal_places(len(self.total_))
        rounding = ROUNDING * float(products[diagonal].sum())

        def solve_for(centres: _Centres) -> Solve:
            spread = _plus(products, centres.taken_off.astype(np.float32), -1)
            variance = float(spread[diagonal].mean()) + centres.variance

            def solve(ridge: float, U: Matrix | None) -> tuple[Numbers, Numbers]:
                return _solved(spread, centres.apart, (ridge * variance + rounding) or 1.0, U)

            return solve

        return _scores(self, solve_for, ridge, equal=equal, judges=judges, doubted=doubted)

    def relabelled(self, F: NDArray[Any], shares: Matrix, instead: Matrix) -> Self:
        """Return sums in which rows (n, D) of these count for other shares of the classes (n, C).

        Of a class that would be left with less than a row, or half of what it has, the rows stay.
        """
        change = instead - shares
        left = self.counts_ + change.sum(axis=0, dtype=np.float64)
        emptied = left < np.minimum(self.counts_ / 2, 1)
        change[(shares[:, emptied] > 0).any(axis=1)] = 0
        while True:  # a class may have lost its rows and not got those that were to come
            gone = self.is_there & (self.counts_ + change.sum(axis=0, dtype=np.float64) <= LEAST)
            if not gone.any():
                break
            change[(shares[:, gone] > 0).any(axis=1)] = 0
        other: Self = snapshot(self)
        other.sums_, other.counts_ = self.sums_.copy(), self.counts_.copy()
        for start in range(0, len(F), ROWS_AT_ONCE):
            part = slice(start, start + ROWS_AT_ONCE)
            other.sums_ += change[part].T @ F[part]
        other.counts_ += change.sum(axis=0, dtype=np.float64)
        return other

    @property
    def is_there(self) -> NDArray[np.bool_]:
        """Which classes have rows; what is less than a row is left of rows that were taken off."""
        there: NDArray[np.bool_] = self.counts_ > LEAST
        return there


def scores_of_rows(
    F: Matrix, shares: Matrix, ridge: float | None, *, equal: bool, doubt: bool = False
) -> Scores:
    """Return what ``ClassSums.scores`` would of these rows alone: quick, if they are few.

    With X the rows and what is taken off, J their signs, and products of rows instead of features:
    (XᵀJX + r I)⁻¹ v = (v − Xᵀ (r J + X Xᵀ)⁻¹ X v) / r. The rows are judges, and doubted if
    ``doubt``.
    """
    n, D = F.shape
    rows = F.astype(np.float64)
    sums = ClassSums()
    sums.n_rows_, sums.total_ = float(n), rows.sum(axis=0)
    sums.sums_, sums.counts_ = shares.T @ rows, shares.sum(axis=0, dtype=np.float64)

    def solve_for(centres: _Centres) -> Solve:
        X = np.vstack([rows / np.sqrt(n), centres.taken_off])
        signs = np.r_[np.ones(n), -np.ones(len(centres.taken_off))]
        squares = np.square(X).sum(axis=1)
        variance, rounding = signs @ squares / D + centres.variance, ROUNDING * squares[:n].sum()
        products, V = X @ X.T, centres.apart.T
        if not np.isfinite(products).all():
            raise InputError(TOO_LARGE)
        XV = X @ V

        def solved(ridge: float, U: Matrix | None) -> tuple[Numbers, Numbers]:
            strength = (ridge * variance + rounding) or 1.0  # rows of zeros
            inner = products + np.diag(strength * signs)
            if U is None:
                return (V - X.T @ solve(inner, XV, assume_a="sym")) / strength, np.zeros(0)
            XU = X @ U.T
            found = solve(inner, np.hstack([XV, XU]), assume_a="sym")
            C = V.shape[1]
            lengths = np.square(U).sum(axis=1) - (XU * found[:, C:]).sum(axis=0)
            return (V - X.T @ found[:, :C]) / strength, lengths / strength

        return solved

    labelled = rows, shares
    doubted = (lambda: labelled) if doubt else None
    return _scores(sums, solve_for, ridge, equal=equal, judges=labelled, doubted=doubted)


def _scores(
    sums: ClassSums,
    solve_for: "Callable[[_Centres], Solve]",
    ridge: float | None,
    *,
    equal: bool,
    judges: LabelledRows | None,
    doubted: Callable[[], LabelledRows] | None,
) -> Scores:
    """Return the scores: see ``ClassSums.scores``."""
    centres = _Centres(sums, equal=equal)
    there, solve = centres.is_there, solve_for(centres)
    A, ridge, distances = _weights(centres, solve, ridge, judges, doubt=doubted is not None)
    if doubted is None or judges is None or not len(distances):
        return centres.scores(A)
    if not fit_noise(distances, _known(judges, there)[1]).spoils(sums.counts_[there]):
        return centres.scores(A)
    F, shares = doubted()
    own = shares[:, there]
    parts = [slice(start, start + ROWS_AT_ONCE) for start in range(0, len(F), ROWS_AT_ONCE)]
    U = np.concatenate([centres.from_own(F[part], own[part]) for part in parts])
    distances = centres.distances(*solve(ridge, U), U, own)
    instead = np.zeros_like(shares)
    fit = fit_noise(distances, own)
    instead[:, there] = probable_shares(distances, own, sums.counts_[there], fit)
    right = np.where(shares > 0, instead, 0).sum(axis=1)
    right[~shares.any(axis=1)] = 1  # without a label, nothing is wrong
    centres = _Centres(sums.relabelled(F, shares, instead), equal=equal)
    return centres.scores(solve_for(centres)(ridge, None)[0])._replace(right=right)


def _known(rows: LabelledRows, there: NDArray[np.bool_]) -> LabelledRows:
    """Return those of the rows that have a class which is there, and their shares of these."""
    F, shares = rows
    shares = shares[:, there]
    known = shares.any(axis=1)
    return F[known], shares[known]


def _weights(
    centres: "_Centres",
    solve: Solve,
    ridge: float | None,
    judges: LabelledRows | None,
    *,
    doubt: bool,
) -> tuple[Numbers, float, Numbers]:
    """Return the weights A of the scores and their ridge, the best one if none is given.

    And, if there is ``doubt``, the judges' distances from the classes by it.
    """
    none = np.zeros((0, 0))
    if ridge is not None and not doubt:
        return solve(ridge, None)[0], ridge, none
    if judges is None:
        raise ValueError("without a ridge there must be rows to choose it by")
    F, shares = _known(judges, centres.is_there)
    U = centres.from_own(F, shares)
    if not len(U):
        ridge = RIDGES[0] if ridge is None else ridge
        return solve(ridge, None)[0], ridge, none
    found: list[tuple[NDArray[np.bool_], float, Numbers, Numbers]] = []
    for each in RIDGES if ridge is None else (ridge,):
        A, lengths = solve(each, U)
        right = centres.are_right(A, lengths, U, shares)
        if found and right.mean() < found[-1][0].mean() + WORTH:
            break
        found.append((right, each, A, lengths))
    before, after = found[0][0], found[-1][0]
    gained, lost = int((after & ~before).sum()), int((before & ~after).sum())
    is_better = gained - lost > SURE * np.sqrt(gained + lost)  # McNemar's test
    _, ridge, A, lengths = found[-1] if is_better else found[0]
    return A, ridge, centres.distances(A, lengths, U, shares) if doubt else none


class _Centres:
    """Where the classes lie: means, weights and what follows from them."""

    def __init__(self, sums: ClassSums, *, equal: bool) -> None:
        there = self.is_there = sums.is_there
        counts = self._counts = sums.counts_[there]
        self._n_rows = sums.n_rows_
        shares = counts / counts.sum()
        weights = np.full(len(counts), 1 / len(counts)) if equal else shares
        mean = sums.total_ / sums.n_rows_
        means = sums.sums_[there] / counts[:, None] - mean  # (C, D)
        middle = weights @ means
        self.apart = means - middle
        self.variance = float(weights @ np.square(self.apart).mean(axis=1))  # of a feature
        # Σ f fᵀ less these rows' products is the spread within the classes.
        self.taken_off = np.vstack([mean, means * np.sqrt(counts / sums.n_rows_)[:, None]])
        self._origin = mean + middle
        self._log_shares = None if equal else np.log(shares)

    def scores(self, A: Numbers) -> Scores:
        """Return the scores, given their weights."""
        b = -self._origin @ A - np.einsum("cd,dc->c", self.apart, A) / 2
        if self._log_shares is not None:
            b = b + self._log_shares
        return Scores(A.astype(np.float32), b.astype(np.float32))

    def from_own(self, F: NDArray[Any], shares: Matrix) -> Matrix:
        """Return rows less the mean of their own classes."""
        U: Matrix = (F - self._origin - shares @ self.apart).astype(F.dtype)
        return U

    def are_right(
        self, A: Numbers, lengths: Numbers, U: Matrix, shares: Matrix
    ) -> NDArray[np.bool_]:
        """Return which rows are given a class of theirs by all rows but themselves."""
        distances = self.distances(A, lengths, U, shares)
        if self._log_shares is not None:
            distances -= 2 * self._log_shares
        nearest = distances.argmin(axis=1)
        right: NDArray[np.bool_] = shares[np.arange(len(U)), nearest] > 0
        return right

    def distances(self, A: Numbers, lengths: Numbers, U: Matrix, shares: Matrix) -> Numbers:
        """Return how far each row is from each class, squared, by all rows but itself.

        With M = Σ + r I and u = f − m_c, a row has the distance (f − m_j)ᵀ M⁻¹ (f − m_j) from the
        class j. To leave it out takes a u uᵀ off Σ, a = 1 / n (1 − 1/n_c), which
        adds a (uᵀM⁻¹(f − m_j))² / (1 − a uᵀM⁻¹u), and moves m_c, which multiplies the distance from
        it by (1 − 1/n_c)⁻². ``lengths`` are uᵀM⁻¹u. Of several classes, u is about their mean.
        """
        part = np.minimum(shares / self._counts, 1 - 1e-6)  # of a row in the mean of its class
        a = 1 / (self._n_rows * (1 - (part * shares).sum(axis=1)))
        G, UA = self.apart @ A, U @ A
        across = lengths[:, None] + (UA * shares).sum(axis=1)[:, None] - UA  # uᵀM⁻¹(f − m_j)
        mixed = shares @ G
        between = (mixed * shares).sum(axis=1)[:, None] - 2 * mixed + np.diag(G)
        found: Numbers = 2 * across - lengths[:, None] + between
        found += (a / np.maximum(1 - a * lengths, 1e-4))[:, None] * np.square(across)
        found /= np.square(1 - part)
        return found


def _plus(packed: Matrix, F: Matrix, sign: int, *, overwrite: bool = False) -> Matrix:
    """Return packed + sign Σ f fᵀ over rows F (n, D)."""
    n, D = F.shape
    total: Matrix = ssfrk(D, n, sign, F.T, 1.0, packed, uplo="L", overwrite_c=overwrite)
    return total


def diagonal_places(D: int) -> NDArray[np.int64]:
    """Return where the diagonal of a D × D matrix stands in the packed format.

    The format is a matrix with one row more than D, if that is even, in Fortran's order: the first
    half of the columns of the lower triangle, and the others, turned, in the space above them.

    >>> diagonal_places(4), diagonal_places(5)
    (array([1, 7, 0, 6]), array([ 0,  6, 12,  5, 11]))
    """
    j = np.arange(D)
    half = (D + 1) // 2
    height, shift = (D + 1, 1) if D % 2 == 0 else (D, 0)
    left, turned = j[:half], j[half:] - half
    return np.concatenate([left * height + left + shift, (turned + 1 - shift) * height + turned])


def _solved(
    spread: Matrix, apart: Numbers, ridge: float, U: Matrix | None
) -> tuple[Numbers, Numbers]:
    """Return M⁻¹ apartᵀ (D, C), and uᵀM⁻¹u of rows U, for M = spread + r I.

    r is the ridge, or more if rounding needs it.
    """
    D = apart.shape[1]
    while 0 < ridge < np.finfo(np.float32).max:
        regular = spread.copy()
        regular[diagonal_places(D)] += np.float32(ridge)
        factor, failed = spftrf(D, regular, uplo="L", overwrite_a=True)
        if not failed:
            solved, _ = spftrs(D, factor, apart.T.astype(np.float32), uplo="L")
            lengths = np.zeros(0)
            if U is not None:
                lengths = np.concatenate(
                    [
                        np.square(stfsm(1.0, factor, U[start : start + 1000].T, uplo="L")).sum(
                            axis=0, dtype=np.float64
                        )
                        for start in range(0, len(U), 1000)
                    ]
                )
            return np.asarray(solved, np.float64), lengths
        ridge *= 10
    raise InputError(TOO_LARGE)
