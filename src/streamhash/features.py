"""What features go through before a hasher: centring and scaling, kernel maps, a pipeline of both.

Every map is a ``StreamPart``: it learns from the stream, without looking ahead. Hashers name the
parts they need (``OnlineHasher._feature_parts``); ``StreamPipeline`` puts any parts before any
hasher.
"""

import math
from collections.abc import Sequence
from operator import attrgetter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from streamhash.base import HasherAround, Matrix, OnlineHasher, StreamPart, row_product
from streamhash.errors import InputError
from streamhash.estimators import clone
from streamhash.learned import WIDEST, AnyOf, Array, Count, Part, Real, Table
from streamhash.parameters import Choice, Number, Rule, Whole, parameter

# Beyond these lengths squares in float32 lose digits, or all of them.
SHORTEST, LONGEST = 1e-15, 1e15
NARROWEST, BROADEST = 1e-24, 1e24  # widths of kernels, that are squares of lengths
SHORT_ROW = 32  # features: of fewer, a row's own mean and length tell too much to be taken off
ONE_WAY = 0.95  # squared length of the mean of unit rows, from which on they are much the same


class CenterScale(StreamPart):
    """Take off the running mean, then scale: online, and exactly scale-free.

    Mean and mean squared distance from it are those of all rows so far, gathered in float64 by
    merging each piece with what was before (Chan, Golub and LeVeque 1979). Features times 1024, or
    divided by it, give the same output to the last bit.

    Parameters
    ----------
    center : bool, default=True
        Take off the running mean.
    scale : "rms", "unit" or None, default="rms"
        Divide by the root mean square distance from the mean; or bring each row to unit length
        (a row of zeros stays so); or neither.

    Attributes
    ----------
    n_rows_ : int
        Rows so far.
    mean_ : array (d,)
        Their mean, float64.
    spread_ : float
        Their mean squared distance from it, if the scale is "rms".
    """

    center: bool = parameter(Choice(True, False), default=True)
    scale: str | None = parameter(Choice("rms", "unit", None), default="rms")
    learns = Table(
        n_rows_=Count(1),
        mean_=Array(np.float64, "d", low=-WIDEST, high=WIDEST),
        spread_=Real(0, math.inf, when=lambda part: part.scale == "rms"),
    )

    def n_features_out(self, d: int) -> int:
        """Return how many features rows of d features have after the map: as many."""
        return d

    def learn_rows(self, X: Matrix) -> None:
        """Merge the mean and spread of these rows (n, d) into the running ones."""
        share = len(X) / (getattr(self, "n_rows_", 0) + len(X))
        mean = X.mean(axis=0, dtype=np.float64)
        before = getattr(self, "mean_", mean)
        shift = mean - before
        if self.scale == "rms":
            spread = _sum_of_squares(less(X, mean.astype(np.float32))) / len(X)
            between = share * (1 - share) * float(shift @ shift)
            self.spread_ = (1 - share) * getattr(self, "spread_", 0.0) + share * spread + between
        self.mean_: NDArray[np.float64] = before + share * shift
        self.n_rows_ = getattr(self, "n_rows_", 0) + len(X)

    def follow_rows(self, X: Matrix) -> Matrix:
        """Learn rows (n, d) one after the other, and map each by what is known as it comes."""
        if self.scale == "rms" or not self.center:
            return super().follow_rows(X)
        before = getattr(self, "n_rows_", 0)
        mean = getattr(self, "mean_", X[0].astype(np.float64))
        away = X - mean  # (n, d)  float64
        counts = np.arange(before + 1, before + len(X) + 1)[:, None]
        shifts = np.cumsum(away, axis=0) / counts  # (n, d)  how far each row has moved the mean
        self.mean_ = mean + shifts[-1]
        self.n_rows_ = before + len(X)
        away -= shifts
        if max(away.max(), -away.min()) > WIDEST:  # float32 has no such numbers
            beyond = np.abs(away).max(axis=1, keepdims=True) > WIDEST
            away = np.where(beyond, np.ldexp(away, -2), away)
        rows: Matrix = away.astype(np.float32)
        return unit_length(rows) if self.scale == "unit" else rows

    def map_rows(self, X: Matrix) -> Matrix:
        """Centre and scale rows (n, d)."""
        if self.scale == "unit":
            return unit_length(X, self.mean_.astype(np.float32) if self.center else None)
        if self.center:
            X = less(X, self.mean_.astype(np.float32))
        if self.scale == "rms":
            # In two steps where float32 does not hold the length, or only a few digits of it.
            length, power = self.spread_**0.5 or 1.0, 0
            if not SHORTEST < length < LONGEST:
                length, power = math.frexp(length)
            X = np.ldexp(X, -power) if power else X
            X = X / np.float32(length)
        return X


