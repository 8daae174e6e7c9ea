"""Extreme values: told from ordinary ones as the stream comes, and kept out of what is learned.

A fill value that was never filled in (9.97e36 in NetCDF), a sensor gone mad, a unit mixed up: one
such row would move a mean, or the width of a kernel, so far that all others look alike.
"""

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from streamhash.base import Matrix, Streaming
from streamhash.errors import ExtremeRowsError
from streamhash.learned import Array, Count, Real, Table

EXTREME = 1e3  # times as far out as any ordinary value before: extreme
WRECKING = 1e7  # times as far out, and sums in float32 no longer see the ordinary ones at all
MANY = 20  # extreme rows among about the last RECENT are no accident
RECENT = 200
FIRST = 8  # rows that tell the centre
JUDGED = 3  # rows of which one can be told from the others
NAMED = 10  # rows, in an error
FARTHEST = 2.0 * float(np.finfo(np.float32).max)  # that two numbers can be apart

Distances = NDArray[np.float64]


class OrdinaryRange(Streaming):
    """What is ordinary in a stream: a centre, and how far from it values have been.

    A value is extreme if it is a thousand times as far from the centre of its feature as any
    ordinary value of any feature so far. While such rows are few, the centre stands in for their
    extreme values, when they are learned and when they are encoded, and they are counted. If more
    than 20 of about 200 rows are extreme, that is no accident: where they are up to ten million
    times as far out, the scale of the stream has changed, and they are ordinary from there on;
    beyond, learning them would wreck the model, and the piece is refused.

    What is ordinary at the very start, the median of the first stage tells; of a stream that comes
    row by row, that of its first eight rows, and the first two pass unseen. Features times 1024, or
    plus 1000, have the same values extreme. Ordinary rows pass unchanged, bit for bit.

    Attributes
    ----------
    center_ : array (d,)
        The median of the first rows, feature by feature.
    reach_ : float
        How far from it ordinary values have been; 0 while all were the same.
    first_ : array (n, d)
        The first rows, while they are fewer than eight.
    pressure_ : float
        Extreme rows of late: the sum fades by 1/200 a row.
    n_clipped_ : int
        Extreme values so far.

    Examples
    --------
    >>> X = np.arange(24, dtype=np.float32).reshape(8, 3)
    >>> X[5, 1] = 9.96921e36
    >>> ordinary = OrdinaryRange()
    >>> ordinary.admit(X, "example")[5]
    array([15., 10., 17.], dtype=float32)
    >>> ordinary.n_clipped_
    1
    """

    center_: Matrix
    first_: Matrix
    learns = Table(
        center_=Array(np.float32, "d", optional=True),
        reach_=Real(0, FARTHEST),
        first_=Array(np.float32, "n", "d", optional=True),
        pressure_=Real(0, RECENT),
        n_clipped_=Count(),
    )

    def __init__(self) -> None:
        self.n_clipped_ = 0
        self.pressure_ = 0.0
        self.reach_ = 0.0

    def admit(self, X: Matrix, place: str, numbers: Sequence[int] | None = None) -> Matrix:
        """Return the rows of the next stage (n, d) as they are to be learned.

        Many extreme ones are refused, by their ``numbers`` in X as it was handed over.
        """
        if not hasattr(self, "center_") or hasattr(self, "first_"):
            self._begin(X, place)
        distances = self._distances(X)
        farthest = float(distances.max())
        if self.reach_ == 0:
            self.reach_ = _ordinary_reach(distances)
        if farthest <= EXTREME * self.reach_ or self.reach_ == 0:
            self.pressure_ *= (1 - 1 / RECENT) ** len(X)
            self.reach_ = max(self.reach_, farthest)
            return X
        self._count(X, distances, place, range(len(X)) if numbers is None else numbers)
        self.n_clipped_ += int(self._extreme(X).sum())
        rows = self.cleaned(X)
        if hasattr(self, "first_"):  # as they are learned
            self.first_ = np.concatenate([self.first_[: -len(X)], rows])
        return rows

    def cleaned(self, X: Matrix) -> Matrix:
        """Return rows (n, d) with the centre in place of extreme values."""
        lowest, highest = self.bounds()
        if len(X) == 0 or (float(X.max()) <= highest and float(X.min()) >= lowest):
            return X
        extreme = self._extreme(X)
        return np.where(extreme, self.center_, X) if extreme.any() else X

    def bounds(self) -> tuple[float, float]:
        """Return numbers between which no value of any feature is extreme."""
        if not hasattr(self, "center_") or self.reach_ == 0:
            return -math.inf, math.inf
        limit = EXTREME * self.reach_
        return float(self.center_.max()) - limit, float(self.center_.min()) + limit

    def joined(self, other: "OrdinaryRange") -> "OrdinaryRange":
        """Return what is ordinary in two streams; both stay as they are."""
        whole = OrdinaryRange()
        whole.n_clipped_ = self.n_clipped_ + other.n_clipped_
        whole.pressure_ = max(self.pressure_, other.pressure_)
        both = [each for each in (self, other) if hasattr(each, "center_")]
        if both:
            whole.center_ = both[0].center_
            apart = whole._distances(both[-1].center_[None])
            whole.reach_ = max(both[0].reach_, both[-1].reach_ + float(apart[0]))
        return whole

    def _begin(self, X: Matrix, place: str) -> None:
        """Take the centre, and how far from it is ordinary, from the first rows."""
        before = getattr(self, "first_", X[:0])
        rows = np.concatenate([before, X])
        middle = (len(rows) - 1) // 2
        self.center_ = np.partition(rows, middle, axis=0)[middle].copy()
        if len(rows) < FIRST:
            self.first_ = rows
        elif len(before):
            del self.first_
        distances = self._distances(rows)
        self.reach_ = _ordinary_reach(distances) if len(rows) >= JUDGED else float(distances.max())
        early = distances[: len(before)]
        if self.reach_ and (early > WRECKING * self.reach_).any():
            worst = int(early.argmax())
            raise ExtremeRowsError(
                f"{place}: row {worst} of this stream, which is learned already, has values beyond "
                f"{WRECKING:g} times those of the others ({_said(before[worst], self.center_)}), "
                "and the model is of no use; learn anew without it.",
                [],
            )
        self.reach_ = max(self.reach_, float(early.max(initial=0.0)))

    def _distances(self, X: Matrix) -> Distances:
        """How far each row (n,) is from the centre, in the feature in which it is farthest."""
        with np.errstate(over="ignore"):
            apart = X - self.center_
        farthest = np.maximum(apart.max(axis=1), -apart.min(axis=1))
        distances: Distances = np.minimum(farthest.astype(np.float64), FARTHEST)
        return distances

    def _extreme(self, X: Matrix) -> NDArray[np.bool_]:
        with np.errstate(over="ignore"):
            apart = np.abs(X - self.center_)
        return np.asarray(apart > EXTREME * self.reach_)

    def _count(self, X: Matrix, distances: Distances, place: str, numbers: Sequence[int]) -> None:
        """Go through rows one by one; refuse them if many are extreme."""
        for distance in distances.tolist():
            self.pressure_ *= 1 - 1 / RECENT
            if distance > EXTREME * self.reach_:
                self.pressure_ += 1
                if self.pressure_ <= MANY:
                    continue
                if distance > WRECKING * self.reach_:
                    far = self.far_rows(X)
                    raise self.refusal(X[far[0]], place, [numbers[i] for i in far])
            self.reach_ = max(self.reach_, distance)

    def far_rows(self, X: Matrix) -> list[int]:
        """Return which rows have extreme values."""
        return np.flatnonzero(self._distances(X) > EXTREME * self.reach_).tolist()

    def refusal(self, row: Matrix, place: str, rows: list[int]) -> ExtremeRowsError:
        """Return what to raise if the extreme rows are too many; ``row`` is the first of them."""
        more = f" and {len(rows) - NAMED} more" if len(rows) > NAMED else ""
        return ExtremeRowsError(
            f"{place}: rows {', '.join(map(str, rows[:NAMED]))}{more} of X have values beyond "
            f"{EXTREME:g} times all that are ordinary here (row {rows[0]}: "
            f"{_said(row, self.center_)}), and to learn so many would wreck the model; leave out "
            "or fill in such rows, or start a new model if it is the others that are wrong.",
            rows,
        )


def _ordinary_reach(distances: Distances) -> float:
    """Return the largest distance below the first gap of a thousandfold above the median."""
    found = np.sort(distances[distances > 0])
    upper = found[(len(found) - 1) // 2 :]
    if len(upper) == 0:
        return 0.0
    gaps = np.flatnonzero(upper[1:] > EXTREME * upper[:-1])
    return float(upper[gaps[0]] if len(gaps) else upper[-1])


def _said(row: Matrix, center: Matrix) -> str:
    feature = int(np.abs(row.astype(np.float64) - center).argmax())
    return f"{row[feature]:g} in feature {feature}, usually {center[feature]:g}"
