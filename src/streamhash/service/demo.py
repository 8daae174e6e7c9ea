"""A collection that a newcomer can watch: the embedded digits, arriving one after the other."""

import threading
from os import PathLike
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import load_digits

from streamhash.hashers import SDOH
from streamhash.live import Collection

__all__ = ["DigitStream", "create_digits"]

BITS = 32
SIDE = 8  # pixels
BEFORE = 1000  # digits that are there from the beginning, without labels
STAGE = 20  # labelled digits that the learner takes at a time: few, so that its start is seen
EVERY = 1.0  # seconds between two stages
MOST = 20_000  # items; after that, the oldest are replaced


def create_digits(path: str | PathLike[str], seed: int = 0) -> Collection:
    """Make a collection of digits, most of which have no label yet."""
    hasher = SDOH(BITS, batch_size=STAGE, random_state=seed)
    collection = Collection.create(path, hasher, background=True, random_state=seed)
    digits = _Digits(seed)
    X, y = digits.take(BEFORE)
    collection.add(range(BEFORE), X, metadata=_metadata(y))
    # One class after the other is a hard beginning: what is learned first is of little use.
    first = np.argsort(y, kind="stable")[: 2 * STAGE]
    collection.label(first, y[first])
    return collection


def _metadata(y: NDArray[np.int64]) -> list[dict[str, Any]]:
    """Say that the vectors are pictures, and of which digit, for people to see: none learns it."""
    image = {"width": SIDE, "height": SIDE}
    return [{"image": image, "digit": digit} for digit in y.tolist()]


class DigitStream:
    """A thread that adds labelled digits to a collection, inside its ``with`` block."""

    def __init__(self, collection: Collection, seed: int = 0, every: float = EVERY) -> None:
        self._collection, self._every = collection, every
        self._digits = _Digits(seed + 1)
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="digits", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def _run(self) -> None:
        number = len(self._collection)
        while not self._stop.wait(self._every):
            X, y = self._digits.take(STAGE)
            ids = np.arange(number, number + STAGE) % MOST
            self._collection.add(ids, X, y, metadata=_metadata(y), existing="replace")
            number += STAGE


class _Digits:
    """scikit-learn's 1,797 digits in a random order; from the second round on, a little changed."""

    def __init__(self, seed: int) -> None:
        self._rng = np.random.default_rng(seed)
        self._X, self._y = load_digits(return_X_y=True)
        self._order = np.empty(0, np.int64)
        self._rounds = 0

    def take(self, n: int) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
        """Return the next digits with their labels."""
        if len(self._order) < n:
            self._order = np.r_[self._order, self._rng.permutation(len(self._X))]
            self._rounds += 1
        chosen, self._order = self._order[:n], self._order[n:]
        X = self._X[chosen].astype(np.float32)
        if self._rounds > 1:
            X = np.clip(X + self._rng.normal(0, 1, X.shape), 0, 16).astype(np.float32)
        return X, self._y[chosen]