def _sum_of_squares(X: Matrix) -> float:
    """Sum the squares of all entries, of any size, in float64."""
    largest = float(np.abs(X).max())
    power = 0 if SHORTEST < largest < LONGEST else math.frexp(largest)[1]
    squares = np.square(np.ldexp(X, -power) if power else X)
    return math.ldexp(float(squares.sum(dtype=np.float64)), 2 * power)


def less(X: Matrix, center: Matrix) -> Matrix:
    """Return X − center; what float32 cannot hold of it is the largest number that it can."""
    try:
        with np.errstate(over="raise"):  # which the processor sees to
            return np.asarray(X - center)
    except FloatingPointError:
        with np.errstate(over="ignore"):
            return np.asarray(np.clip(X - center, -np.float32(WIDEST), np.float32(WIDEST)))


def unit_length(X: Matrix, center: Matrix | None = None) -> Matrix:
    """Bring rows to unit length, as seen from a center, however long; zeros stay so.

    The center is one for all (d,), or each row's own (n, 1).
    """
    before = X
    with np.errstate(over="ignore", under="ignore"):
        X = X if center is None else X - center
        lengths = np.sqrt(np.einsum("ij,ij->i", X, X))
    extreme = ~((lengths > SHORTEST) & (lengths < LONGEST))
    if extreme.any():  # by a power of two to a length near 1, which changes no digit
        X, rows = X.copy(), X[extreme]
        if center is not None and not np.isfinite(rows).all():
            own = center if center.ndim == 1 else center[extreme]
            near = np.ldexp(before[extreme], -2) - np.ldexp(own, -2)
            rows = np.where(np.isfinite(rows).all(axis=1, keepdims=True), rows, near)
        rows = np.ldexp(rows, -np.frexp(np.abs(rows).max(axis=1, keepdims=True))[1])
        X[extreme], lengths[extreme] = rows, np.sqrt(np.einsum("ij,ij->i", rows, rows))
        lengths[lengths == 0] = 1
    unit: Matrix = X / lengths[:, None]
    return unit


class UnitRows(StreamPart):
    """Take off each row's own mean and bring it to unit length: nothing is learned, mostly.

    So features times 1024, or plus 1000, give the same rows up to rounding, and a row is the same
    whatever came before it. That cannot do where rows are short (fewer than 32 features), nor where
    all rows point one way, as features with large offsets of their own do: then the mean of the
    first rows is taken off instead, and a constant feature of their root mean square distance from
    it is added, which keeps what the length of a row tells.

    Attributes
    ----------
    center_ : array (d,) or None
        What is taken off; None for each row's own mean.
    constant_ : float
        The constant feature, if there is a center.
    """

    learns = Table(
        center_=AnyOf(None, Array(np.float32, "d")),
        constant_=Real(0),
    )

    def n_features_out(self, d: int) -> int:
        """Return how many features rows of d features have after the map."""
        return d if getattr(self, "center_", None) is None else d + 1

    def learn_rows(self, X: Matrix) -> None:
        """Look at the first rows (n, d); later ones change nothing."""
        if hasattr(self, "center_"):
            return
        self.center_: Matrix | None = None
        self.constant_ = 0.0
        mean = unit_length(X, _means(X, axis=1)).mean(axis=0, dtype=np.float64)
        if X.shape[1] < SHORT_ROW or (len(X) > 1 and float(mean @ mean) > ONE_WAY):
            self.center_ = X.mean(axis=0, dtype=np.float64).astype(np.float32)
            spread = _sum_of_squares(less(X, self.center_)) / len(X)
            self.constant_ = min(spread**0.5, WIDEST)

    def map_rows(self, X: Matrix) -> Matrix:
        """Map rows (n, d) to unit rows (n, d), or (n, d + 1) with the constant feature."""
        if self.center_ is None:
            return unit_length(X, _means(X, axis=1))
        constant = np.full((len(X), 1), self.constant_, np.float32)
        return unit_length(np.concatenate([less(X, self.center_), constant], axis=1))

    def key(self) -> bytes:
        """Return what tells maps apart that differ."""
        return b"" if self.center_ is None else self.center_.tobytes()


