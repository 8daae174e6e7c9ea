"""A uniform sample of fixed size from a stream of unknown length."""

from collections import Counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from streamhash.base import Matrix, Streaming, new_generator
from streamhash.classes import ClassTable
from streamhash.errors import InputError
from streamhash.labels import same_width
from streamhash.learned import AnyOf, Array, Count, Generator, Part, Table
from streamhash.parameters import SEED, Whole, parameter


class Reservoir(Streaming):
    """Keeps ``size`` items of all that have come, each as likely as any other (Vitter 1985).

    Every item draws a random key. While there is room it is taken in; then it takes the place of
    the item with the largest key, if its own is smaller: so the sample is always that of the
    smallest keys. Its room is laid out in full from the beginning.

    Parameters
    ----------
    size : int, default=1000
        Number of items R.
    random_state : int, RandomState or None
        Seed of the keys.

    Attributes
    ----------
    rows_ : array (R, d)
        The items; those still to come are zero.
    labels_ : array (R,) of class numbers, or (R, classes) of 0 and 1, or None
        Their labels, None in a stream without.
    keys_ : array (R,)
        Their keys.
    n_filled_ : int
        How many have come.
    classes_ : ClassTable
        The numbers of the classes.
    generator_ : numpy.random.Generator
        The source of the keys.

    Examples
    --------
    >>> sample = Reservoir(3, random_state=0)
    >>> sample.take(np.arange(10, dtype=np.float32)[:, None], np.array(list("abcdefghij")))
    array([ 0,  1,  2,  0, -1, -1, -1, -1, -1, -1], dtype=int32)
    >>> sample.rows.ravel()
    array([3., 1., 2.], dtype=float32)
    """

    size: int = parameter(Whole(1), default=1000, kw_only=False)
    random_state: Any = parameter(SEED, default=None)
    learns = Table(
        rows_=Array(np.float32, "size", "d"),
        keys_=Array(np.float64, "size", low=0, high=1),
        n_filled_=Count(0, "size"),
        classes_=Part(ClassTable, C="C"),
        labels_=AnyOf(
            None,
            Array(np.int32, "size", low=0, below="C"),
            Array(np.uint8, "size", "columns", high=1),
        ),
        generator_=Generator(),
    )

    @property
    def rows(self) -> Matrix:
        """The items that have come (≤ R, d)."""
        return self.rows_[: self.n_filled_]

    @property
    def labels(self) -> NDArray[Any] | None:
        """Their labels, as ``take`` keeps them."""
        return None if self.labels_ is None else self.labels_[: self.n_filled_]

    def start(self, d: int) -> None:
        """Lay out the room."""
        self.generator_ = new_generator(self.random_state)
        self.classes_ = ClassTable()
        self.rows_: Matrix = np.zeros((self.size, d), np.float32)
        self.keys_ = np.zeros(self.size)
        self.labels_: NDArray[Any] | None = None
        self.n_filled_ = 0

    def numbered(self, y: Any) -> NDArray[Any] | None:
        """Return labels as they are kept: numbers of classes, or the 0/1 matrix itself."""
        labels = self.classes_.number(y) if y is not None and y.ndim == 1 else y
        if self.labels_ is not None and labels is not None and labels.ndim != self.labels_.ndim:
            raise InputError(
                "Reservoir: the stream began with labels in "
                f"{self.labels_.ndim} dimensions and goes on with {labels.ndim}; "
                "pass all labels as numbers or names, or all as a 0/1 matrix."
            )
        return labels

    def take(self, X: Matrix, y: Any) -> NDArray[np.int32]:
        """Offer rows (n, d) in their order; return the place that each took, -1 for none."""
        if not hasattr(self, "rows_"):
            self.start(X.shape[1])
        labels = self.numbered(y)
        keys, filled = self.keys_.copy(), self.n_filled_
        slots = np.full(len(X), -1, np.int32)
        worst = int(np.argmax(keys[:filled])) if filled == self.size else -1
        for i, key in enumerate(self.generator_.random(len(X))):
            if filled < self.size:
                place, filled = filled, filled + 1
            elif key < keys[worst]:
                place = worst
            else:
                continue
            slots[i], keys[place] = place, key
            if filled == self.size:
                worst = int(np.argmax(keys))
        self.keys_, self.n_filled_ = keys, filled
        if (slots >= 0).any():
            self.rows_ = _placed(self.rows_, X, slots)
            if labels is not None:
                kept = np.zeros((self.size, *labels.shape[1:]), labels.dtype)
                kept, labels = same_width(kept if self.labels_ is None else self.labels_, labels)
                self.labels_ = _placed(kept, labels, slots)
        return slots

    def drop(self, X: Matrix) -> int:
        """Drop rows from the sample, one for each row of X that is in it; return how many.

        Those to come take their room.
        """
        if not hasattr(self, "rows_") or len(X) == 0:
            return 0
        unwanted = Counter(row.tobytes() for row in np.ascontiguousarray(X, np.float32))
        kept = []
        for i, row in enumerate(self.rows):
            content = row.tobytes()
            if unwanted[content]:
                unwanted[content] -= 1
            else:
                kept.append(i)
        n = self.n_filled_ - len(kept)
        if n:
            self.rows_, self.keys_ = _moved_up(self.rows_, kept), _moved_up(self.keys_, kept)
            if self.labels_ is not None:
                self.labels_ = _moved_up(self.labels_, kept)
            self.n_filled_ = len(kept)
        return n


def _moved_up(rows: NDArray[Any], kept: list[int]) -> NDArray[Any]:
    """Return some rows, and zeros after them."""
    moved = np.zeros_like(rows)
    moved[: len(kept)] = rows[kept]
    return moved


def _placed(kept: NDArray[Any], new: NDArray[Any], slots: NDArray[np.int32]) -> NDArray[Any]:
    """Put new rows into their places, in a copy; of several for one place the last stays."""
    last = {place: i for i, place in enumerate(slots.tolist()) if place >= 0}
    kept = kept.copy()
    kept[[*last]] = new[[*last.values()]]
    return kept
