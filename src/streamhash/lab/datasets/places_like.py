"""A made-up stream with the size, the classes and the difficulty of Places205's features."""

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from streamhash.lab.datasets._arguments import whole
from streamhash.lab.datasets.blocks import BLOCK, BlockStream, Piece

__all__ = ["PlacesLikeStream"]

_CLASSES, _FEATURES = 205, 128
_KINDS = 40  # groups of scenes that resemble each other, such as kitchens and dining rooms
_LOOKS = 3  # modes of one class: a church from inside, from outside, at night
_IMAGES = (5_000, 15_000)  # images of a class in Places205: from, to
# Variances as in PCA features of real scenes (miniplaces-features), component j from 1 on:
_NOISE_DECAY = 0.65  # within a class they fall as j ** -0.65
_SIGNAL, _SIGNAL_DECAY = 2.4, 0.86  # between classes they are 2.4 * j ** -0.86 of that,
_SIGNAL_MOST = 1.2  # and at most 1.2 of it
_SEPARATION = 1.5  # scales distances between classes, and so the difficulty
_OF_KIND = 0.5  # share of the variance between classes that lies between kinds
_OF_LOOK = 0.3  # variance between the looks of a class, in units of that between classes
_TAIL = 7.0  # shape of the gamma factor on a row's variance: mean 1, standard deviation 0.38
_MIXED = 0.9  # share t of a second class in a row: Beta(1, 0.9), so a little over half
_MIXED_IN_KIND = 0.7  # how often that class is of the same kind


class _World(NamedTuple):
    """What one seed fixes for all rows."""

    up_to_class: NDArray[np.float64]  # (205,) cumulated shares of the classes
    up_to_look: NDArray[np.float64]  # (205, 3) cumulated shares of the looks of each class
    centres: NDArray[np.float32]  # (205, 3, 128)
    noise: NDArray[np.float32]  # (128,) standard deviations within a class
    by_kind: NDArray[np.int64]  # (205,) all classes, those of one kind together
    kin_from: NDArray[np.int64]  # (205,) where in by_kind the kind of each class begins
    n_kin: NDArray[np.int64]  # (205,) classes of that kind


@dataclass(frozen=True)
class PlacesLikeStream(BlockStream):
    """An endless **synthetic** stream that stands in for Places205: 205 classes, 128 features.

    It has what makes Places205 hard and large, and no scene: class sizes from 5,000 to 15,000 in
    2.05 million, groups of similar classes, several looks a class, variances that fall as those of
    PCA features do, heavy tails, and rows that lie between two classes, so that even the best
    classifier errs often. A linear one reaches about 50 %; ``docs/data.md`` has the figures. Call
    it synthetic wherever you show results on it.

    Rows are drawn in fixed blocks that depend on the seed and the block's number only: row
    2,000,000 costs as much as row 0, and memory stays at the rows asked for.

    Parameters
    ----------
    seed : whole number that fixes the classes and all rows

    >>> X, y = PlacesLikeStream().take(2000)
    >>> X.shape, X.dtype, y.shape
    ((2000, 128), dtype('float32'), (2000,))
    >>> [len(X) for X, y in PlacesLikeStream().pieces(2_000, size=900)]
    [900, 900, 200]
    """

    seed: int = 0

    def __post_init__(self) -> None:
        whole("PlacesLikeStream", "seed", self.seed, least=0)

    @cached_property
    def _world(self) -> _World:
        rng = np.random.default_rng([self.seed, 0])
        images = rng.uniform(*_IMAGES, _CLASSES)
        kind = rng.integers(_KINDS, size=_CLASSES)
        component = np.arange(1, _FEATURES + 1)
        noise = component ** (-_NOISE_DECAY / 2)
        signal = np.minimum(_SIGNAL_MOST, _SIGNAL * component**-_SIGNAL_DECAY)
        kinds = rng.standard_normal((_KINDS, 1, _FEATURES))[kind]
        classes = rng.standard_normal((_CLASSES, 1, _FEATURES))
        looks = rng.standard_normal((_CLASSES, _LOOKS, _FEATURES))
        centres = np.sqrt(_OF_KIND) * kinds + np.sqrt(1 - _OF_KIND) * classes
        centres = centres + np.sqrt(_OF_LOOK) * looks  # (205, 3, 128), variance 1.3
        by_kind = np.argsort(kind, kind="stable")
        return _World(
            np.cumsum(images / images.sum()),
            np.cumsum(rng.dirichlet([4.0] * _LOOKS, _CLASSES), axis=1),
            (centres * noise * np.sqrt(signal) * _SEPARATION).astype(np.float32),
            noise.astype(np.float32),
            by_kind,
            np.searchsorted(kind[by_kind], kind),
            np.bincount(kind, minlength=_KINDS)[kind],
        )

    def _draw(self, block: int) -> Piece:
        """Draw one whole block of rows."""
        world, rng = self._world, np.random.default_rng([self.seed, 1, block])
        # The last share is left out: rounding may keep the sum below 1.
        y = np.searchsorted(world.up_to_class[:-1], rng.random(BLOCK), side="right")
        look = (rng.random((BLOCK, 1)) > world.up_to_look[y, :-1]).sum(axis=1)
        # The class that a row is mixed with: one of its own kind (it may be its own), or any.
        kin = world.by_kind[world.kin_from[y] + (rng.random(BLOCK) * world.n_kin[y]).astype(int)]
        other = np.where(
            rng.random(BLOCK) < _MIXED_IN_KIND, kin, rng.integers(_CLASSES, size=BLOCK)
        )
        other_look = rng.integers(_LOOKS, size=BLOCK)
        t = rng.beta(1.0, _MIXED, (BLOCK, 1)).astype(np.float32)
        spread = np.sqrt(rng.gamma(_TAIL, 1 / _TAIL, (BLOCK, 1))).astype(np.float32)
        X = rng.standard_normal((BLOCK, _FEATURES), dtype=np.float32)
        X *= spread * world.noise
        X += (1 - t) * world.centres[y, look] + t * world.centres[other, other_look]
        return X, y