def _means(X: Matrix, axis: int) -> Matrix:
    """Return means along an axis, that stays; also where float32 cannot hold the sum."""
    with np.errstate(over="ignore", invalid="ignore"):
        means: Matrix = X.mean(axis=axis, keepdims=True)
    if not np.isfinite(means).all():
        exact = X.mean(axis=axis, keepdims=True, dtype=np.float64).astype(np.float32)
        means = np.where(np.isfinite(means), means, exact)
    return means


class AnchorMap(StreamPart):
    """Map rows to exp(−‖u(x) − u(a)‖² / h) for anchors a, the first instances of the stream.

    u takes off the anchors' mean and brings a row to unit length: distances lie between 0 and 4
    whatever the units of the features are, so one width h does for all data. Nothing looks ahead:
    the first ``n_anchors`` rows become the anchors as they come, a feature whose anchor has not
    come yet is 0, and once all have come the map stays as it is.

    Parameters
    ----------
    n_anchors : int, default=1000
        Number of anchors m, the dimension of the map.
    bandwidth : float, default=0.4
        Width h.

    Attributes
    ----------
    anchors_ : array (m, d)
        The anchors; those still to come are zero.
    n_filled_ : int
        How many have come.
    mean_ : array (d,)
        Their mean.
    directions_ : array (m, d)
        u(a) of the anchors.
    """

    n_anchors: int = parameter(Whole(1), default=1000, kw_only=False)
    bandwidth: float = parameter(Number(above=0), default=0.4)
    learns = Table(
        anchors_=Array(np.float32, "n_anchors", "d"),
        n_filled_=Count(1, "n_anchors"),
        mean_=Array(np.float32, "d"),
        directions_=Array(np.float32, "n_anchors", "d"),
    )

    def n_features_out(self, d: int) -> int:  # noqa: ARG002
        """Return how many features rows have after the map: one an anchor."""
        return self.n_anchors

    def learn_rows(self, X: Matrix) -> None:
        """Take rows (n, d) as anchors while there is room."""
        filled = getattr(self, "n_filled_", 0)
        new = X[: self.n_anchors - filled]
        if not len(new):
            return
        anchors = np.zeros((self.n_anchors, X.shape[1]), np.float32)
        if filled:
            anchors[:filled] = self.anchors_[:filled]
        anchors[filled : filled + len(new)] = new
        self.anchors_: Matrix = anchors
        self.n_filled_ = filled + len(new)
        there = anchors[: self.n_filled_]
        self.mean_: Matrix = there.mean(axis=0, dtype=np.float64).astype(np.float32)
        self.directions_ = np.zeros_like(anchors)
        self.directions_[: self.n_filled_] = unit_length(there, self.mean_)

    def map_rows(self, X: Matrix) -> Matrix:
        """Map rows (n, d) to kernel values (n, m)."""
        rows = unit_length(X, self.mean_)
        # Of unit rows: ‖u − v‖² = 2 − 2 u·v. A zero row, the mean itself, is as far from all.
        features = np.zeros((len(X), self.n_anchors), np.float32)
        nearness = features[:, : self.n_filled_]
        np.matmul(rows, self.directions_[: self.n_filled_].T, out=nearness)
        nearness -= 1
        nearness *= np.float32(2 / self.bandwidth)
        np.exp(nearness, out=nearness)
        return features


GIVEN_ANCHORS = Rule(
    "a finite array (anchors, features)",
    lambda value: (
        isinstance(value, np.ndarray)
        and (value.dtype.kind in "fiu" and value.ndim == 2 and value.size > 0)
        and bool(np.isfinite(value).all())
    ),
)


