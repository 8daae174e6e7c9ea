"""What hashers along principal directions of the stream share: SketchHash, FROSH, PCAH and ITQ."""

from typing import Any

import numpy as np

from streamhash.base import Matrix, new_generator, random_directions, row_product
from streamhash.features import NormalizedHasher
from streamhash.hashers._sketch import (
    EVEN,
    Doubles,
    FrequentDirections,
    centred,
    polar,
    principal_directions,
    random_rotation,
)
from streamhash.learned import WIDEST, Array, Count, Generator, Part, Table
from streamhash.parameters import Maybe, Values, Whole, parameter


class PrincipalHasher(NormalizedHasher):
    """Bits along the first principal directions of the stream, turned by a matrix of the method's.

    Every stage goes into a sketch, exactly centred; W = V T, with V (d, p) the first p = min(k,
    rank) principal directions of the sketch and T (p, k) what ``_turn`` says. bit = (x − μ)ᵀ w > 0.

    W waits: until more than min(k, d) instances have come it stays at random directions, and a
    sketch of lower rank than the one that W was made of (it may be half empty) changes nothing.
    Where data have fewer than k directions, p < k of them carry all k bits.

    A method fills in ``_turn`` and may fill in ``_new_sketch``.
    """

    needs_labels = False
    multi_label = True
    sketch_size: int | None = parameter(
        Maybe(EVEN), default=None, search=Values(None, 200, 300, 400)
    )
    batch_size: int = parameter(Whole(1), default=200, search=Values(50, 100, 200, 500))

    learns = Table(
        W_=Array(np.float32, "D", "k"),
        R_=Array(np.float64, "k", "k"),
        rank_=Count(0, "k"),
        n_sketched_=Count(),
        mean_=Array(np.float64, "D", low=-WIDEST, high=WIDEST),
        sketch_=Part(FrequentDirections, d="D"),
        random_=Generator(),
    )

    def _turn(self, V: Doubles) -> Doubles:
        """Return T (p, k) for principal directions V (d, p)."""
        raise NotImplementedError

    def _carried(self, V: Doubles) -> Doubles | None:
        """Return the T (p, k) that brings V T nearest to W as it is; None if V has a new rank.

        It is the same whatever signs and order singular vectors came in: codes change only as far
        as the space of the principal directions does.
        """
        return polar(V.T @ self.W_) if V.shape[1] == self.rank_ else None

    def _rotation(self, V: Doubles, rule: str) -> Doubles:
        """Return T (p, k) by the rule "carried", "fixed" or "released"."""
        if rule == "carried" and (T := self._carried(V)) is not None:
            return T
        if rule == "released":
            self.R_ = random_rotation(self.n_bits, self.random_)
        return self.R_[: V.shape[1]]

    def _new_sketch(self, size: int) -> FrequentDirections:
        return FrequentDirections(size)

    def _start(self, X: Matrix, y: Any) -> None:  # noqa: ARG002
        self.random_ = new_generator(self.random_state)
        self.W_ = random_directions(X.shape[1], self.n_bits, self.random_)
        self.R_ = random_rotation(self.n_bits, self.random_)
        self.rank_ = 0
        self._empty(X.shape[1])

    def _empty(self, d: int) -> None:
        """Begin with an empty sketch."""
        self.n_sketched_, self.mean_ = 0, np.zeros(d)
        # With 2 d rows nothing is ever lost: half of them hold all directions there are. Below 100
        # it would be shrunk all the time.
        size = min(max(2 * self.n_bits, 200), max(2 * d, 100))
        self.sketch_ = self._new_sketch(self.sketch_size or size)

    def _learn(self, X: Matrix, y: Any) -> None:  # noqa: ARG002
        self._sketch(X)
        self._renew()

    def _sketch(self, X: Matrix) -> None:
        rows, self.mean_ = centred(X, self.mean_, self.n_sketched_)
        self.sketch_.add_rows(rows)
        self.n_sketched_ += len(X)

    def _renew(self) -> bool:
        """Take W from the sketch, if its rank allows; tell whether it was taken."""
        d, k = self.W_.shape
        if self.n_sketched_ <= min(k, d):
            return False
        V = principal_directions(self.sketch_.rows(), k)  # (d, p)
        if V.shape[1] < max(self.rank_, 1):
            return False
        self.W_ = (V @ self._turn(V)).astype(np.float32)  # (d, k)
        self.rank_ = V.shape[1]
        return True

    def _project(self, X: Matrix) -> Matrix:
        return row_product(X - self.mean_.astype(np.float32), self.W_)
