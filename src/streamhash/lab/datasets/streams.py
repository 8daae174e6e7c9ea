"""Endless made-up streams, drawn in fixed blocks: any start and piece size give the same rows."""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import KW_ONLY, dataclass
from functools import cached_property, lru_cache
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from streamhash.errors import InputError
from streamhash.parameters import Choice, Maybe, Number, Rule, Whole, check_parameters

BLOCK_ROWS = 1024  # rows that are drawn together

Piece = tuple[NDArray[np.float32], NDArray[Any]]


class BlockStream(ABC):
    """A stream whose block b depends on the settings and b only; it fills in ``draw``.

    Streams are hashable by their settings, so that the last blocks are kept for the next piece.
    """

    random_state: int | None

    @abstractmethod
    def draw(self, block: int) -> Piece:
        """Draw one whole block: X (BLOCK_ROWS, d) and y (BLOCK_ROWS,) or (BLOCK_ROWS, C)."""

    def _check(self, rules: Mapping[str, Rule]) -> None:
        """Check the settings; a stream without a ``random_state`` gets one of its own."""
        check_parameters(
            type(self).__name__, vars(self), {**rules, "random_state": Maybe(Whole(0))}
        )
        if self.random_state is None:
            drawn = int(np.random.default_rng().integers(2**32))
            object.__setattr__(self, "random_state", drawn)

    def _rng(self, *keys: int) -> np.random.Generator:
        return np.random.default_rng([self.random_state or 0, *keys])

    def take(self, n: int, start: int = 0) -> Piece:
        """Return rows ``start`` to ``start + n`` of the stream: X (n, d) and y (n,) or (n, C)."""
        rules = {"n": Whole(0), "start": Whole(0)}
        check_parameters(f"{type(self).__name__}.take", locals(), rules)
        model_X, model_y = _block(self, start // BLOCK_ROWS)
        X = np.empty((n, *model_X.shape[1:]), model_X.dtype)
        y = np.empty((n, *model_y.shape[1:]), model_y.dtype)
        done = 0
        while done < n:
            block, offset = divmod(start + done, BLOCK_ROWS)
            rows = slice(offset, offset + n - done)
            block_X, block_y = _block(self, block)
            count = len(block_X[rows])
            X[done : done + count] = block_X[rows]
            y[done : done + count] = block_y[rows]
            done += count
        return X, y

    def pieces(self, n: int, size: int) -> Iterator[Piece]:
        """Yield the first ``n`` rows in pieces of ``size``, holding one piece at a time."""
        rules = {"n": Whole(0), "size": Whole(1)}
        check_parameters(f"{type(self).__name__}.pieces", locals(), rules)
        return (self.take(min(size, n - start), start) for start in range(0, n, size))


@lru_cache(maxsize=2)  # pieces smaller than a block need it several times
def _block(stream: BlockStream, number: int) -> Piece:
    return stream.draw(number)


MOST_LABELS_OF_A_ROW = 3  # labels of one multi-label row


@dataclass(frozen=True)
class SyntheticStream(BlockStream):
    """An endless stream of Gaussian classes, the same for any piece size and any start row.

    Each class has a mean in a random ``n_informative``-dimensional subspace, and every feature
    carries noise of standard deviation 1. Rows are drawn in fixed blocks that depend on the
    random state and the block's number only: row 1,000,000 costs as much as row 0, and memory
    stays at the rows asked for.

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
    random_state : whole number that fixes all rows; None draws one, which ``repr`` shows

    >>> stream = SyntheticStream(n_classes=4, n_features=8, random_state=1)
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
    random_state: int | None = None

    def __post_init__(self) -> None:
        self._check(
            {
                "n_classes": Whole(1),
                "n_features": Whole(1),
                "separation": Number(at_least=0),
                "n_informative": Maybe(Whole(1)),
                "arrival": Choice("mixed", "one-by-one"),
                "drift": Number(at_least=0),
                "drift_at": Maybe(Number(at_least=0, at_most=1)),
                "length": Whole(1),
            }
        )
        if (self.n_informative or 0) > self.n_features:
            raise InputError(
                f"SyntheticStream: n_informative={self.n_informative} is more than "
                f"n_features={self.n_features}; pass at most as many."
            )

    @cached_property
    def _world(self) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """Class means (C, d), and the path (C, d) that each travels over ``length`` rows."""
        rng = self._rng(0)
        rank = self.n_informative or min(16, self.n_features)
        axes = np.linalg.qr(rng.standard_normal((self.n_features, rank)))[0].T  # (rank, d)
        # Two such means lie sqrt(2 rank) apart on average.
        means = rng.standard_normal((self.n_classes, rank)) * self.separation / np.sqrt(2 * rank)
        ways = rng.standard_normal((self.n_classes, rank))
        ways *= self.drift / np.linalg.norm(ways, axis=1, keepdims=True)
        return (means @ axes).astype(np.float32), (ways @ axes).astype(np.float32)

    def draw(self, block: int) -> Piece:
        """Draw one whole block of rows."""
        rng = self._rng(1, block)
        rows = block * BLOCK_ROWS + np.arange(BLOCK_ROWS)
        position = rows / self.length  # 1 = length rows seen
        X = rng.standard_normal((BLOCK_ROWS, self.n_features), dtype=np.float32)
        arrived = np.full(BLOCK_ROWS, self.n_classes)
        if self.arrival == "one-by-one":
            arrived = np.minimum(1 + (position * self.n_classes).astype(np.int64), self.n_classes)
        progress = np.minimum(position, 1).astype(np.float32)[:, None]
        swapped = self.drift_at is not None and position >= self.drift_at
        y = (rng.random(BLOCK_ROWS) * arrived).astype(np.int64)
        if not self.multi_label:
            X += self._look(y, swapped, progress)
            return X, y
        matrix = np.zeros((BLOCK_ROWS, self.n_classes), np.uint8)
        matrix[np.arange(BLOCK_ROWS), y] = 1
        n_labels = rng.integers(1, MOST_LABELS_OF_A_ROW + 1, BLOCK_ROWS)
        total = self._look(y, swapped, progress)
        for further in range(1, MOST_LABELS_OF_A_ROW):
            other = (rng.random(BLOCK_ROWS) * arrived).astype(np.int64)
            new = (n_labels > further) & (matrix[np.arange(BLOCK_ROWS), other] == 0)
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


# The constants of PlacesLikeStream.
_CLASSES, _FEATURES = 205, 128
_KINDS = 40  # groups of scenes that resemble each other, such as kitchens and dining halls
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
    """What the random state fixes for all rows."""

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

    Rows are drawn in fixed blocks that depend on the random state and the block's number only:
    row 2,000,000 costs as much as row 0, and memory stays at the rows asked for.

    Parameters
    ----------
    random_state : whole number that fixes the classes and all rows; None draws one

    >>> X, y = PlacesLikeStream().take(2000)
    >>> X.shape, X.dtype, y.shape
    ((2000, 128), dtype('float32'), (2000,))
    >>> [len(X) for X, y in PlacesLikeStream().pieces(2_000, size=900)]
    [900, 900, 200]
    """

    random_state: int | None = None

    def __post_init__(self) -> None:
        self._check({})

    @cached_property
    def _world(self) -> _World:
        rng = self._rng(0)
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

    def draw(self, block: int) -> Piece:
        """Draw one whole block of rows."""
        world, rng = self._world, self._rng(1, block)
        # The last share is left out: rounding may keep the sum below 1.
        y = np.searchsorted(world.up_to_class[:-1], rng.random(BLOCK_ROWS), side="right")
        look = (rng.random((BLOCK_ROWS, 1)) > world.up_to_look[y, :-1]).sum(axis=1)
        # The class that a row is mixed with: one of its own kind (it may be its own), or any.
        kin = world.by_kind[
            world.kin_from[y] + (rng.random(BLOCK_ROWS) * world.n_kin[y]).astype(int)
        ]
        other = np.where(
            rng.random(BLOCK_ROWS) < _MIXED_IN_KIND, kin, rng.integers(_CLASSES, size=BLOCK_ROWS)
        )
        other_look = rng.integers(_LOOKS, size=BLOCK_ROWS)
        t = rng.beta(1.0, _MIXED, (BLOCK_ROWS, 1)).astype(np.float32)
        spread = np.sqrt(rng.gamma(_TAIL, 1 / _TAIL, (BLOCK_ROWS, 1))).astype(np.float32)
        X = rng.standard_normal((BLOCK_ROWS, _FEATURES), dtype=np.float32)
        X *= spread * world.noise
        X += (1 - t) * world.centres[y, look] + t * world.centres[other, other_look]
        return X, y


# The constants of LongTailStream.
_ZIPF_CLASSES, _EMBEDDED = 50, 384
_GROUPS = 10  # classes c, c + 10, c + 20 ... are alike
_MODES = 3  # of one class
_APART = (0.8, 0.6, 0.4)  # how far groups, classes and modes lie apart, in each feature
_COMMON = 60  # directions of the noise that all rows share, and that drowns most of the signal
_COMMON_NOISE, _OWN_NOISE = 2.5, 0.8


class _LongTail(NamedTuple):
    """What the random state fixes for all rows of a long tail."""

    up_to_class: NDArray[np.float64]  # (50,) cumulated shares of the classes
    centres: NDArray[np.float32]  # (50, 3, 384)
    common: NDArray[np.float32]  # (60, 384) directions of the common noise


@dataclass(frozen=True)
class LongTailStream(BlockStream):
    """An endless **synthetic** stream as shops and archives have it: few classes with many rows.

    Class c of 50 has a share of the rows in proportion to 1 / (c + 1), so from 22 % to 0.4 %. The
    classes lie in 10 groups of similar ones and have 3 modes each; noise along 60 directions, the
    same for all, is stronger than what tells classes apart. Rows have 384 features and length 1.
    Call it synthetic wherever you show results on it.

    ``take`` and ``pieces`` give the true classes, which results are judged by; ``labels`` what the
    stream says of the same rows, some of it wrong.

    Parameters
    ----------
    wrong : share of the rows whose label is drawn at random from all classes
    random_state : whole number that fixes the classes and all rows; None draws one

    >>> stream = LongTailStream(random_state=0)
    >>> X, y = stream.take(2000)
    >>> X.shape, np.bincount(y)[:4], float((stream.labels(2000) != y).mean())
    ((2000, 384), array([460, 212, 126, 120]), 0.051)
    """

    _: KW_ONLY
    wrong: float = 0.05
    random_state: int | None = None

    def __post_init__(self) -> None:
        self._check({"wrong": Number(at_least=0, at_most=1)})

    @cached_property
    def _world(self) -> _LongTail:
        rng = self._rng(0)
        share = 1 / np.arange(1, _ZIPF_CLASSES + 1)
        of_group, of_class, of_mode = _APART
        groups = rng.standard_normal((_GROUPS, 1, _EMBEDDED))[np.arange(_ZIPF_CLASSES) % _GROUPS]
        centres = of_group * groups + of_class * rng.standard_normal((_ZIPF_CLASSES, 1, _EMBEDDED))
        centres = centres + of_mode * rng.standard_normal((_ZIPF_CLASSES, _MODES, _EMBEDDED))
        common = rng.standard_normal((_COMMON, _EMBEDDED)) * _COMMON_NOISE / np.sqrt(_COMMON)
        return _LongTail(
            np.cumsum(share / share.sum()), centres.astype(np.float32), common.astype(np.float32)
        )

    def _classes(self, block: int) -> NDArray[np.int64]:
        # The last share is left out: rounding may keep the sum below 1.
        shares = self._world.up_to_class[:-1]
        return np.searchsorted(shares, self._rng(1, block).random(BLOCK_ROWS), side="right")

    def draw(self, block: int) -> Piece:
        """Draw one whole block of rows, with their true classes."""
        world, y, rng = self._world, self._classes(block), self._rng(2, block)
        X = rng.standard_normal((BLOCK_ROWS, _COMMON), dtype=np.float32) @ world.common
        X += _OWN_NOISE * rng.standard_normal((BLOCK_ROWS, _EMBEDDED), dtype=np.float32)
        X += world.centres[y, rng.integers(_MODES, size=BLOCK_ROWS)]
        return X / np.linalg.norm(X, axis=1, keepdims=True), y

    def labels(self, n: int, start: int = 0) -> NDArray[np.int64]:
        """Return what the stream says of rows ``start`` to ``start + n``: (n,), some wrong."""
        rules = {"n": Whole(0), "start": Whole(0)}
        check_parameters(f"{type(self).__name__}.labels", locals(), rules)
        first, last = start // BLOCK_ROWS, (start + n) // BLOCK_ROWS
        said = np.concatenate([self._said(block) for block in range(first, last + 1)])
        return said[start - first * BLOCK_ROWS :][:n]

    def _said(self, block: int) -> NDArray[np.int64]:
        rng = self._rng(3, block)
        is_wrong = rng.random(BLOCK_ROWS) < self.wrong
        return np.where(
            is_wrong, rng.integers(_ZIPF_CLASSES, size=BLOCK_ROWS), self._classes(block)
        )