class RadialMap(StreamPart):
    """Map rows to exp(−‖x − a‖² / 2η) for anchors a, η from the anchors' mean squared distance.

    The anchors are the first instances of the stream, as they come: a feature whose anchor has not
    come yet is 0, and once all have come the map stays as it is. Nothing looks ahead, unless the
    map is made by ``on`` of given anchors.

    Parameters
    ----------
    n_anchors : int, default=300
        Number of anchors m, the dimension of the map.
    divisor : float, default=6.0
        η is the mean squared distance of two anchors divided by this.

    Attributes
    ----------
    anchors_ : array (m, d)
        The anchors, seen from the first row; those still to come are zero.
    origin_ : array (d,)
        The first row: distances are taken from here, lest features far from zero lose digits.
    n_filled_ : int
        How many anchors have come.
    sum_, squares_ : array (d,), float
        Sum of the anchors, and of their squared lengths, as seen from the origin.
    """

    n_anchors: int = parameter(Whole(1), default=300, kw_only=False)
    divisor: float = parameter(Number(above=0), default=6.0)
    learns = Table(
        anchors_=Array(np.float32, "n_anchors", "d"),
        origin_=Array(np.float32, "d"),
        n_filled_=Count(1, "n_anchors"),
        sum_=Array(np.float64, "d"),
        squares_=Real(0, math.inf),
    )

    def n_features_out(self, d: int) -> int:  # noqa: ARG002
        """Return how many features rows have after the map: one an anchor."""
        return self.n_anchors

    @classmethod
    def on(cls, anchors: NDArray[Any], d: int, place: str, *, unit: bool, **width: Any) -> Any:
        """Make a map on given anchors (m, d), brought to unit length about their mean if ``unit``.

        ``place`` is how an error calls them, ``width`` the parameter that sets η.
        """
        rows = anchors.astype(np.float32)
        if rows.shape[1] != d:
            raise InputError(
                f"{place} has rows of {rows.shape[1]} features, X has {d}; pass rows of the same "
                "features."
            )
        made = cls(len(rows), **width)
        made.follow_rows(unit_length(rows, _means(rows, axis=0)[0]) if unit else rows)
        return made

    def learn_rows(self, X: Matrix) -> None:
        """Take rows (n, d) as anchors while there is room."""
        self.follow_rows(X[: self.n_anchors - getattr(self, "n_filled_", 0)])

    def follow_rows(self, X: Matrix) -> Matrix:
        """Learn rows (n, d) one after the other, and map each (n, m) as it comes."""
        filled = getattr(self, "n_filled_", 0)
        n_new = min(len(X), self.n_anchors - filled)
        if n_new == 0:
            return self.map_rows(X)
        if filled == 0:
            self.origin_: Matrix = X[0].copy()
            self.anchors_: Matrix = np.zeros((self.n_anchors, X.shape[1]), np.float32)
            self.sum_: NDArray[np.float64] = np.zeros(X.shape[1])
            self.squares_ = 0.0
        new = less(X[:n_new], self.origin_)
        anchors = self.anchors_.copy()
        anchors[filled : filled + n_new] = new
        # (n_new, d) and (n_new,): as they were after each new row
        sums = self.sum_ + np.cumsum(new, axis=0, dtype=np.float64)
        squares = self.squares_ + np.cumsum(np.square(new, dtype=np.float64).sum(axis=1))
        counts = np.arange(filled + 1, filled + n_new + 1)
        self.anchors_, self.n_filled_ = anchors, filled + n_new
        self.sum_, self.squares_ = sums[-1], float(squares[-1])
        inverse = self._inverse(counts, sums, squares)
        return np.concatenate(
            [self._features(X[:n_new], counts, inverse), self.map_rows(X[n_new:])]
        )

    def map_rows(self, X: Matrix) -> Matrix:
        """Map rows (n, d) to kernel values (n, m)."""
        there = np.array([self.n_filled_])
        inverse = self._inverse(there, self.sum_[None], np.array([self.squares_]))
        return self._features(X, there, inverse)

    def _inverse(
        self, counts: NDArray[Any], sums: NDArray[Any], squares: NDArray[Any]
    ) -> NDArray[Any]:
        """1 / 2η for so many anchors with these sums; 0 if they are all the same.

        In float32, unless that would lose digits of it.
        """
        pairs = counts * (counts - 1.0)
        # Σ_{i≠j} ‖a_i − a_j‖² = 2 (n Σ ‖a‖² − ‖Σ a‖²)
        apart = 2 * (counts * squares - np.square(sums).sum(axis=1))
        known = apart > 1e-12 * counts * squares  # what is less is rounding
        eta = np.divide(apart, pairs * self.divisor, out=np.ones(len(counts)), where=known)
        inverse: NDArray[Any] = np.where(known, 0.5 / eta, 0.0)
        is_narrow = (eta > NARROWEST) & (eta < BROADEST) | ~known
        return inverse.astype(np.float32) if is_narrow.all() else inverse

    def _features(self, X: Matrix, counts: NDArray[Any], inverse: NDArray[Any]) -> Matrix:
        """Kernel values (n, m); row i sees the first counts[i] anchors and its own width."""
        rows, anchors = less(X, self.origin_), self.anchors_
        if inverse.dtype == np.float64:  # float32 has no such squares
            rows, anchors = rows.astype(np.float64), anchors.astype(np.float64)
        elif max(rows.max(initial=0), -rows.min(initial=0)) > LONGEST:  # as far from all as can be
            rows = np.clip(rows, -np.float32(LONGEST), np.float32(LONGEST))
        lengths = np.einsum("ij,ij->i", rows, rows)[:, None]  # (n, 1)
        product = row_product if rows.dtype == np.float32 else np.matmul
        features: NDArray[Any] = product(rows, anchors.T)  # (n, m)
        features *= -2
        features += lengths
        features += np.einsum("ij,ij->i", anchors, anchors)
        np.maximum(features, 0, out=features)  # ‖x − a‖²
        features *= -inverse[:, None]
        np.exp(features, out=features)
        if len(counts) > 1 or counts[0] < self.n_anchors:
            features *= np.arange(self.n_anchors) < counts[:, None]
        return features.astype(np.float32, copy=False)


