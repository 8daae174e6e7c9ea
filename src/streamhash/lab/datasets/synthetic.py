"""A made-up labelled stream: difficulty, arrival of classes and drift at will, and never stored."""

from dataclasses import KW_ONLY, dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from streamhash.errors import InputError
from streamhash.lab.datasets._arguments import number, whole
from streamhash.lab.datasets.blocks import BLOCK, BlockStream, Piece

__all__ = ["SyntheticStream"]

_MOST_LABELS = 3  # labels of one multi-label row


@dataclass(frozen=True)
class SyntheticStream(BlockStream):
    """An endless stream of Gaussian classes, the same for any piece size and any start row.

    Each class has a mean in a random ``n_informative``-dimensional subspace, and every feature
    carries noise of standard deviation 1. Rows are drawn in fixed blocks that depend on the seed
    and the block's number only: row 1,000,000 costs as much as row 0, and memory stays at the
    rows asked for.

    Parameters
    ----------
    n_classes : number of classes, labelled 0 to ``n_classes - 1``
    n_features : width of X
    separation : typical distance between two class means, in standard deviations of the noise;
        ``docs/data.md`` has the accuracy a linear classifier reaches
    n_informative : dimensions of the subspace that tells classes apart; None = 16, or all
        features if there are fewer
    arrival : ``"mixed"``, all classes from the first row on, or ``"one-by-one"``, class c from row
        ``length * c / n_classes`` on, with all that arrived before equally likely
    drift : distance that each class mean has moved after ``length`` rows, on a straight line in
        the subspace, in standard deviations of the noise
    drift_at : share of ``length`` after which, suddenly, class c looks as class c + 1 did (and the
        last as the first); None = never
    multi_label : True gives each row one to three labels, y as a matrix of 0 and 1, and the mean
        of its classes' means
    length : rows over which classes arrive and means drift; the stream then goes on as it is
    seed : whole number that fixes all rows

    >>> stream = SyntheticStream(n_classes=4, n_features=8, seed=1)
    >>> X, y = stream.take(1000)
    >>> X.shape, y[:5]
    ((1000, 8), array([1, 2, 0, 0, 1]))
    >>> bool((stream.take(10, start=990)[0] == X[990:]).all())
    True
    >>> [len(X) for X, y in stream.pieces(250, size=100)]
    [100, 100, 50]
    """

    n_classes: int = 10
    n_features: int = 64
    _: KW_ONLY
    separation: float = 4.0
    n_informative: int | None = None
    arrival: Literal["mixed", "one-by-one"] = "mixed"
    drift: float = 0.0
    drift_at: float | None = None
    multi_label: bool = False
    length: int = 20_000
    seed: int = 0

    def __post_init__(self) -> None:
        place = "SyntheticStream"
        for name, least in [("n_classes", 1), ("n_features", 1), ("length", 1), ("seed", 0)]:
            whole(place, name, getattr(self, name), least=least)
        for name in ("separation", "drift"):
            number(place, name, getattr(self, name), least=0, most=np.inf, advice="pass 0 or more")
        if self.drift_at is not None:
            number(
                place, "drift_at", self.drift_at, least=0, most=1, advice="pass a share, or None"
            )
        if self.n_informative is not None and (
            whole(place, "n_informative", self.n_informative, least=1) > self.n_features
        ):
            raise InputError(
                f"{place}: n_informative={self.n_informative} is more than "
                f"n_features={self.n_features}; pass at most as many."
            )
        if self.arrival not in ("mixed", "one-by-one"):
            raise InputError(
                f"{place}: arrival={self.arrival!r} is unknown; pass 'mixed' or 'one-by-one'."
            )

    @cached_property
    def _world(self) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """Class means (C, d), and the path (C, d) that each travels over ``length`` rows."""
        rng = np.random.default_rng([self.seed, 0])
        rank = self.n_informative or min(16, self.n_features)
        axes = np.linalg.qr(rng.standard_normal((self.n_features, rank)))[0].T  # (rank, d)
        # Two such means lie sqrt(2 rank) apart on average.
        means = rng.standard_normal((self.n_classes, rank)) * self.separation / np.sqrt(2 * rank)
        ways = rng.standard_normal((self.n_classes, rank))
        ways *= self.drift / np.linalg.norm(ways, axis=1, keepdims=True)
        return (means @ axes).astype(np.float32), (ways @ axes).astype(np.float32)

    def _draw(self, block: int) -> Piece:
        """Draw one whole block of rows."""
        rng = np.random.default_rng([self.seed, 1, block])
        position = (block * BLOCK + np.arange(BLOCK)) / self.length  # 1 = length rows seen
        X = rng.standard_normal((BLOCK, self.n_features), dtype=np.float32)
        arrived = np.full(BLOCK, self.n_classes)
        if self.arrival == "one-by-one":
            arrived = np.minimum(1 + (position * self.n_classes).astype(np.int64), self.n_classes)
        progress = np.minimum(position, 1).astype(np.float32)[:, None]
        swapped = self.drift_at is not None and position >= self.drift_at
        y = (rng.random(BLOCK) * arrived).astype(np.int64)
        if not self.multi_label:
            X += self._look(y, swapped, progress)
            return X, y
        matrix = np.zeros((BLOCK, self.n_classes), np.uint8)
        matrix[np.arange(BLOCK), y] = 1
        n_labels = rng.integers(1, _MOST_LABELS + 1, BLOCK)
        total = self._look(y, swapped, progress)
        for further in range(1, _MOST_LABELS):
            other = (rng.random(BLOCK) * arrived).astype(np.int64)
            new = (n_labels > further) & (matrix[np.arange(BLOCK), other] == 0)
            matrix[new, other[new]] = 1
            total += np.where(new[:, None], self._look(other, swapped, progress), 0)
        X += total / matrix.sum(axis=1, dtype=np.float32)[:, None]
        return X, matrix

    def _look(
        self, y: NDArray[np.int64], swapped: Any, progress: NDArray[np.float32]
    ) -> NDArray[np.float32]:
        """Return where rows of the classes y are centred (n, d), at their places in the stream."""
        means, ways = self._world
        looks_as = np.where(swapped, (y + 1) % self.n_classes, y)
        centres: NDArray[np.float32] = means[looks_as] + progress * ways[looks_as]
        return centres