class NormalizedHasher(OnlineHasher):
    """A hasher that takes off the running mean and brings rows to unit length, if ``normalize``."""

    normalize: bool = parameter(Choice(True, False), default=True)
    learns = Table()

    def _feature_parts(self, d: int) -> list[StreamPart]:  # noqa: ARG002
        return [CenterScale(scale="unit")] if self.normalize else []


class StreamPipeline(HasherAround):
    """Feature maps learned online, then a hasher: one object with the hasher's verbs.

    At each stage every part learns from the rows and passes them on mapped; the hasher learns from
    what the last part makes of them. It is itself a hasher: it encodes, saves, loads, and runs
    wherever a hasher does. scikit-learn's own pipeline has no ``partial_fit``.

    Parameters
    ----------
    parts : list of StreamPart
        For instance ``[CenterScale(scale="unit"), AnchorMap(300)]``.
    hasher : OnlineHasher
        What learns the codes; its ``batch_size`` cuts the stream.

    Attributes
    ----------
    parts_, hasher_
        The learned ones; those passed in are left as they are.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from streamhash import AnchorMap, CenterScale, LSH, StreamPipeline
    >>> X, y = load_digits(return_X_y=True)
    >>> model = StreamPipeline([CenterScale(), AnchorMap(100)], LSH(n_bits=16, random_state=0))
    >>> model.partial_fit(X[:1000]).partial_fit(X[1000:]).transform(X[:3]).shape
    (3, 2)
    """

    learns = Table(hasher_=Part(OnlineHasher, n_features_in_="D", n_bits="k"))
    learns_pairs = property(attrgetter("hasher.learns_pairs"))

    def __init__(self, parts: Sequence[StreamPart], hasher: OnlineHasher) -> None:
        self.parts = parts
        self.hasher = hasher

    def check_parameters(self) -> None:
        """Refuse parameters that break their rules."""
        super().check_parameters()
        for part in self.parts:
            if not isinstance(part, StreamPart):
                raise InputError(
                    f"StreamPipeline: {part!r} in parts does not learn from a stream; use "
                    "CenterScale, AnchorMap, RandomFeatures or your own StreamPart."
                )
            part.check_parameters()

    def _feature_parts(self, d: int) -> list[StreamPart]:  # noqa: ARG002
        return [clone(part) for part in self.parts]

    def _start(self, X: Matrix, y: Any) -> None:  # noqa: ARG002
        self.hasher_ = clone(self.hasher)

    def _learn(self, X: Matrix, y: Any) -> None:
        self.hasher_.partial_fit(np.ascontiguousarray(X), y)

    def _learn_pair_stage(self, X: Matrix, similar: NDArray[np.bool_], y: list[Any]) -> int:
        rows = self._prepared(X)
        if self.n_stages_ == 0:
            self._start(rows, None)
        self.hasher_.partial_fit_pairs(rows[::2], rows[1::2], similar, y[::2], y[1::2])
        return len(X)

    def _project(self, X: Matrix) -> Matrix:
        projections: Matrix = self.hasher_.project_rows(X)
        return projections
